"""A target that could not be checked, as a report: the reason is a finding of group RG9."""

from dataclasses import dataclass
from typing import Literal

from regard.check.finding import Evidence, Finding, Location, Report
from regard.check.target import Target

__all__ = ["Failure", "could_not_check", "failed", "told"]

_NAMES = {
    "RG901": "could-not-load",
    "RG902": "could-not-build-inputs",
    "RG903": "not-repeatable",
    "RG904": "nothing-checked",
}
_TOLD = "RG902"
_LAST, _LONGEST = 5, 200  # lines, and characters of a line, of what code said
_HELP = {
    "time": "--time allows more seconds",
    "memory": "--memory allows more MiB",
    "refused": "code under check may read files, and may write below the temporary folder only",
    "defect": "this is a defect of regard, not of the code",
}


Kind = Literal[
    "syntax",  # the file is no Python
    "unread_file",  # it, or the target in it, is not to be found
    "raised",  # an exception, from the user's code
    "quit",  # sys.exit
    "told",  # an error that regard raised on purpose
    "refused",
    "time",
    "memory",
    "signal",
    "exit",
    "start",  # of the process
    "unread",  # the answer
    "defect",  # an exception of ours
]


@dataclass(frozen=True)
class Failure:
    """Why there is nothing to report.

    Parameters
    ----------
    kind : Kind
        What happened; the rest says how.
    text : str
        The detail: a limit, a signal, an error's own words.
    line, column : int
        Where in the file, 0 if that is not known.
    loading : bool
        Whether the file was still being loaded.
    said : str
        What the code printed last.
    """

    kind: Kind
    text: str
    line: int = 0
    column: int = 1
    loading: bool = False
    said: str = ""


def failed(target: Target, failure: Failure) -> Report:
    """Return the report that says why a target was not checked."""
    message = _message(target, failure)
    code = _code(failure)
    finding = Finding(
        code=code,
        name=_NAMES[code],
        level="error",
        target=target.name,
        message=message,
        location=Location(target.path, max(failure.line, 1), failure.column),
        evidence=Evidence(relation="", equation="", quote=_quoted(failure)),
        also=_HELP.get(failure.kind, ""),
        fingerprint=f"{code}:{target.name}",
    )
    return Report(
        target=target.name,
        findings=(finding,),
        not_checked=("every relation",),
        source=target.source,
        path=target.path,
    )


def told(report: Report) -> str:
    """Return the text of an error that regard raised about what was stated; "" for none."""
    first = report.findings[0] if len(report.findings) == 1 else None
    is_told = first is not None and first.code == _TOLD and not report.checked
    return first.message if is_told and first is not None and "\n" in first.message else ""


def could_not_check(report: Report) -> bool:
    """Whether a report says nothing about the code: exit code 2."""
    limits = [f for f in report.findings if f.code.startswith("RG9")]
    return len(limits) == len(report.findings) and (bool(limits) or not report.checked)


def _quoted(failure: Failure) -> str:
    """The last lines of what was said: training prints thousands before it is ended."""
    if failure.kind == "defect":
        return failure.said  # a traceback of ours, for whoever mends it
    lines = failure.said.splitlines()
    last = [
        line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..." for line in lines[-_LAST:]
    ]
    return "\n".join(["...", *last] if len(lines) > _LAST else last)


def _code(failure: Failure) -> str:
    if failure.kind == "told":
        return _TOLD
    if failure.loading or failure.kind in ("syntax", "unread_file", "start"):
        return "RG901"
    return "RG904"


def _message(target: Target, failure: Failure) -> str:
    what = f"`{target.entry or target.path}`"
    when = "could not be loaded" if failure.loading else "could not be run"
    first = failure.text.splitlines()[0] if failure.text else ""
    texts = {
        "syntax": f"the file is no Python: {first}",
        "unread_file": failure.text,
        "raised": f"{what} {when}: {first}",
        "quit": f"{what} {when}: it called {first}",
        "told": failure.text,
        "refused": f"{what} {when}: it tried to {first}, which is refused",
        "time": f"{what} {when} within {first}",
        "memory": f"{what} {when} within {first} of memory",
        "signal": f"{what} {when}: the process died of {first}",
        "exit": f"{what} {when}: the process ended itself, {first}",
        "start": f"the process that runs {what} did not start: {first}",
        "unread": f"the answer about {what} cannot be read: {first}",
        "defect": f"checking {what} failed inside regard: {first}",
    }
    return texts[failure.kind]
