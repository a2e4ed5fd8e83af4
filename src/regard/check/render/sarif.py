"""``--format sarif``: SARIF 2.1.0, which code scanning and editors read.

Tensors on the way to a finding are its code flow, a proven edit is its fix, and the evidence
and the proof are its properties. Fingerprints hold no line numbers, so that an alert survives
edits elsewhere in the file; suppressed findings stay, with their reasons.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from regard.check.finding import Edit, Finding, Fix, Location, Report
from regard.check.render.json_ import dumped
from regard.check.render.wording import axes, is_limit, plain, shown, status
from regard.version import __version__

if TYPE_CHECKING:  # a record to read; the rules themselves are handed in
    from regard.check.rules import Rule

__all__ = ["render"]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render(reports: Sequence[Report], *, rules: Iterable["Rule"] = ()) -> str:
    """Return the log of one run.

    Parameters
    ----------
    reports : sequence of Report
    rules : iterable of Rule
        Rules that may occur; those that do are described in the log.
    """
    used = {finding.code for report in reports for finding in report.findings}
    described = [_rule(rule) for rule in rules if rule.code in used]
    at = {rule["id"]: number for number, rule in enumerate(described)}
    limits = [f for report in reports for f in shown(report) if is_limit(f)]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "regard",
                "semanticVersion": __version__,
                "rules": described,
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not limits,
                "toolExecutionNotifications": [_notification(finding) for finding in limits],
            }
        ],
        "results": [
            _result(finding, at)
            for report in reports
            for finding in report.findings
            if not is_limit(finding)
        ],
        "properties": {"targets": [_target(report) for report in reports]},
    }
    return dumped({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: "Rule") -> dict[str, Any]:
    said = f"{rule.what}\n\nRelation: {rule.equation}\n\nTo mend it: {rule.recipe}"
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.what},
        "help": {"text": f"{said}\n\nNot a bug: {rule.not_a_bug}"},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(finding: Finding, at: dict[str, int]) -> dict[str, Any]:
    evidence = finding.evidence
    result: dict[str, Any] = {"ruleId": finding.code}
    if finding.code in at:
        result["ruleIndex"] = at[finding.code]
    result |= {
        "level": finding.level,
        "message": {"text": plain(finding.message)},
        "locations": [{"physicalLocation": _physical(finding.location)}],
        "partialFingerprints": {"regard/v1": finding.fingerprint or finding.code},
    }
    if finding.trace:
        result["codeFlows"] = [{"threadFlows": [{"locations": _flow(finding)}]}]
    fixes = [_fix(fix, finding.location.path) for fix in finding.fixes if _applies(fix)]
    if fixes:
        result["fixes"] = fixes
    if finding.suppressed:
        result["suppressions"] = [{"kind": "inSource", "justification": finding.suppressed}]
    result["properties"] = {
        "target": finding.target,
        "relation": evidence.relation,
        "equation": evidence.equation,
        "measured": [
            " ".join(part for part in (m.what, m.value, m.required) if part)
            for m in evidence.measured
        ],
        "sizes": dict(evidence.sizes),
        "seed": evidence.seed,
        "hidden": finding.hidden,
        "dependsOn": finding.depends_on,
        "fixStatus": [status(fix) for fix in finding.fixes],
    }
    return result


def _applies(fix: Fix) -> bool:
    # A reader may apply what stands here without asking.
    return fix.status == "proven" and bool(fix.edits)


def _flow(finding: Finding) -> list[dict[str, Any]]:
    steps = [(step.line, step.name, step.axes) for step in finding.trace if step.line > 0]
    return [
        {
            "location": {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.location.path)},
                    "region": {"startLine": line},
                },
                "message": {"text": plain(f"{name} {axes(names)}")},
            }
        }
        for line, name, names in steps
    ] + [
        {
            "location": {
                "physicalLocation": _physical(finding.location),
                "message": {"text": plain(finding.message)},
            }
        }
    ]


def _fix(fix: Fix, path: str) -> dict[str, Any]:
    return {
        "description": {"text": fix.description or status(fix)},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": _uri(path)},
                "replacements": [_replacement(edit) for edit in fix.edits],
            }
        ],
    }


def _replacement(edit: Edit) -> dict[str, Any]:
    return {
        "deletedRegion": {
            "startLine": edit.line,
            "startColumn": edit.column,
            "endLine": edit.end_line,
            "endColumn": edit.end_column,
        },
        "insertedContent": {"text": edit.text},
    }


def _notification(finding: Finding) -> dict[str, Any]:
    return {
        "descriptor": {"id": finding.code},
        "level": finding.level,
        "message": {"text": plain(finding.message)},
        "locations": [{"physicalLocation": _physical(finding.location)}],
    }


def _target(report: Report) -> dict[str, Any]:
    return {
        "target": report.target,
        "checked": list(report.checked),
        "notChecked": list(report.not_checked),
        "assumptions": list(report.assumptions),
    }


def _physical(at: Location) -> dict[str, Any]:
    region = {"startLine": max(1, at.line), "startColumn": max(1, at.column)}
    if at.end_line >= at.line and at.end_column:
        region |= {"endLine": at.end_line, "endColumn": at.end_column}
    return {"artifactLocation": {"uri": _uri(at.path)}, "region": region}


def _uri(path: str) -> str:
    text = quote(os.fsencode(path.replace(os.sep, "/")), safe="/~")
    return f"file://{text}" if text.startswith("/") else text
