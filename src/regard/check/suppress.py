"""``# regard: ignore[RG205] reason``: findings that the author has seen and accepts.

The comment stands on a line of the finding. It names rules by code or name, and says why;
there is no way to silence everything. A comment that silences nothing is reported.
"""

import ast
import dataclasses
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.check.finding import Finding, Report
from regard.check.rules import find
from regard.errors import InputError

__all__ = ["suppress"]

_COMMENT = re.compile(r"#\s*regard:\s*ignore\s*(?P<rules>\[[^\]]*\])?(?P<reason>.*)", re.I)


@dataclass(frozen=True)
class _Ignore:
    """One rule accepted on one line."""

    line: int
    code: str
    reason: str

    def accepts(self, finding: Finding) -> bool:
        first = finding.location.line
        last = max(finding.location.end_line, first)
        return first <= self.line <= last and finding.code == self.code


def suppress(
    report: Report, source: str, *, not_asked: Sequence[str] = ()
) -> tuple[Report, tuple[str, ...]]:
    """Mark the findings that a comment of the source accepts.

    Parameters
    ----------
    report : Report
    source : str
        The text that was checked.
    not_asked : sequence of str
        Codes, or how they begin, that this run did not look for: a comment about them may be
        of use all the same.

    Returns
    -------
    report : Report
        The same findings, some with `suppressed` set to the reason.
    complaints : tuple of str
        Comments that are wrong or silence nothing, as ``file:line: ...``.
    """
    ignores, complaints = _read(source, report.path)
    findings = tuple(_marked(finding, ignores) for finding in report.findings)
    complete = bool(report.checked) and not any(_is_limit(f.code) for f in findings)
    inside = _lines_of(source, report.target.rpartition(":")[2]) if complete else range(0)
    for ignore in ignores:
        known = ignore.line in inside and not ignore.code.startswith(tuple(not_asked))
        if known and not any(ignore.accepts(finding) for finding in findings):
            complaints.append(
                f"{report.path}:{ignore.line}: ignore[{ignore.code}] ignores nothing; remove it"
            )
    return dataclasses.replace(report, findings=findings), tuple(complaints)


def _read(source: str, path: str) -> tuple[list[_Ignore], list[str]]:
    ignores: list[_Ignore] = []
    complaints: list[str] = []
    for line, comment in _comments(source):
        for found in _COMMENT.finditer(comment):
            reason = found["reason"].strip(" \t:-")
            names = [n.strip() for n in (found["rules"] or "")[1:-1].split(",") if n.strip()]
            why = "" if names else "names no rule, as # regard: ignore[RG205] reason does"
            why = why or ("" if reason else "gives no reason")
            for name in names:
                try:
                    ignores += [] if why else [_Ignore(line, find(name).code, reason)]
                except InputError:
                    why = f"knows no rule {name!r}"
            if why:
                what = (found["rules"] or "").strip()
                complaints.append(
                    f"{path}:{line}: ignore{what} {why}; nothing is ignored by it"
                )
    return ignores, complaints


def _comments(source: str) -> Iterator[tuple[int, str]]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError):
        return  # broken files have other worries


def _marked(finding: Finding, ignores: Sequence[_Ignore]) -> Finding:
    if _is_limit(finding.code):
        return finding  # it says that nothing was checked, which is no matter of taste
    reason = next((ignore.reason for ignore in ignores if ignore.accepts(finding)), "")
    return dataclasses.replace(finding, suppressed=reason or finding.suppressed)


def _is_limit(code: str) -> bool:
    return code.startswith("RG9")


def _lines_of(source: str, entry: str) -> range:
    """Lines of a definition: of those it is known what was to be found, of others it is not."""
    body: list[ast.stmt] = ast.parse(source).body
    found: ast.stmt | None = None
    for part in entry.split("."):
        found = next((node for node in body if getattr(node, "name", "") == part), None)
        body = getattr(found, "body", [])
    if found is None:
        return range(0)
    return range(found.lineno, (found.end_lineno or found.lineno) + 1)
