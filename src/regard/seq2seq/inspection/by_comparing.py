"""Findings that take the comparison of lines, in one file or in two."""

from collections.abc import Iterator

from regard.seq2seq.inspection import compare
from regard.seq2seq.inspection.compare import Compared
from regard.seq2seq.inspection.finding import Finding, Place
from regard.seq2seq.inspection.survey import Survey

__all__ = ["of_comparing", "of_leaks"]

_REPEATED = (
    "warning",
    "pairs that an earlier line has already",
    "take the repeats out: they count twice in training",
)
_SEVERAL = (
    "note",
    "sources with different targets",
    "nothing, if all are right: the nearest counts in a score; else take the wrong ones out",
)
_RATIO = (
    "warning",
    "pairs whose target has an unusual length for its source",
    "look whether source and target belong together",
)


def of_comparing(data: Survey, limit: int) -> Iterator[Finding]:
    """Yield repeats, contradictions and unusual lengths; `limit` places each."""
    for code, said, found in (
        ("duplicate", _REPEATED, compare.repeated(data, limit)),
        ("several-targets", _SEVERAL, compare.with_several_targets(data, limit)),
        ("odd-ratio", _RATIO, compare.odd_ratios(data, limit)),
    ):
        yield from _finding(data, code, said, found)
    for side in ("source", "target"):
        said = (
            "warning",
            f"{side} texts of more than {compare.LONG} symbols and ten times the median",
            "cut them, or take them out: time and memory grow with the longest",
        )
        yield from _finding(data, f"overlong-{side}", said, compare.overlong(data, side, limit))


def of_leaks(data: Survey, known: Survey, limit: int) -> Iterator[Finding]:
    """Yield what two files share that should have nothing in common."""
    remedy = "take them out of one of the files"
    if known.role == "train":
        remedy += ": a score on what was trained on is one of memory"
    for code, noun in (("leaked-pair", "pairs"), ("leaked-source", "sources")):
        found = compare.leaked(data, known, limit, pairs=noun == "pairs")
        said = ("warning", f"{noun} that are also in {known.path}", remedy)
        yield from _finding(data, code, said, found, str(known.path))


def _finding(
    data: Survey,
    code: str,
    said: tuple[str, str, str],
    found: Compared,
    other_file: str | None = None,
) -> Iterator[Finding]:
    if found.count:
        level, what, remedy = said
        places = tuple(Place(line, "", other, other_file) for line, other in found)
        yield Finding(code, level, str(data.path), what, found.count, places, remedy)
