"""What a worker process answered, or how it ended, as a report."""

import contextlib
import dataclasses
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.check.confine import REFUSAL
from regard.check.failure import Failure, failed
from regard.check.finding import Report
from regard.check.settings import Limits
from regard.check.target import Target
from regard.check.wire import load

__all__ = ["read_answer"]

_OUT_OF_MEMORY = re.compile(r"bad_alloc|MemoryError|DefaultCPUAllocator|Unable to allocate")


def read_answer(
    target: Target, answer: Mapping[str, Any], *, trace: str, said: str, limits: Limits
) -> Report:
    """Return the report that a worker sent, or one that says why it sent none.

    Parameters
    ----------
    target : Target
    answer : mapping
        ``report`` (a report's JSON) or ``failed`` (an exception's description), ``refused``
        (what the code was not let), and how the process ended: ``status`` (exit code, negative
        for a signal), ``late``, ``not_started``.
    trace : str
        What the fault handler wrote.
    said : str
        The end of what the code printed.
    limits : Limits
        What it was given.
    """
    refused = tuple(str(item) for item in answer.get("refused") or ())
    if "report" in answer:
        try:
            report = load(Report, answer["report"])
        except (ValueError, TypeError) as error:
            return failed(target, Failure("unread", str(error), said=said))
        return _honest(target, report, refused, limits)
    if "failed" in answer:
        failure = _raised(answer["failed"], refused, limits)
    else:
        failure = _ended(answer, _where(trace, target.path), said, limits)
    return failed(target, dataclasses.replace(failure, said=failure.said or said))


def _honest(target: Target, report: Report, refused: Sequence[str], limits: Limits) -> Report:
    """Blame no bug for what the limits of the process did."""
    texts = [f.evidence.quote or f.message for f in report.findings]
    line = next((f.location.line for f in report.findings), 0)
    if any(_OUT_OF_MEMORY.search(text) for text in texts):
        return failed(target, Failure("memory", f"{limits.memory} MiB", line))
    if not refused:
        return report
    if any(REFUSAL in text for text in texts) or not report.checked:
        # The first is what the file itself tried; later ones may be edits that were tried.
        return failed(target, Failure("refused", refused[0], line))
    notes = tuple(f"what follows when the code may {what}: refused" for what in refused)
    return dataclasses.replace(report, not_checked=report.not_checked + notes)


def _raised(error: Mapping[str, Any], refused: Sequence[str], limits: Limits) -> Failure:
    """Explain an exception that passed through the engine."""
    kind, text = error["type"], error["text"]
    line, loading = error["line"], error["loading"]
    full = f"{kind}: {text}" if text else kind
    if error["memory"]:
        return Failure("memory", f"{limits.memory} MiB", line, loading=loading, said=text)
    if kind == "SystemExit":
        full = f"sys.exit({text})"
    if kind == "Refused" and refused:
        return Failure("refused", refused[-1], line, loading=loading)
    if error["regards"]:
        return Failure("told", text, line)
    if not line:
        return Failure("defect", full, said=error["trace"])
    return Failure("quit" if kind == "SystemExit" else "raised", full, line, loading=loading)


def _ended(answer: Mapping[str, Any], where: "_Where", said: str, limits: Limits) -> Failure:
    """Explain a process that ended, or was ended, without an answer."""
    line, loading = where.line, where.loading
    status = answer.get("status")
    if answer.get("not_started"):
        return Failure("start", _name(status))
    if answer.get("late"):
        still = f", still in `{where.function}`" if line and not loading else ""
        return Failure("time", f"{limits.seconds:g} s{still}", line, loading=loading)
    if _OUT_OF_MEMORY.search(said):
        return Failure("memory", f"{limits.memory} MiB", line, loading=loading)
    if isinstance(status, int) and status < 0:
        return Failure("signal", _name(status), line, loading=loading)
    return Failure("exit", _name(status), line, loading=loading)


@dataclass(frozen=True)
class _Where:
    """Where in the user's file a process was when it ended."""

    line: int = 0
    function: str = ""
    loading: bool = False


def _where(trace: str, path: str) -> _Where:
    frames = re.findall(r'File "(.*)", line (\d+) in (.*)', trace)  # the innermost first
    place = os.path.abspath(path)
    own = [(int(line), name) for file, line, name in frames if os.path.abspath(file) == place]
    return _Where(*own[0], own[-1][1] == "<module>") if own else _Where()


def _name(status: Any) -> str:
    if isinstance(status, int) and status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit code {status}"
