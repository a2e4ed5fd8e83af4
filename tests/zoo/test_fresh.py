"""Files in the form of well-known tutorials: right ones, and some with a slip of the pen."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.check.check import Options, check_source
from regard.check.finding import Report
from zoo_cases import EXPECT

pytest.importorskip("torch")

FRESH = Path(__file__).parent / "fresh"
# Named for what the slip leads to, or at the line where it shows; the reason is the check's.
OTHER_NAME = {"bad_graph": "RG202"}  # a mask that is turned lets hidden keys be read


def ids(pattern: str) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in sorted(FRESH.glob(pattern))]


def checked(path: Path, *, declared: bool) -> Report:
    contract = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    entry = contract["target"].partition(":")[2]
    source = path.read_text(encoding="utf-8")
    given = contract if declared else None
    return check_source(source, path.name, entry, given, Options(repair=False))


def loud(report: Report) -> list[str]:
    return [f"{f.code}: {f.message}" for f in report.findings if f.level != "note"]


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "guessed"])
@pytest.mark.parametrize("path", ids("good_*.py"))
def test_right_files_are_left_alone(path: Path, declared: bool) -> None:
    report = checked(path, declared=declared)
    assert loud(report) == []
    assert len(report.checked) > 8


@pytest.mark.parametrize("path", ids("bad_*.py"))
def test_a_slip_is_found_with_what_its_author_declares(path: Path) -> None:
    (code,) = EXPECT.findall(path.read_text(encoding="utf-8"))
    found = {f.code for f in checked(path, declared=True).findings if f.level == "error"}
    assert OTHER_NAME.get(path.stem, code) in found
