"""The lines around a finding, with the axes of what each makes, and carets below the span."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from regard.check.finding import Finding, Report
from regard.check.render.changed import lines_of
from regard.check.render.wording import axes, axes_of, plain

__all__ = ["Row", "window"]

_BEFORE, _AFTER, _STEPS = 2, 1, 3
_LEAST = 24  # columns of code, however long the axes are


@dataclass(frozen=True)
class Row:
    """One line of a window.

    ``kind`` is ``code``, ``hit`` (the finding's line), ``caret`` or ``gap``; ``gutter`` ends
    in the bar, and ``note`` are the axes or what a caret points out.
    """

    kind: str
    gutter: str
    text: str
    note: str = ""


def window(finding: Finding, report: Report, width: int) -> list[Row]:
    """Return the rows to show for a finding; none where the file is not at hand.

    Lines that made a tensor on the way to the finding are shown however far they are.
    """
    lines = lines_of(report.source)
    first, last = _hit(finding, lines)
    if not report.source or not 1 <= first <= len(lines):
        return []
    known = axes_of(finding, report)
    way = sorted({s.line for s in finding.trace if 0 < s.line < first})[-_STEPS:]
    near = range(max(1, first - _BEFORE), min(len(lines), last + _AFTER) + 1)
    numbers = sorted({*way, *near})
    while len(numbers) > 1 and not lines[numbers[0] - 1].strip():
        numbers.pop(0)
    while len(numbers) > 1 and numbers[-1] > last and not lines[numbers[-1] - 1].strip():
        numbers.pop()
    return _rows(finding, lines, numbers, known, width)


def _rows(
    finding: Finding,
    lines: list[str],
    numbers: list[int],
    known: Mapping[int, tuple[str, ...]],
    width: int,
) -> list[Row]:
    first, last = _hit(finding, lines)
    texts = {n: plain(lines[n - 1].expandtabs(4)) for n in numbers}
    shared = min(
        (len(t) - len(t.lstrip()) for t in texts.values() if t.strip()),
        default=0,
    )
    digits = len(str(numbers[-1]))
    room = width - digits - 9
    longest = max((len(axes(known[n])) for n in numbers if n in known), default=0)
    wanted = max(columns(texts[n][shared:].rstrip()) for n in numbers)
    code_room = min(wanted, max(_LEAST, room - longest - 2)) if longest else min(wanted, room)
    rows: list[Row] = []
    for before, n in zip([numbers[0], *numbers], numbers, strict=False):
        if n > before + 1:
            rows.append(Row("gap", " " * (digits + 6) + ":", ""))
        hit = first <= n <= last
        gutter = f"   {'>' if hit else ' '} {n:>{digits}} |"
        text, note = texts[n][shared:].rstrip(), axes(known[n]) if n in known else ""
        begin, end = _span(finding, lines[n - 1], n, last, shared)
        # A hit line may take the whole width: its axes then stand beside the carets.
        fits = columns(text) <= code_room
        text, begin, end = _excerpt(text, begin, end, code_room if not hit or fits else room)
        beside = note if not hit or fits else ""
        padded = text + " " * (code_room - columns(text)) if beside else text
        rows.append(Row("hit" if hit else "code", gutter, padded, beside))
        if hit and end > begin and n == first:
            mark = " " * columns(text[:begin]) + "^" * max(1, columns(text[begin:end]))
            said = _label(finding) or ("" if beside else note)
            if columns(mark) + 2 + len(said) > room:
                said = ""
            rows.append(Row("caret", " " * (digits + 6) + "|", mark, said))
    return rows


def columns(text: str) -> int:
    """Return how many columns of a terminal a text fills.

    >>> columns("ab"), columns("注意")
    (2, 4)
    """
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _hit(finding: Finding, lines: list[str]) -> tuple[int, int]:
    first = finding.location.line
    return first, min(max(first, finding.location.end_line), len(lines))


def _label(finding: Finding) -> str:
    tensor = finding.tensor
    if tensor is None or not tensor.expected or tensor.expected == tensor.axes:
        return ""
    return f"must be {axes(tensor.expected)}"


def _span(finding: Finding, line: str, n: int, last: int, shared: int) -> tuple[int, int]:
    """Return where the span begins and ends in the line as it is shown."""
    at = finding.location

    def shift(column: int) -> int:
        return max(0, len(plain(line[: column - 1].expandtabs(4))) - shared)

    end = at.end_column if at.end_line == n or (last == n and not at.end_line) else 0
    stop = end if end > 1 else len(line.rstrip()) + 1
    return shift(at.column), shift(stop)


def _excerpt(text: str, begin: int, end: int, room: int) -> tuple[str, int, int]:
    """Cut a line to its room so that the start of the span stays in view."""
    if columns(text) <= room:
        return text, begin, end
    cut = 0
    if begin > room - 12:
        cut = max(0, begin - room // 3)
        text = "…" + text[cut + 1 :]
    while columns(text) > room:
        text = text[:-2] + "…"
    return text, max(0, begin - cut), min(max(0, end - cut), len(text))
