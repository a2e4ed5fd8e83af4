"""Words that several formats share, and what may stand in them."""

import unicodedata
from collections.abc import Iterable, Sequence

from regard.check.finding import Finding, Fix, Level, Report

__all__ = [
    "LEVELS",
    "axes",
    "axes_of",
    "count",
    "is_limit",
    "is_unchecked",
    "plain",
    "ran",
    "shown",
    "status",
    "tally",
    "verdict",
]

LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""Worst first."""


def plain(text: str) -> str:
    r"""Return a text whose control characters are visible: a file may hold anything.

    >>> plain("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode("ascii")
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"
        else c
        for c in text
    )


def count(number: int, noun: str) -> str:
    """Return ``1 error`` or ``2 errors``; the plural has an s.

    >>> count(1, "error"), count(3, "size")
    ('1 error', '3 sizes')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def axes(names: Sequence[str]) -> str:
    """Return ``(batch, T_dec)``; one axis keeps its comma, as in Python.

    >>> axes(("batch", "T_dec")), axes(("T_dec",)), axes(())
    ('(batch, T_dec)', '(T_dec,)', '()')
    """
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def axes_of(finding: Finding, report: Report) -> dict[int, tuple[str, ...]]:
    """Return the axes of the last tensor that each line made, by line."""
    steps = (*report.tensors, *finding.trace)
    return {step.line: step.axes for step in steps if step.line > 0}


def shown(report: Report) -> list[Finding]:
    """Return the findings that are not suppressed."""
    return [finding for finding in report.findings if not finding.suppressed]


def is_limit(finding: Finding) -> bool:
    """Return whether it tells why nothing could be checked, rather than what is wrong."""
    return finding.code.startswith("RG9")


def tally(findings: Iterable[Finding]) -> str:
    """Return ``1 error, 2 warnings``; "" for none."""
    found = [finding.level for finding in findings]
    return ", ".join(count(found.count(level), level) for level in LEVELS if level in found)


def is_unchecked(report: Report) -> bool:
    """Return whether a report says nothing about the attention: its silence is no pass."""
    findings = shown(report)
    if findings:
        return all(is_limit(finding) for finding in findings)
    return not report.checked


def verdict(report: Report) -> str:
    """Return what a report comes to, as the start of a sentence."""
    findings = shown(report)
    if is_unchecked(report):
        return "Could not check" if findings else "Nothing was checked"
    hidden = len(report.findings) - len(findings)
    said = tally(findings) or "No findings"
    return said + (f" ({hidden} suppressed)" if hidden else "")


def ran(report: Report) -> str:
    """Return ``Ran 12 relations on attend(query, keys) at 3 sizes, seed 0``."""
    where = f" at {count(len(report.sizes), 'size')}" if report.sizes else ""
    what = report.signature or report.target
    return f"Ran {count(len(report.checked), 'relation')} on {what}{where}, seed {report.seed}"


def status(fix: Fix) -> str:
    """Return how far a fix may be trusted: ``proven: 6 -> 12 of 12 relations hold, ...``."""
    if fix.status == "sketch":
        return "a sketch: not run, never applied"
    word = "proven" if fix.status == "proven" else f"proven if {fix.condition or 'you say so'}"
    if fix.proof is None:
        return word
    proof = fix.proof
    stretched = (
        "nothing broadcasts"
        if proof.broadcasts == 0
        else f"{count(proof.broadcasts, 'operation')} newly broadcast"
    )
    return (
        f"{word}: {proof.before} -> {proof.after} of {proof.of} relations hold, "
        f"at {count(proof.sizes, 'size')}; {stretched}"
    )
