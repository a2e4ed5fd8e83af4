"""``--format junit``: one suite a target, one case a relation; a finding is a failed case."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from regard.check.finding import Finding, Report
from regard.check.render.text import finding_text
from regard.check.render.wording import LEVELS, is_limit, plain, shown

__all__ = ["render"]

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(reports: Sequence[Report], *, fail_on: str = "error") -> str:
    """Return the XML that test dashboards read.

    Parameters
    ----------
    reports : sequence of Report
    fail_on : "error", "warning" or "note"
        Findings below this level are passed cases with an output.
    """
    root = ET.Element("testsuites", name="regard check")
    for report in reports:
        root.append(_suite(report, LEVELS[: LEVELS.index(fail_on) + 1]))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(report: Report, failing: Sequence[str]) -> ET.Element:
    suite = ET.Element("testsuite", name=_legal(report.target))
    broken = {finding.evidence.relation for finding in report.findings}
    for relation in report.checked:
        if relation not in broken:
            _case(suite, report, relation)
    for finding in report.findings:
        name = f"{finding.code} {finding.name}: {finding.evidence.relation}"
        case = _case(suite, report, name)
        if finding.suppressed:
            ET.SubElement(case, "skipped", message=_legal(finding.suppressed))
        elif finding.level not in failing:
            ET.SubElement(case, "system-out").text = _legal(finding_text(finding, report))
        else:
            _fail(case, finding, report)
    if not report.checked and not shown(report):
        case = _case(suite, report, "nothing was checked")
        ET.SubElement(case, "error", message="nothing was checked", type="RG904")
    kinds = {"tests": "testcase", "failures": "failure", "errors": "error"}
    for name, tag in {**kinds, "skipped": "skipped"}.items():
        suite.set(name, str(len(suite.findall(f".//{tag}"))))
    return suite


def _case(suite: ET.Element, report: Report, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_legal(report.target), name=_legal(name))


def _fail(case: ET.Element, finding: Finding, report: Report) -> None:
    kind = "error" if is_limit(finding) else "failure"
    told = ET.SubElement(case, kind, message=_legal(finding.message), type=finding.code)
    told.text = _legal(finding_text(finding, report))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("?", plain(text))
