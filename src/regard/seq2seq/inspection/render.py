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
    refused = f", {summary.refused:,} lines refused" if summary.refused else ""
    return (
        f"{summary.role:<5}  {summary.file}: {summary.pairs:,} pairs of {summary.sources:,} "
        f"sources{refused}\n"
        f"       source: {summary.source_symbols:,} symbols, the longest text "
        f"{summary.longest_source:,}; target: {summary.target_symbols:,} and "
        f"{summary.longest_target:,}"
    )


def _finding(finding: Finding) -> list[str]:
    lines = [
        f"{finding.level:<8} {finding.code}  {finding.file}",
        f"  {finding.count:,} {finding.what}",
        *(f"    {_place(place)}" for place in finding.places),
    ]
    rest = finding.count - len(finding.places)
    if rest > 0 and finding.places:
        lines.append(f"    and {rest:,} more")
    return [*lines, f"  help  {finding.help}"]


def _place(place: Place) -> str:
    other = ""
    if place.other is not None:
        where = f"{place.other_file}, " if place.other_file else ""
        other = f" ({where}line {place.other})"
    return f"line {place.line}{other}" + (f": {place.text}" if place.text else "")


def _verdict(report: Report) -> str:
    counts = [
        f"{count} {level}" + "s" * (count > 1)
        for level in ("error", "warning", "note")
        if (count := sum(finding.level == level for finding in report.findings))
    ]
    return ", ".join(counts) if counts else "nothing found"
