"""Suspect lines first, then what a failure speaks of, then small edits."""

from regard.check.repair.candidate import Candidate
from regard.check.repair.order import HINTS, ordered

SOURCE = "a = 1\nb = 2\nc = 3\n"
FIRST = Candidate("name", ((4, 5, "9"),), 1.0)
SECOND = Candidate("axis", ((10, 11, "9"),), 1.0)
THIRD = Candidate("axis", ((16, 17, "9"),), 1.0)


def kinds_of(*args, **named) -> list[Candidate]:
    return [c for _, c in ordered(SOURCE, *args, **named)]


def test_a_suspect_line_comes_first() -> None:
    assert kinds_of([FIRST, SECOND, THIRD], lines=[3, 2]) == [THIRD, SECOND, FIRST]


def test_a_line_that_did_not_run_comes_last() -> None:
    assert kinds_of([FIRST, SECOND, THIRD], ran=[1, 3])[-1] == SECOND


def test_a_rule_brings_its_families_forward() -> None:
    assert "axis" in HINTS["RG3"]
    assert kinds_of([FIRST, SECOND], rules=["RG301"])[0] == SECOND


def test_every_hint_names_a_family_that_exists() -> None:
    import regard.check.repair.families.every  # noqa: F401 - registers them
    from regard.check.repair.families.base import families

    assert {name for names in HINTS.values() for name in names} <= set(families)
