"""A report as text for people."""

from regard.seq2seq.inspection.finding import FileSummary, Finding, Place, Report

__all__ = ["as_text"]


def as_text(report: Report) -> str:
    """Lay out a report: the files, then what was found, the gravest first.

    Parameters
    ----------
    report : Report
    """
    lines = [_summary(summary) for summary in report.files]
    for finding in report.findings:
        lines += ["", *_finding(finding)]
    return "\n".join([*lines, "", _verdict(report)])


def _summary(summary: FileSummary) -> str:
    return (
        f"{summary.role:<5}  {_printable(summary.file)}\n"
        f"       pairs {summary.pairs:,}, sources {summary.sources:,}, refused lines "
        f"{summary.refused:,}\n"
        f"       symbols: source {summary.source_symbols:,}, target "
        f"{summary.target_symbols:,}; longest text: source {summary.longest_source:,}, "
        f"target {summary.longest_target:,}"
    )


def _finding(finding: Finding) -> list[str]:
    lines = [
        f"{finding.level:<8} {finding.code}  {_printable(finding.file)}",
        f"  {_printable(finding.what)}: {finding.count:,}",
        *(f"    {_place(place)}" for place in finding.places),
    ]
    rest = finding.count - len(finding.places)
    if rest > 0 and finding.places:
        lines.append(f"    and {rest:,} more")
    return [*lines, f"  help  {finding.help}"]


def _place(place: Place) -> str:
    other = ""
    if place.other is not None:
        where = f"{_printable(place.other_file)}, " if place.other_file else ""
        other = f" ({where}line {place.other})"
    return f"line {place.line}{other}" + (f": {place.text}" if place.text else "")


def _printable(name: str) -> str:
    # A terminal obeys what some names of files have in them.
    return name if name.isprintable() else repr(name)


def _verdict(report: Report) -> str:
    counts = [
        f"{count} {level}" + "s" * (count > 1)
        for level in ("error", "warning", "note")
        if (count := sum(finding.level == level for finding in report.findings))
    ]
    return ", ".join(counts) if counts else "nothing found"
