"""The terminal's text: what stands where, whatever the user's file holds."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.check.finding import Edit, Evidence, Finding, Fix, Location, Report, Step
from regard.check.render import render
from regard.check.render.changed import changed
from regard.check.render.window import columns, window

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def single(source: str, at: Location, *, trace: tuple[Step, ...] = ()) -> Report:
    finding = Finding(
        "RG301", "softmax-axis", "error", "f.py:f", "wrong", at, Evidence("r", ""), trace=trace
    )
    return Report("f.py:f", (finding,), ("r",), source=source, path="f.py")


def under_the_carets(text: str) -> str:
    """What stands above the carets, by the columns of a terminal."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "^" in line)
    begin, end = lines[at].index("^"), lines[at].rindex("^") + 1
    wide = "".join(c + "\0" * (columns(c) - 1) for c in lines[at - 1])
    return wide[begin:end].replace("\0", "")


def test_colour_repeats_the_text_and_adds_nothing(every):
    painted = render("full", every, color=True)
    assert painted != render("full", every)
    assert ESCAPE.sub("", painted) == render("full", every)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_prose_keeps_to_the_width(every, width):
    for line in render("full", every, width=width).splitlines():
        is_code = re.match(r"   [> ] +\d+ \||    [-+] | +\|  +\^", line)
        assert is_code or columns(line) <= width, line


def test_carets_stand_under_the_span(decoder, mixer):
    assert under_the_carets(render("full", [decoder])) == "torch.softmax(scores, dim=1)"
    assert under_the_carets(render("full", [mixer])) == "weights.transpose(1, 2)"


def test_carets_stand_under_the_span_behind_tabs_and_wide_characters():
    source = 'def f():\n\tname = "注意"; wrong(name)\n'
    report = single(source, Location("f.py", 2, 15, 2, 26))
    assert source.splitlines()[1][14:25] == "wrong(name)"
    assert under_the_carets(render("full", [report])) == "wrong(name)"


def test_a_span_far_to_the_right_stays_in_view():
    source = f"x = {'first + ' * 30}wrong(name)\n"
    begin = source.index("wrong") + 1
    report = single(source, Location("f.py", 1, begin, 1, begin + 11))
    text = render("full", [report])
    assert under_the_carets(text) == "wrong(name)"
    assert max(map(len, text.splitlines())) <= 80


def test_a_span_of_several_lines_marks_each_of_them():
    source = "a = 1\nb = call(\n    1,\n    2,\n)\nc = 3\n"
    rows = window(single(source, Location("f.py", 2, 5, 5, 2)).findings[0], one(source), 80)
    assert [row.kind for row in rows] == ["code", "hit", "caret", "hit", "hit", "hit", "code"]
    assert rows[2].text == "    ^^^^^"


def one(source: str) -> Report:
    return Report("f.py:f", source=source)


def test_a_tensor_made_far_above_is_shown_behind_a_gap():
    source = "\n".join(f"line_{number} = 0" for number in range(1, 41))
    way = (Step(3, "line_3", ("batch",)), Step(0, "argument", ("T_enc",)))
    report = single(source, Location("f.py", 30, 1, 30, 8), trace=way)
    rows = window(report.findings[0], report, 80)
    assert [row.text.split(" =")[0] for row in rows if row.kind in ("code", "hit")] == [
        "line_3",
        "line_28",
        "line_29",
        "line_30",
        "line_31",
    ]
    assert [row.kind for row in rows][1] == "gap"
    assert rows[0].note == "(batch,)"


@pytest.mark.parametrize("line", [0, 99])
def test_a_place_outside_the_file_shows_no_window(line):
    report = single("a = 1\n", Location("f.py", line))
    assert window(report.findings[0], report, 80) == []
    assert "f.py" in render("full", [report])


@pytest.mark.parametrize("form", ["full", "concise", "github", "junit", "html", "notebook"])
def test_control_characters_of_a_file_are_shown_and_not_obeyed(form):
    report = single("a = '\x1b[2J\u202e'\n", Location("f.py", 1, 1, 1, 4))
    hostile = replace(
        report.findings[0], message="now\x1b[2J\u202e\x07", target="\x9bf", hidden="a\x00b"
    )
    text = render(form, [replace(report, findings=(hostile,), target="\x9bf")])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert r"\x1b[2J" in text


