"""Training the members of an ensemble, each in a process of its own.

Members differ in their seed alone. Each has a whole model directory inside the ensemble's,
which can be used and resumed by itself.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from regard.errors import InputError, RegardError, explain
from regard.files import read_json
from regard.seq2seq.checkpoint import is_run
from regard.seq2seq.claim import ENSEMBLE, claim_directory, other_kind
from regard.seq2seq.clock import Clock
from regard.seq2seq.ensemble import save_ensemble
from regard.seq2seq.events import InterruptedRun, Progress, TrainResult
from regard.seq2seq.interrupt import Interruption
from regard.seq2seq.job import JobSettings, train_pairs
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.train import SAVE_EVERY
from regard.seq2seq.workers import (
    Worker,
    cores,
    ignore_interrupts,
    side_by_side,
    started,
)

__all__ = ["train_ensemble"]

_PATIENCE = 60.0  # seconds that a worker has to finish its step and save
_PAUSE = 0.5  # seconds between two events of a worker; looks are always sent

OnMember = Callable[[int, Progress], None]


@dataclass(frozen=True)
class _Order:
    """What a worker is told to do."""

    pairs: Pairs
    held_out: Pairs
    settings: JobSettings
    directory: str
    began: float  # by time.time(): from when its budget counts
    threads: int
    more: dict[str, Any]


@dataclass
class _Member(Worker):
    member: int
    step: int = 0


def train_ensemble(
    pairs: Pairs,
    held_out: Pairs,
    settings: JobSettings,
    *,
    directory: str | Path,
    members: int,
    jobs: int | None = None,
    threads: int = 1,
    force: bool = False,
    resume: bool = False,
    made_by: Mapping[str, Any] | None = None,
    on_progress: OnMember | None = None,
    save_every: float = SAVE_EVERY,
    device: str = "cpu",
    clock: Clock | None = None,
) -> list[TrainResult]:
    """Train models that differ in their seed, to answer together.

    Parameters
    ----------
    pairs, held_out, settings
        As :func:`~regard.seq2seq.job.train_pairs` takes them. Member n has the seed plus n. A
        time budget by the wall clock is that of all members together: where they do not all fit
        side by side, each has its part of it. By the CPU's clock each has an equal share.
    directory : path
        Of the ensemble; members are directories ``0``, ``1``, ... in it.
    members : int
        At least 1.
    jobs : int, optional
        Members trained at a time; by default one for as many threads as there are cores.
    threads : int
        Of each member.
    force, resume, made_by, save_every, device
        As :func:`~regard.seq2seq.job.train_pairs` takes them.
    on_progress : callable, optional
        Gets the member's number and a :class:`~regard.seq2seq.events.Progress`, twice a second
        and at each look.
    clock : Clock, optional
        Of the whole, by which time has passed already.

    Returns
    -------
    results : list of TrainResult
        In the order of the members.

    Raises
    ------
    InputError
        As :func:`~regard.seq2seq.job.train_pairs` does, or the ensemble in the directory has
        another number of members.
    InterruptedRun
        SIGINT or SIGTERM came; every member has saved.
    WorkerError
        A member's process died.
    """
    where = Path(directory)
    jobs = min(members, jobs or max(1, cores() // threads))
    began = time.time() - (clock.elapsed() if clock is not None else 0.0)
    settings = _shared(settings, members, jobs)
    names = [str(member) for member in range(members)]
    _claim(where, names, force=force, resume=resume)
    more = {"made_by": dict(made_by or {}), "save_every": save_every, "device": device}

    def order(member: int) -> _Order:
        path = where / names[member]
        goes_on = resume and path.is_dir()
        seed = settings.train.seed + member
        training = replace(settings.train, seed=seed)
        return _Order(
            pairs,
            held_out,
            replace(settings, train=training),
            str(path),
            began if member < jobs else time.time(),
            threads,
            more | {"resume": goes_on, "force": force or (resume and not goes_on)},
        )

    with (
        Interruption() as interruption,
        side_by_side(threads, patience=_PATIENCE) as workers,
    ):
        found: dict[int, TrainResult] = {}
        waiting = list(range(members))
        while len(found) < members:
            while waiting and len(workers) < jobs:
                workers.append(_start(waiting.pop(0), order))
            for ready in wait([worker.pipe for worker in workers], timeout=0.2):
                worker = next(w for w in workers if w.pipe is ready)
                said = _receive(worker)
                if isinstance(said, TrainResult):
                    found[worker.member] = said
                    worker.process.join()
                    worker.pipe.close()
                    workers.remove(worker)
                elif on_progress is not None:
                    on_progress(worker.member, said)
            if interruption.asked:
                raise InterruptedRun(
                    max((w.step for w in workers), default=0), interruption.asked
                )
    return [found[member] for member in range(members)]


def _shared(settings: JobSettings, members: int, jobs: int) -> JobSettings:
    """Give each member its part of a time budget."""
    training = settings.train
    if not training.time_budget:
        return settings
    parts = members if training.clock == "cpu" else math.ceil(members / jobs)
    return replace(settings, train=replace(training, time_budget=training.time_budget / parts))


def _claim(where: Path, names: Sequence[str], *, force: bool, resume: bool) -> None:
    path = where / ENSEMBLE
    begun = path.is_file()
    if is_run(where):
        raise other_kind(
            where,
            wanted="an ensemble",
            found="the run of one model",
            help="give --ensemble 1",
        )
    if resume and begun and read_json(path).get("members") != list(names):
        raise InputError(
            explain(
                f"{where}: the ensemble in it has another number of members",
                expected=f"{len(read_json(path).get('members', []))}, as {ENSEMBLE} says",
                got=f"{len(names)}",
                help="resume with the number of the first sitting",
            )
        )
    if resume and not where.is_dir():
        raise InputError(
            explain(
                f"{where}: there is no such directory",
                expected="the directory of an ensemble that was begun",
                got="nothing",
                help="leave --resume out to begin",
            )
        )
    claim_directory(
        where,
        names={ENSEMBLE},
        is_ours=lambda place: (place / ENSEMBLE).is_file(),
        force=force,
        resume=resume and begun,
    )
    save_ensemble(where, names)


def _start(member: int, order: Callable[[int], _Order]) -> _Member:
    return _Member(*started(_serve, order(member)), member)


def _receive(worker: _Member) -> Progress | TrainResult:
    said = worker.receive(
        f"of member {worker.member}", wanted="a trained model", patience=_PATIENCE
    )
    if isinstance(said, Exception):
        raise said
    if isinstance(said, Progress):
        worker.step = said.step
    assert isinstance(said, Progress | TrainResult)  # all that a worker sends
    return said


def _serve(pipe: Connection, order: _Order) -> None:
    """Train one member."""
    ignore_interrupts()
    torch.set_num_threads(order.threads)
    sent_at = 0.0

    def show(event: Progress) -> None:
        nonlocal sent_at
        now = time.monotonic()
        if event.evaluation is not None or event.step == event.total or now - sent_at > _PAUSE:
            sent_at = now
            try:
                pipe.send(event)
            except OSError:
                # The parent was killed: whoever resumes the run must find it alone.
                os._exit(1)

    kind = order.settings.train.clock
    spent = max(0.0, time.time() - order.began) if kind == "wall" else time.process_time()
    try:
        _, result = train_pairs(
            order.pairs,
            order.held_out,
            order.settings,
            directory=order.directory,
            on_progress=show,
            clock=Clock(kind, spent=spent),
            **order.more,
        )
        pipe.send(result)
    except InterruptedRun:
        return
    except RegardError as error:
        pipe.send(error)
