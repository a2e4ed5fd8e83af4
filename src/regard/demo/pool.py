"""Independent jobs on several processes: one process a core, one thread each."""

from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple

from regard.demo.plan import Job
from regard.errors import InputError, RegardError
from regard.files import write_json
from regard.seq2seq.workers import Worker, ignore_interrupts, side_by_side, started

__all__ = ["Event", "run_jobs"]

_PATIENCE = 20.0  # seconds that a worker has to finish its step and save


class Event(NamedTuple):
    """Something a worker said."""

    job: Job
    share: float
    """Done of the job, 0 to 1; 1 means that its result is written."""
    said: str


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
    with side_by_side(1, patience=_PATIENCE) as workers:
        busy: dict[Connection, Job] = {}
        for _ in range(min(processes, len(jobs))):
            workers.append(Worker(*started(_serve)))
        known = {worker.pipe: worker for worker in workers}
        idle = list(known)
        while waiting or busy:
            while waiting and idle:
                pipe, job = idle.pop(), waiting.pop()
                pipe.send((job.work, str(directory), job.name, str(model)))
                busy[pipe] = job
            for ready in wait(list(busy), timeout=0.2):
                assert isinstance(ready, Connection)  # only pipes are waited for
                event = _receive(known[ready], busy[ready])
                on_event(event)
                if event.share == 1:
                    del busy[ready]
                    idle.append(ready)
            if asked_to_stop():
                return False
    return True


def _receive(worker: Worker, job: Job) -> Event:
    kind, share, said = worker.receive(
        f"for job `{job.title}`", wanted="a result", patience=_PATIENCE
    )
    if kind == "failed":
        raise InputError(said)
    return Event(job, share, said)


def _serve(pipe: Connection) -> None:
    ignore_interrupts()
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
