"""Check targets in worker processes, some at a time, and settle what counts."""

import contextlib
import dataclasses
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.check.failure import could_not_check
from regard.check.finding import Level, Report
from regard.check.process import ENGINE, WorkerProcess
from regard.check.rules import Selection
from regard.check.settings import Limits
from regard.check.suppress import suppress
from regard.check.target import Target

__all__ = ["Job", "check_jobs", "check_targets", "exit_code", "settle"]

_MANY = 8  # targets from which a second process pays for its start


@dataclass(frozen=True)
class Job:
    """A target with what is declared and asked for it.

    Parameters
    ----------
    target : Target
    contract : mapping or None
        As a contract file has it.
    options : mapping
        Fields of the engine's options: ``seed``, ``flags`` and so on.
    """

    target: Target
    contract: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def check_targets(
    targets: Sequence[Target],
    *,
    contract: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    jobs: int | None = None,
    engine: str = ENGINE,
) -> list[Report]:
    """Check targets and return a report on each, in their order.

    Parameters
    ----------
    targets : sequence of Target
    contract : mapping, optional
        What is declared, the same for all.
    options : mapping, optional
        Fields of the engine's options.
    limits : Limits, optional
        What each target may take.
    jobs : int, optional
        Processes at a time; 1, or 2 where there are many targets.
    engine : str
        ``module:function`` of what checks one text.
    """
    work = [Job(target, contract, options or {}) for target in targets]
    found = dict(check_jobs(work, limits=limits, processes=jobs, engine=engine))
    return [found[index] for index in range(len(work))]


def check_jobs(
    work: Sequence[Job],
    *,
    limits: Limits | None = None,
    processes: int | None = None,
    engine: str = ENGINE,
) -> Iterator[tuple[int, Report]]:
    """Yield the index of a job and its report, as soon as it is there.

    Whatever ends the iteration, an error or Ctrl-C, ends the processes.
    """
    count = min(processes or _default_processes(len(work)), len(work))
    waiting = iter(enumerate(work))
    take = threading.Lock()
    done: queue.Queue[tuple[int, Report] | BaseException] = queue.Queue()
    workers = [WorkerProcess(limits, engine=engine) for _ in range(count)]
    stop = threading.Event()

    def serve(worker: WorkerProcess) -> None:
        try:
            while not stop.is_set():
                with take:
                    index, job = next(waiting, (-1, None))
                if job is None:
                    return
                done.put((index, worker.check(job.target, job.contract, job.options)))
        except BaseException as error:  # raised again where it is seen
            done.put(error)

    threads = [threading.Thread(target=serve, args=(w,), daemon=True) for w in workers]
    try:
        for thread in threads:
            thread.start()
        for _ in work:
            answer = done.get()
            if isinstance(answer, BaseException):
                raise answer
            yield answer
    finally:
        stop.set()
        for worker in workers:
            with contextlib.suppress(OSError):
                worker.close()


def settle(
    report: Report,
    selection: Selection,
    *,
    not_asked: Sequence[str] = (),
    warn: Callable[[str], None] = lambda _: None,
) -> Report:
    """Mark what comments accept, and leave out what is not selected.

    Parameters
    ----------
    report : Report
        Of the engine.
    selection : Selection
        The rules that are wanted.
    not_asked : sequence of str
        Codes, or how they begin, that the engine did not look for.
    warn : callable
        Takes a line about each comment that is wrong or of no use.
    """
    report, complaints = suppress(report, report.source, not_asked=not_asked)
    for complaint in complaints:
        warn(complaint)
    kept = tuple(finding for finding in report.findings if finding.code in selection)
    return dataclasses.replace(report, findings=kept)


def exit_code(reports: Sequence[Report], fail_on: Level = "error") -> int:
    """Return 2 if a target could not be checked, 1 if something was found, else 0.

    Parameters
    ----------
    reports : sequence of Report
    fail_on : "error" | "warning" | "note"
        The mildest level that counts; suppressed findings never do.
    """
    if not reports or any(could_not_check(report) for report in reports):
        return 2
    levels: tuple[Level, ...] = ("error", "warning", "note")
    counted = levels[: levels.index(fail_on) + 1]
    return int(any(report.worst in counted for report in reports))


def _default_processes(count: int) -> int:
    return min(2, os.cpu_count() or 1) if count >= _MANY else 1
