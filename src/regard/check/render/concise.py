"""``--format concise``: one line a finding, as editors and ``grep`` read them."""

from collections.abc import Sequence

from regard.check.finding import Report
from regard.check.render.wording import count, plain, shown, verdict

__all__ = ["render"]


def render(reports: Sequence[Report]) -> str:
    """Return one line a finding; a target without findings says what was checked."""
    lines = []
    for report in reports:
        findings = shown(report)
        for finding in findings:
            at = finding.location
            fix = f" [{finding.fix.status} fix]" if finding.fix and finding.fix.edits else ""
            guess = f" [if {finding.depends_on}]" if finding.depends_on else ""
            lines.append(
                f"{at.path}:{at.line}:{at.column}: {finding.level}[{finding.code}] "
                f"{finding.name}: {' '.join(finding.message.split())}{guess}{fix}"
            )
        if not findings:
            said = verdict(report)
            ran = f"; {count(len(report.checked), 'relation')} ran" if report.checked else ""
            lines.append(f"{report.target}: {said[0].lower()}{said[1:]}{ran}")
    return "".join(plain(line) + "\n" for line in lines)
