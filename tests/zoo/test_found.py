"""What the check says of the zoo and of the rules' examples: every bug, and no false alarm."""

from pathlib import Path
from typing import Any

import pytest

from regard.check.check import check_source
from regard.check.finding import Finding, Report
from regard.check.rules import Example, every
from zoo_cases import BAD, EXPECT, GOOD, contract_of, entry_of

pytest.importorskip("torch")

# What the check does not do yet, and why. A case that begins to pass fails until its line here
# is taken away.
NOT_YET = {
    "RG304_first_of_two": "named for the padding that the other weights see",
    "RG801_tiled_mask": "named for the polarity that another example's mask seems to have",
    "RG903": "named state-kept: it does not try whether a seed would make the calls equal",
    "RG904": "an argument that could be anything is taken for a tensor",
}


def known(name: str, *values: Any) -> Any:
    marks = [pytest.mark.xfail(reason=NOT_YET[name])] if name in NOT_YET else []
    return pytest.param(*values, id=name, marks=marks)


def by_name(paths: list[Path]) -> Any:
    return pytest.mark.parametrize("path", [known(path.stem, path) for path in paths])


def checked(path: Path) -> Report:
    source = path.read_text(encoding="utf-8")
    return check_source(source, path.name, entry_of(path), contract_of(path))


def checked_example(example: Example) -> Report:
    contract = dict(example.contract) or None
    return check_source(example.source, "example.py", example.entry, contract)


def loud(report: Report) -> list[Finding]:
    """The findings that are more than a note."""
    return [found for found in report.findings if found.level != "note"]


def test_nothing_is_excused_that_is_not_there():
    names = {path.stem for path in (*BAD, *GOOD)} | {rule.code for rule in every()}
    assert set(NOT_YET) <= names


def told(found: Any) -> list[str]:
    return [f"{f.code} line {f.location.line}: {f.message}" for f in found]


@by_name(GOOD)
def test_good_code_is_left_alone(path):
    report = checked(path)
    assert told(loud(report)) == []
    assert report.checked


@by_name(BAD)
def test_a_bug_is_found_by_its_code_and_on_its_line(path):
    report = checked(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if EXPECT.search(text)]
    (mine,) = [f for f in report.findings if f.code == path.stem[:5]] or [None]
    assert mine is not None, told(report.findings)
    # A proven repair may stand on another line than the mistake; then that line is named.
    mended = {e.line for fix in mine.fixes if fix.status == "proven" for e in fix.edits}
    assert mine.location.line in {line, *mended}, told(report.findings)


@pytest.mark.parametrize("rule", [known(rule.code, rule) for rule in every()])
def test_the_bad_example_of_a_rule_is_found(rule):
    report = checked_example(rule.bad)
    assert rule.code in [f.code for f in report.findings], told(report.findings)


@pytest.mark.parametrize("rule", every(), ids=lambda rule: rule.code)
def test_the_good_example_of_a_rule_is_left_alone(rule):
    report = checked_example(rule.good)
    assert told(loud(report)) == []
    assert report.checked
