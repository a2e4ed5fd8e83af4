"""The table of what is where names pages, functions and tests that exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d", line)
]


def _found(name):
    """Return what a dotted name stands for, or raise."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise LookupError(name)


def test_the_table_has_every_point():
    assert [int(row.split("|")[1]) for row in ROWS] == list(range(1, 14))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_what_a_row_names_is_there(row):
    pytest.importorskip("torch", reason="some names are PyTorch's")
    _, _, what, pages, names, tests, _ = row.split("|")
    assert what.strip()
    for page in re.findall(r"\]\(([^)]*)\)", pages):
        lesson = page.removeprefix("lessons/")
        generated = ROOT / "src/regard/learn/lessons" / lesson
        assert (
            (ROOT / "docs" / page).is_file()
            or generated.is_file()
            or lesson in {"index.md", "skill.md"}
        ), page
    for name in re.findall(r"`([^`]*)`", names):
        assert _found(name) is not None
    paths = re.findall(r"`([^`]*)`", tests)
    assert paths
    for path in paths:
        assert (ROOT / path).is_file(), path
