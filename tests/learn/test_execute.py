"""Blocks run in one namespace and one folder, and what they do is written down."""

import pytest

from regard.learn.compare import difference, unexplained_numbers
from regard.learn.execute import execute
from regard.learn.rewrite import rewritten, stale_figures

SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'


def _ran(text, run=lambda words: 0):
    return list(execute(text, run=run))


def test_blocks_share_names_and_files():
    text = (
        "```python file=part.py\nn = 7\n```\n\n```python\nimport sys\nsys.path.insert(0, '.')\n"
    )
    text += "from part import n\n```\n\n```python\nprint(n + 4)\n```\n"
    assert [ran.printed for ran in _ran(text)] == ["", "", "11\n"]


def test_an_error_is_shown_only_where_it_is_announced():
    fails = "import regard\nregard.dot_attention([1.0], [[1.0, 2.0]])\n```\n"
    (ran,) = _ran("```python raises\n" + fails)
    assert ran.printed.startswith("regard.errors.ShapeError: dot_attention()")
    with pytest.raises(ValueError, match="does not fit"):
        _ran("```python\n" + fails)


def test_a_block_that_must_raise_and_does_not_is_refused():
    with pytest.raises(AssertionError, match="line 1: nothing was raised"):
        _ran("```python raises\nx = 1\n```\n")


def test_a_figure_is_the_value_of_the_last_expression():
    (ran,) = _ran(f"```python figure=f\nx = {SVG!r}\nx\n```\n")
    assert ran.figure == SVG
    with pytest.raises(AssertionError, match="no SVG"):
        _ran("```python figure=f\n3\n```\n")


def test_a_console_block_runs_regard_and_nothing_else():
    def run(words):
        print("ran", *words)
        return 1

    (ran,) = _ran("```console\n$ regard check a.py\nold\n```\n", run)
    assert ran.printed == "$ regard check a.py\nran check a.py\n"
    with pytest.raises(AssertionError, match="regard alone"):
        _ran("```console\n$ rm -r x\n```\n", run)


def test_an_error_of_a_block_names_the_line_of_the_lesson():
    with pytest.raises(ZeroDivisionError) as caught:
        _ran("words\n\n```python\nx = 0\n1 / x\n```\n")
    assert caught.traceback[-1].lineno == 4


def test_outputs_may_differ_by_as_much_as_is_said_and_no_more():
    def told(said):
        return difference(
            _ran(f"```python within=0.1\nprint('a 0.50')\n```\n\n```text\n{said}\n```\n")[0]
        )

    assert told("a 0.50") == told("a 0.58") == ""
    assert told("a 0.62")
    assert told("b 0.50")


def test_what_ran_is_put_below_its_block_and_old_output_goes():
    text = "```python\nprint(1)\n```\n\n```text\nold\n```\n\n```python\nprint(2)\n```\nend\n"
    new = rewritten(text, _ran(text))
    assert new == (
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\nprint(2)\n```\n\n"
        "```text\n2\n```\nend\n"
    )
    assert rewritten(new, _ran(new)) == new


def test_a_figure_is_stale_until_it_is_written(tmp_path):
    ran = _ran(f"```python figure=f\n{SVG!r}\n```\n")
    assert stale_figures(ran, tmp_path) == {tmp_path / "f.svg": SVG}
    (tmp_path / "f.svg").write_text(SVG)
    assert stale_figures(ran, tmp_path) == {}


def test_a_decimal_number_without_a_block_is_found_and_a_section_is_not():
    text = "It is 0.25, and 0.75 (section 3.1, arXiv:1409.0473).\n\n```text\n0.75\n```\n"
    assert unexplained_numbers(text) == ["0.25"]
