"""``--format github``: workflow commands, which show findings beside the changed lines."""

from collections.abc import Sequence

from regard.check.finding import Finding, Report
from regard.check.render.changed import changed
from regard.check.render.wording import plain, shown, status, verdict

__all__ = ["render"]

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(reports: Sequence[Report]) -> str:
    """Return one command a finding; a target without findings is a notice."""
    lines = []
    for report in reports:
        findings = shown(report)
        lines += [_command(finding, report) for finding in findings]
        if not findings:
            file = f" file={_property(report.path)}," if report.path else " "
            target, said = _data(report.target), _data(verdict(report))
            lines.append(f"::notice{file}title=regard check::{target}: {said}")
    return "".join(line + "\n" for line in lines)


def _command(finding: Finding, report: Report) -> str:
    at = finding.location
    where = {"file": at.path, "line": at.line, "endLine": at.end_line, "col": at.column}
    if at.end_line in (0, at.line):  # columns count only within one line
        where["endColumn"] = at.end_column
    where["title"] = f"{finding.code} {finding.name}"
    listed = ",".join(f"{name}={_property(str(v))}" for name, v in where.items() if v)
    return f"::{_COMMANDS[finding.level]} {listed}::{_data(_text(finding, report))}"


def _text(finding: Finding, report: Report) -> str:
    lines = [finding.message]
    lines += [
        f"measured: {m.what} {m.value}" + (f" ({m.required})" if m.required else "")
        for m in finding.evidence.measured
    ]
    if finding.depends_on:
        lines.append(f"only if (a guess): {finding.depends_on}")
    if finding.hidden:
        lines.append(f"hidden: {finding.hidden}")
    for fix in finding.fixes:
        if fix.edits:
            lines.append(f"fix ({status(fix)})")
            lines += [f"{sign} {line}" for sign, line in changed(report.source, fix.edits)]
    return plain("\n".join(lines))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
