"""Processes that work side by side, each with so many threads, until all are told to stop.

Workers are asked to stop with SIGTERM only. They ignore Ctrl-C, which a terminal sends to the
whole group: the parent decides, so that each is asked once and can save.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from regard.errors import RegardError, explain

__all__ = ["Worker", "WorkerError", "cores", "ignore_interrupts", "side_by_side", "started"]

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerError(RegardError, RuntimeError):
    """A worker process ended without being asked to."""


@dataclass
class Worker:
    """A process, and the pipe to it."""

    process: Any
    pipe: Connection

    def receive(self, what: str, *, wanted: str, patience: float) -> Any:
        """Return the next thing that it says.

        Parameters
        ----------
        what, wanted : str
            The process and its result, for people.
        patience : float
            Seconds to wait for the exit code of one that said no more.

        Raises
        ------
        WorkerError
            It is dead.
        """
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionResetError) as error:
            self.process.join(patience)
            code = self.process.exitcode
            killed = code == -signal.SIGKILL
            raise WorkerError(
                explain(
                    f"the process {what} died",
                    expected=wanted,
                    got=f"exit code {code}",
                    because="killed, perhaps for want of memory" if killed else None,
                    help="the same command with --resume goes on",
                )
            ) from error


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def started(serve: Callable[..., None], *given: Any) -> tuple[Any, Connection]:
    """Start a process that is called with its end of a pipe, and return it and our end."""
    # Spawned, not forked: a fork of a process that has used torch's threads can hang.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *given), daemon=True)
    process.start()
    theirs.close()
    return process, ours


@contextmanager
def side_by_side(threads: int, *, patience: float) -> Iterator[list[Any]]:
    """Yield an empty list of workers; whoever is in it in the end is asked to save and stop.

    Parameters
    ----------
    threads : int
        That libraries give themselves in processes that are started within the block.
    patience : float
        Seconds that a worker has to stop before it is killed.
    """
    workers: list[Worker] = []
    kept = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, str(threads)))
    try:
        yield workers
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for worker in workers:
            if worker.process.is_alive():
                worker.process.terminate()
        for worker in workers:
            # Pipes stay open until the end: a worker that still reports must not fail to save.
            worker.process.join(patience)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent; called in a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
