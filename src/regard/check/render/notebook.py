"""What a notebook shows of a report: static HTML without classes, scripts or requests."""

from collections.abc import Sequence
from html import escape

from regard.check.finding import Finding, Report
from regard.check.render import figure, style
from regard.check.render.changed import changed
from regard.check.render.wording import is_unchecked, plain, ran, shown, status, verdict

__all__ = ["render"]


def render(reports: Sequence[Report]) -> str:
    """Return a fragment for ``_repr_html_``: the tensors, the wrong axis outlined, the fix."""
    return "".join(_report(report) for report in reports)


def _report(report: Report) -> str:
    rest = "This is no pass." if is_unchecked(report) else f"{ran(report)}."
    head = f"<p><strong>{verdict(report)}.</strong> {_text(rest)}</p>"
    notes = "".join(
        f"<p>{title}: {_text('; '.join(texts))}.</p>"
        for title, texts in (
            ("Assumed", report.assumptions),
            ("Not checked", report.not_checked),
        )
        if texts
    )
    body = "".join(_finding(finding, report) for finding in shown(report))
    return f'<div style="{style.SNIPPET}">{head}{body}{notes}</div>\n'


def _finding(finding: Finding, report: Report) -> str:
    at = finding.location
    code = f"{finding.level}[{finding.code}] {finding.name}"
    where = f"{at.path}:{at.line}:{at.column}"
    parts = [
        f"<p><strong>{_text(code)}</strong> <code>{_text(where)}</code><br>"
        f"{_text(finding.message)}</p>",
        figure.tensors(finding, report),
    ]
    if finding.hidden:
        parts.append(f"<p>Hidden: {_text(finding.hidden)}</p>")
    if finding.depends_on:
        parts.append(f"<p>Only if (a guess): {_text(finding.depends_on)}</p>")
    for number, fix in enumerate(finding.fixes, 1):
        title = "Fix" if len(finding.fixes) == 1 else f"Choice {number}"
        if fix.edits:
            lines = "\n".join(f"{s} {line}" for s, line in changed(report.source, fix.edits))
            parts.append(f"<p>{title} ({_text(status(fix))})</p><pre>{_text(lines)}</pre>")
        else:
            parts.append(f"<p>No fix: {_text(fix.description)}</p>")
    return "".join(parts)


def _text(text: str) -> str:
    return escape(plain(text))
