"""A candidate changes what it names and nothing else."""

import pytest

from regard.check.finding import Edit
from regard.check.repair.candidate import as_edits, patched

SOURCE = "é = f(x)\ny = g(é,\n      dim=-1)\n"


def applied(source: str, edits: tuple[Edit, ...]) -> str:
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for edit in sorted(edits, key=lambda e: (e.line, e.column), reverse=True):
        start = starts[edit.line - 1] + edit.column - 1
        end = starts[edit.end_line - 1] + edit.end_column - 1
        source = source[:start] + edit.text + source[end:]
    return source


@pytest.mark.parametrize(
    "spans",
    [
        [(4, 8, "f(z)")],
        [(13, 31, "g(é, dim=0)")],
        [(0, 1, "ö"), (15, 16, "ö")],
        [(9, 9, "import math\n")],
    ],
)
def test_edits_in_lines_and_columns_do_what_the_spans_do(spans) -> None:
    assert applied(SOURCE, as_edits(SOURCE, spans)) == patched(SOURCE, spans)


def test_an_edit_is_cut_down_to_whole_words_that_differ() -> None:
    source = "w = softmax(scores, dim=-2)"
    (edit,) = as_edits(source, [(4, 27, "softmax(scores, dim=-1)")])
    assert (edit.column, edit.end_column, edit.text) == (26, 27, "1")
    (edit,) = as_edits("w = keys", [(4, 8, "key")])
    assert edit.text == "key"
