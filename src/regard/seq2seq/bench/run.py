"""Doing the runs of a bench: members side by side, a result file for each run."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.errors import InputError, explain
from regard.files import read_json, write_json
from regard.seq2seq.bench.machine import machine
from regard.seq2seq.bench.plan import Run
from regard.seq2seq.bench.score import score
from regard.seq2seq.checkpoint import load_description
from regard.seq2seq.ensemble_job import train_ensemble
from regard.seq2seq.events import TrainResult
from regard.seq2seq.recipes.recipe import Recipe

__all__ = ["do_runs", "result_of"]

_RUNS = "runs"
_WORK = "work"


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
    members: int | None = None,
    on_start: Callable[[Run, float], None] = lambda run, seconds: None,
    on_result: Callable[[Run, dict[str, Any]], None] = lambda run, result: None,
) -> None:
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
    members : int, optional
        Models of each run, instead of each recipe's number.
    on_start, on_result : callable
        Told of each run that begins, with its seconds, and of each that ends.

    Raises
    ------
    InterruptedRun
        SIGINT or SIGTERM came and everything is saved; the next call goes on from there.
    WorkerError
        A member's process failed.
    InputError
        A run in `out` had another budget, clock or number of members.

    Notes
    -----
    The time is that of the whole run on `jobs` cores, from before its processes start: of more
    members than cores, each gets its share. Scoring the test part is not counted. By the CPU's
    clock it is the time of one core.
    """
    for run in runs:
        recipe = run.recipe(data_dir)
        if members is not None:
            recipe = replace(recipe, members=members)
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
        work = out / _WORK / run.name
        results = _train(run, recipe, work, budget)
        directories = [work / str(member) for member in range(recipe.members)]
        result = {
            "task": run.task,
            "title": recipe.title,
            "seed": run.seed,
            "budget": budget,
            "beam": recipe.beam,
            **score(recipe, directories),
            "members": list(map(_member, directories, results)),
            "wall_seconds": round(time.monotonic() - began, 1),
            "machine": machine(),
        }
        (out / _RUNS).mkdir(parents=True, exist_ok=True)
        write_json(out / _RUNS / f"{run.name}.json", result)
        shutil.rmtree(work)
        on_result(run, result)


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


def _train(run: Run, recipe: Recipe, work: Path, budget: dict[str, Any]) -> list[TrainResult]:
    """Train all members, or go on with them."""
    parts = recipe.load()
    seconds, members, jobs = budget["seconds"], budget["members"], budget["cores"]
    if budget["clock"] == "cpu":
        # Its budget is that of all members together.
        seconds *= min(members, jobs)
    settings = recipe.job(seconds, run.first_seed)
    settings = replace(settings, train=replace(settings.train, clock=budget["clock"]))
    work.parent.mkdir(parents=True, exist_ok=True)
    return train_ensemble(
        parts.train,
        parts.dev,
        settings,
        directory=work,
        members=members,
        jobs=jobs,
        resume=work.is_dir(),
    )


def _member(directory: Path, result: TrainResult) -> dict[str, Any]:
    made_by = load_description(directory).made_by
    return {
        "steps": result.steps,
        "best_step": result.best_step,
        "cpu_seconds": round(result.seconds, 1),
        "seed": made_by["seed"],
        "settings": made_by["settings"],
        "train": made_by["train"],
    }
