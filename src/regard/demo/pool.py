"""Independent jobs on several processes: one process a core, one thread each.

Workers are asked to stop with SIGTERM only. They ignore Ctrl-C, which a terminal sends to the
whole group: the parent decides, so that each worker is asked once and can save.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from regard.demo.plan import Job
from regard.errors import InputError, RegardError, explain
from regard.files import write_json

__all__ = ["Event", "WorkerError", "cores", "run_jobs"]

_PATIENCE = 20.0  # seconds that a worker has to finish its step and save


class Event(NamedTuple):
    """Something a worker said."""

    job: Job
    share: float
    """Done of the job, 0 to 1; 1 means that its result is written."""
    said: str


class WorkerError(RegardError, RuntimeError):
    """A worker process ended without being asked to."""


class _Worker(NamedTuple):
    process: Any
    pipe: Connection


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_jobs(
    jobs: Sequence[Job],
    directory: Path,
    model: Path,
    *,
    processes: int,
    on_event: Callable[[Event], None],
    asked_to_stop: Callable[[], bool],
) -> bool:
    """Do all jobs; a finished one has ``directory/NAME.json``.

    Parameters
    ----------
    jobs : sequence of Job
        Started in this order.
    directory : path
        For results and checkpoints.
    model : path
        For the letters-to-sounds model.
    processes : int
        At most this many at once.
    on_event : callable
        Gets every :class:`Event`.
    asked_to_stop : callable
        Asked several times a second; on True the workers save and stop.

    Returns
    -------
    finished : bool
        False if it was stopped.

    Raises
    ------
    WorkerError
        A process died; the text says how.
    RegardError
        What a job raised.
    """
    waiting = list(reversed(jobs))
    with _workers(min(processes, len(jobs))) as workers:
        busy: dict[Connection, Job] = {}
        idle = [worker.pipe for worker in workers]
        while waiting or busy:
            while waiting and idle:
                pipe, job = idle.pop(), waiting.pop()
                pipe.send((job.work, str(directory), job.name, str(model)))
                busy[pipe] = job
            for ready in wait(list(busy), timeout=0.2):
                assert isinstance(ready, Connection)  # only pipes are waited for
                event = _receive(ready, busy[ready], workers)
                on_event(event)
                if event.share == 1:
                    del busy[ready]
                    idle.append(ready)
            if asked_to_stop():
                return False
    return True


def _receive(pipe: Connection, job: Job, workers: Sequence[_Worker]) -> Event:
    try:
        kind, share, said = pipe.recv()
    except (EOFError, ConnectionResetError) as error:
        process = next(worker.process for worker in workers if worker.pipe is pipe)
        process.join(_PATIENCE)
        raise WorkerError(
            explain(
                f"the process for job `{job.title}` died",
                expected="a result",
                got=f"exit code {process.exitcode}",
                because="killed, perhaps for want of memory"
                if process.exitcode == -9
                else None,
                help="the same command with --resume goes on",
            )
        ) from error
    if kind == "failed":
        raise InputError(said)
    return Event(job, share, said)


@contextmanager
def _workers(count: int) -> Iterator[list[_Worker]]:
    # Spawned, not forked: a fork of a process that has used torch's threads can hang.
    context = multiprocessing.get_context("spawn")
    workers: list[_Worker] = []
    kept = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            workers.append(_Worker(process, ours))
        yield workers
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _stop(workers)


_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def _stop(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        if worker.process.is_alive():
            worker.process.terminate()
    for worker in workers:
        # Pipes stay open until the end: a worker that still reports must not fail to save.
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.pipe.close()


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from regard.demo.work import do  # noqa: PLC0415 - torch, in the worker only
    from regard.seq2seq.train import InterruptedRun  # noqa: PLC0415

    while True:
        try:
            work, directory, name, model = pipe.recv()
        except EOFError:
            return  # the parent has gone
        result = Path(directory) / f"{name}.json"
        checkpoint = Path(directory) / f"{name}.safetensors"
        try:
            write_json(result, do(work, checkpoint, Path(model), _reporter(pipe)))
            checkpoint.unlink(missing_ok=True)
            pipe.send(("done", 1, ""))
        except InterruptedRun:
            return
        except RegardError as error:
            pipe.send(("failed", 0, str(error)))
            return


def _reporter(pipe: Connection) -> Callable[[float, str], None]:
    last = -1.0

    def report(share: float, said: str) -> None:
        nonlocal last
        # About three hundred events a job are plenty for a progress bar.
        if share - last >= 1 / 300:
            last = share
            pipe.send(("progress", min(share, 0.999), said))

    return report
