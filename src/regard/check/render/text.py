"""``--format full``: for a person at a terminal.

What a finding says comes first, then where, then the proof that it is so, what hid it, and a
fix with the proof that it mends it. Colour repeats the text and is never needed.
"""

import textwrap
from collections.abc import Sequence

from regard.check.finding import Finding, Fix, Report
from regard.check.render.changed import changed
from regard.check.render.window import columns, window
from regard.check.render.wording import (
    axes,
    count,
    is_limit,
    is_unchecked,
    plain,
    ran,
    shown,
    status,
    tally,
    verdict,
)

__all__ = ["finding_text", "render"]

_LABEL = 12  # columns of "  measured  "
_STYLES = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "bold": "1",
    "dim": "2",
    "-": "31",
    "+": "32",
}


class _Paper:
    """Collects lines; paints them if it may."""

    def __init__(self, color: bool, width: int) -> None:
        self.color, self.width = color, max(width, 40)
        self.lines: list[str] = []

    def paint(self, style: str, text: str) -> str:
        if not self.color or not text.strip():
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def add(self, *lines: str) -> None:
        self.lines += lines

    def gap(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def row(self, label: str, text: str) -> None:
        """Add a labelled paragraph; its later lines hang under the first."""
        lines = [
            piece
            for line in plain(text).split("\n")
            for piece in (_wrap(line, self.width - _LABEL) or [""])
        ]
        for at, line in enumerate(lines):
            name = f"  {'' if at else label:<{_LABEL - 2}}"
            self.add((self.paint("bold", name) + line).rstrip())


def render(reports: Sequence[Report], *, color: bool = False, width: int = 80) -> str:
    """Return the text for a terminal.

    Parameters
    ----------
    reports : sequence of Report
    color : bool
        Whether escape sequences are understood.
    width : int
        Columns to fill.
    """
    paper = _Paper(color, width)
    for report in reports:
        for finding in shown(report):
            paper.gap()
            _finding(paper, finding, report)
        paper.gap()
        _closing(paper, report)
    if len(reports) != 1:
        paper.gap()
        _total(paper, reports)
    return "\n".join(paper.lines) + "\n"


def finding_text(finding: Finding, report: Report, *, width: int = 80) -> str:
    """Return the text of one finding, as a failing test shows it."""
    paper = _Paper(False, width)
    _finding(paper, finding, report)
    return "\n".join(paper.lines)


def _finding(paper: _Paper, finding: Finding, report: Report) -> None:
    at = finding.location
    where = plain(f"{at.path}:{at.line}:{at.column}")
    code = paper.paint(finding.level, f"{finding.level}[{finding.code}]")
    paper.add(f"{paper.paint('bold', where)}: {code} {finding.name}")
    paper.add(*_wrap(plain(finding.message), paper.width))
    rows = window(finding, report, paper.width)
    if rows:
        paper.gap()
    for row in rows:
        gutter = paper.paint("bold" if row.kind == "hit" else "dim", row.gutter)
        text = paper.paint(finding.level, row.text) if row.kind == "caret" else row.text
        note = f"  {paper.paint('dim', row.note)}" if row.note else ""
        paper.add(f"{gutter}  {text}{note}".rstrip())
    paper.gap()
    _evidence(paper, finding)
    if not is_limit(finding):
        _fixes(paper, finding, report)
    paper.gap()
    proven = any(fix.status == "proven" for fix in finding.fixes)
    ways = ["apply: --fix", "keep it fixed: --write-test"] if proven else []
    ways.append(f"why: regard explain {finding.code}")
    line = "  " + "     ".join(ways)
    paper.add(*([line] if len(line) <= paper.width else [f"  {way}" for way in ways]))


def _evidence(paper: _Paper, finding: Finding) -> None:
    evidence, tensor = finding.evidence, finding.tensor
    _measured(paper, finding)
    if evidence.equation:
        paper.row("relation", evidence.equation)
    if tensor is not None and tensor.expected and tensor.expected != tensor.axes:
        has, needs = axes(tensor.axes), axes(tensor.expected)
        paper.row("wrong", f"`{tensor.name}` is {has}; it must be {needs}")
    if evidence.sizes:
        paper.row("at", ", ".join(f"{name}={size}" for name, size in evidence.sizes.items()))
    if evidence.quote:
        paper.row("raised", f'"{evidence.quote.strip()}"')
    if finding.hidden:
        paper.row("hidden", finding.hidden)
    also = finding.also
    if not also and evidence.relations_failed > 1:
        also = (
            f"{evidence.relations_failed} of {count(evidence.relations_run, 'relation')} fail, "
            "all from this line"
        )
    if also:
        paper.row("also", also)
    if finding.depends_on:
        paper.row("if", f"{finding.depends_on} (a guess: declare it to be certain)")


def _measured(paper: _Paper, finding: Finding) -> None:
    rows = [
        [plain(text) for text in (m.what, m.value, m.required)]
        for m in finding.evidence.measured
    ]
    if not rows:
        return
    wide = [max(columns(row[at]) for row in rows) for at in range(3)]
    if sum(wide) + 6 + _LABEL > paper.width or any("\n" in text for r in rows for text in r):
        said = [
            f"{what}: {value}" + (f", {need}" if need else "") for what, value, need in rows
        ]
    else:
        said = [
            "   ".join(
                text + " " * (w - columns(text)) for text, w in zip(row, wide, strict=True)
            )
            for row in rows
        ]
    for at, line in enumerate(said):
        label = f"  {'' if at else 'measured':<{_LABEL - 2}}"
        paper.add((paper.paint("bold", label) + line).rstrip())


def _fixes(paper: _Paper, finding: Finding, report: Report) -> None:
    paper.gap()
    if not finding.fixes:
        paper.add("  no fix was proven")
    several = len(finding.fixes) > 1
    if several:
        paper.add(f"  {len(finding.fixes)} ways to mend it; they do not do the same:")
    for number, fix in enumerate(finding.fixes, 1):
        _fix(paper, fix, report, number if several else 0)


def _fix(paper: _Paper, fix: Fix, report: Report, choice: int) -> None:
    if not fix.edits:
        paper.add(*_wrap(f"no fix: {plain(fix.description)}", paper.width, "  "))
        return
    title = f"choice {choice}" if choice else "fix"
    paper.add(*_wrap(f"{title} ({plain(status(fix))})", paper.width, "  "))
    if choice and fix.description:  # of a single fix the lines say it all
        paper.add(*_wrap(plain(fix.description), paper.width, "    "))
    for sign, line in changed(report.source, fix.edits):
        paper.add(paper.paint(sign, f"    {sign} {plain(line)}".rstrip()))


def _closing(paper: _Paper, report: Report) -> None:
    said = verdict(report)
    if is_unchecked(report):
        paper.add(*_wrap(f"{said} {plain(report.target)}: this is no pass.", paper.width))
    else:
        paper.add(*_wrap(plain(f"{said}. {ran(report)}."), paper.width))
    for title, texts in (
        ("Assumed", report.assumptions),
        ("Not checked", report.not_checked),
    ):
        if texts:
            paper.add(*_wrap(plain(f"{title}: {'; '.join(texts)}."), paper.width))


def _total(paper: _Paper, reports: Sequence[Report]) -> None:
    findings = [finding for report in reports for finding in shown(report)]
    limits = [finding for finding in findings if is_limit(finding)]
    said = tally(finding for finding in findings if not is_limit(finding)) or "no findings"
    text = f"{count(len(reports), 'target')}: {said}"
    if limits:
        text += f"; {len(limits)} could not be checked"
    paper.add(text + ".")


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
