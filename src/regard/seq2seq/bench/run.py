"""Doing the runs of a bench: members side by side, a result file for each run."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import InputError, RegardError, explain
from regard.seq2seq.bench.machine import machine
from regard.seq2seq.bench.member import RESULT, STOPPED
from regard.seq2seq.bench.plan import Run
from regard.seq2seq.bench.score import score
from regard.seq2seq.files import read_json, write_json

__all__ = ["MemberError", "do_runs", "result_of"]

_RUNS = "runs"
_WORK = "work"


class MemberError(RegardError, RuntimeError):
    """A member's process failed."""


def result_of(out: Path, run: Run) -> dict[str, Any] | None:
    """Return the result of a run, or None if it is not finished."""
    path = out / _RUNS / f"{run.name}.json"
    return read_json(path) if path.exists() else None


def do_runs(
    runs: Sequence[Run],
    out: Path,
    *,
    jobs: int,
    data_dir: str | None = None,
    seconds: float | None = None,
    clock: str = "wall",
    on_start: Callable[[Run, float], None] = lambda run, seconds: None,
    on_result: Callable[[Run, dict[str, Any]], None] = lambda run, result: None,
    asked_to_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Do the runs that have no result yet.

    Parameters
    ----------
    runs : sequence of Run
    out : path
        Gets ``runs/NAME.json`` for each; what is there already is not done again.
    jobs : int
        Cores: that many members are trained at once, each with one thread.
    data_dir : str, optional
        Where data that do not ship are.
    seconds : float, optional
        Instead of each recipe's time.
    clock : {"wall", "cpu"}
        What the time is measured by. With ``cpu`` a run takes longer on a busy machine and
        comes to the same.
    on_start, on_result : callable
        Told of each run that begins, with its seconds, and of each that ends.
    asked_to_stop : callable
        Asked several times a second.

    Returns
    -------
    finished : bool
        False if it was stopped; the next call goes on where this one was.

    Raises
    ------
    MemberError
        A member's process failed.
    InputError
        A finished run in `out` had another budget, clock or number of members.

    Notes
    -----
    The time is that of the whole run on `jobs` cores: of more members than cores, each gets its
    share. Starting a process and scoring the test part are not counted.
    """
    for run in runs:
        recipe = run.recipe(data_dir)
        budget: dict[str, Any] = {
            "seconds": recipe.seconds if seconds is None else seconds,
            "clock": clock,
            "members": recipe.members,
            "cores": jobs,
        }
        found = result_of(out, run)
        if found is not None:
            _same_budget(run, found["budget"], budget, out)
            continue
        on_start(run, budget["seconds"])
        began = time.monotonic()
        if not _train(run, out, budget, data_dir, asked_to_stop):
            return False
        directories = [_member(out, run, m) for m in range(recipe.members)]
        result = {
            "task": run.task,
            "title": recipe.title,
            "seed": run.seed,
            "budget": budget,
            "beam": recipe.beam,
            **score(recipe, directories),
            "members": [read_json(directory / RESULT) for directory in directories],
            "wall_seconds": round(time.monotonic() - began, 1),
            "machine": machine(),
        }
        (out / _RUNS).mkdir(parents=True, exist_ok=True)
        write_json(out / _RUNS / f"{run.name}.json", result)
        shutil.rmtree(out / _WORK / run.name)
        on_result(run, result)
    return True


def _same_budget(run: Run, before: dict[str, Any], now: dict[str, Any], out: Path) -> None:
    if before != now:
        raise InputError(
            explain(
                f"{out}: {run.name} was done with another budget",
                expected=json.dumps(before),
                got=json.dumps(now),
                because="results of one bench stand in one table",
                help="give the same options again, or choose another --out",
            )
        )


def _member(out: Path, run: Run, member: int) -> Path:
    return out / _WORK / run.name / f"member-{member}"


def _train(
    run: Run,
    out: Path,
    budget: dict[str, Any],
    data_dir: str | None,
    asked_to_stop: Callable[[], bool],
) -> bool:
    """Train all members, as many at once as there are cores; False if it was stopped."""
    members, cores = budget["members"], budget["cores"]
    waiting = [m for m in range(members) if not (_member(out, run, m) / RESULT).exists()]
    (out / _WORK / run.name).mkdir(parents=True, exist_ok=True)
    stopped = False
    with _ended() as running:
        while running or (waiting and not stopped):
            while waiting and len(running) < cores and not stopped:
                member = waiting.pop(0)
                running[member] = _start(
                    {
                        "run": {"task": run.task, "seed": run.seed, "data_dir": data_dir},
                        "directory": str(_member(out, run, member)),
                        "member": member,
                        "seconds": budget["seconds"] * min(1.0, cores / members),
                        "clock": budget["clock"],
                    }
                )
            time.sleep(0.1)
            for member, process in list(running.items()):
                if process.poll() is not None:
                    del running[member]
                    asked = stopped or asked_to_stop()
                    stopped |= _ended_by_asking(process, run, member, asked=asked)
            if asked_to_stop() and not stopped:
                stopped = True
                for process in running.values():
                    process.terminate()  # it saves
    return not stopped


def _start(given: dict[str, Any]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "regard.seq2seq.bench.member"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Products of small matrices gain nothing from threads that wait for each other.
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None  # a pipe
    process.stdin.write(json.dumps(given))
    process.stdin.close()
    return process


def _ended_by_asking(
    process: "subprocess.Popen[str]", run: Run, member: int, *, asked: bool
) -> bool:
    """Return whether a process that ended was stopped; raise if it failed.

    One that was asked before it listened to signals ends in another way, and is stopped too.
    """
    assert process.stderr is not None  # a pipe
    said = process.stderr.read().strip()
    process.stderr.close()
    if process.returncode not in (0, STOPPED) and not asked:
        raise MemberError(
            explain(
                f"{run.name}: member {member} failed",
                expected="a process that ends well",
                got=f"exit code {process.returncode}",
                because=said.splitlines()[-1] if said else None,
            )
        )
    return process.returncode != 0


@contextmanager
def _ended() -> Iterator[dict[int, "subprocess.Popen[str]"]]:
    """Yield a place for processes; whatever happens, none of them outlives the block."""
    running: dict[int, subprocess.Popen[str]] = {}
    try:
        yield running
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