def test_a_suppressed_finding_is_counted_and_not_shown(mixer):
    text = render("full", [mixer])
    assert "1 error (1 suppressed)" in text
    assert "RG504" not in text
    assert "RG504" not in render("concise", [mixer])


@pytest.mark.parametrize("form", ["full", "concise", "github", "junit", "html", "notebook"])
def test_silence_is_never_a_pass(form):
    said = render(form, [Report("f.py:f")]).lower()
    assert "nothing was checked" in said
    assert "no findings" not in said


def test_a_report_that_could_not_check_is_no_pass(unloadable):
    assert "this is no pass" in render("full", [unloadable])


def test_what_was_found_counts_though_something_else_could_not_be_checked(decoder, unloadable):
    both = (*decoder.findings, *unloadable.findings)
    text = render("full", [replace(decoder, findings=both)])
    assert "2 errors, 1 warning. Ran 5 relations" in text
    assert "this is no pass" not in text


@pytest.mark.parametrize("form", ["concise", "github"])
def test_a_message_of_several_lines_stays_one_line(form, mixer):
    note = replace(mixer.findings[1], suppressed="")
    assert "\n" in note.message
    assert len(render(form, [replace(mixer, findings=(note,))]).splitlines()) == 1


def test_the_finding_comes_before_the_fix_and_its_line_never_holds_it(decoder):
    text = render("full", [decoder])
    assert text.index("`weights` sums to 1") < text.index("measured") < text.index("dim=-1")


def test_a_fix_is_shown_as_lines_taken_away_and_put_there():
    source = "def f(x):\r\n    y = x\r\n    return (y,\r\n            x)\r\n"
    edits = [Edit(2, 9, 2, 10, "2 * x"), Edit(3, 12, 4, 15, "y")]
    assert changed(source, edits) == (
        ("-", "y = x"),
        ("-", "return (y,"),
        ("-", "        x)"),
        ("+", "y = 2 * x"),
        ("+", "return y"),
    )


def test_a_fix_for_another_text_shows_what_is_known():
    assert changed("", [Edit(7, 3, 7, 9, "dim=-1")]) == (("+", "dim=-1"),)


def test_lines_end_where_python_ends_them():
    assert changed("a = '\x0c\u2028'\nb = 1\n", [Edit(2, 5, 2, 6, "2")]) == (
        ("-", "b = 1"),
        ("+", "b = 2"),
    )


@pytest.mark.parametrize("form", ["full", "concise", "github", "junit", "html", "notebook"])
def test_a_finding_that_hangs_on_a_guess_says_so(form, mixer):
    sure = replace(mixer.findings[0], depends_on="", fixes=())
    guess = replace(sure, depends_on="time comes first")
    said, unsaid = (
        render(form, [replace(mixer, findings=(found,))]) for found in (guess, sure)
    )
    assert " ".join(said.split()).count("time comes first") >= 1
    assert "time comes first" not in unsaid


def test_only_a_proven_fix_is_offered_to_be_applied(decoder):
    (axis, _) = decoder.findings
    guess = replace(axis, fixes=(Fix("proven-if", axis.fixes[0].edits, condition="so"),))
    assert "apply: --fix" in render("full", [decoder])
    assert "apply: --fix" not in render("full", [replace(decoder, findings=(guess,))])


_NUMBER = st.integers(0, 9)
_TEXT = st.text("ab \t\n\r\x0c\x1b注é\u0301\u202e#=()", max_size=200)


@given(_TEXT, _TEXT, _NUMBER, _NUMBER, _NUMBER, _NUMBER, st.sampled_from([40, 61, 80]))
def test_no_file_and_no_span_breaks_the_layout(
    source, text, line, column, end_line, end_column, width
):
    at = Location("f.py", line, column, end_line, end_column)
    edit = Edit(line, column, end_line, end_column, text)
    report = single(source, at, trace=(Step(end_line, "x", ("batch", "T_enc")),))
    fix = Fix("proven", (edit,), description=text)
    found = replace(report.findings[0], message=text, hidden=text, fixes=(fix,))
    report = replace(report, findings=(found,))
    for row in window(found, report, width):
        assert "\n" not in row.text
        assert columns(f"{row.gutter}  {row.text}") <= width
    lines = render("full", [report], width=width).split("\n")
    assert lines[0].startswith("f.py:")
    assert not [line for line in lines if re.search("[\x00-\x08\x0b-\x1f\u202e]", line)]
