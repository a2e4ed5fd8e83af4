"""The main job from beginning to end: jobs, ``demo.json``, pictures, report."""

import importlib.metadata
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from regard.demo.plan import Job, Plan
from regard.demo.pool import Event, run_jobs
from regard.errors import InputError, explain
from regard.files import read_json, write_json
from regard.seq2seq.checkpoint import FILES
from regard.seq2seq.claim import claim_directory
from regard.version import __version__

__all__ = ["MODEL", "run_demo"]

MODEL = "g2p-model"
"""Where in the output directory the letters-to-sounds model is left, ready for use."""

_WORK = "work"
_RUN = "run.json"


def run_demo(
    plan: Plan,
    out: Path,
    *,
    processes: int,
    command: str,
    resume: bool = False,
    force: bool = False,
    on_start: Callable[[list[Job], list[Job]], None] = lambda jobs, done: None,
    on_event: Callable[[Event], None] = lambda event: None,
    asked_to_stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Run a plan and write ``report.html``, ``demo.json`` and the pictures.

    Parameters
    ----------
    plan : Plan
    out : path
        Output directory.
    processes : int
        At most this many jobs at once.
    command : str
        Recorded as what made the results.
    resume, force : bool
        Go on with the run in `out`, which must be there, or start again over it; without
        either, `out` must be new or empty. Files of another kind are never written over.
    on_start : callable
        Gets all jobs, and those that an earlier sitting finished.
    on_event : callable
        Gets every :class:`~regard.demo.pool.Event`.
    asked_to_stop : callable
        Asked several times a second.

    Returns
    -------
    results : dict or None
        The content of ``demo.json``; None if it was stopped.

    Raises
    ------
    InputError
        `out` is refused, or the run in it has another plan.
    RegardError
        A job failed.
    """
    work = out / _WORK
    started = _claim(plan, out, resume=resume, force=force)
    jobs = plan.jobs()
    done = [job for job in jobs if (work / f"{job.name}.json").exists()]
    on_start(jobs, done)
    began = time.monotonic()
    left = [job for job in jobs if job not in done]
    finished = not left or run_jobs(
        left,
        work,
        out / MODEL,
        processes=processes,
        on_event=on_event,
        asked_to_stop=asked_to_stop,
    )
    _note_time(out, started, time.monotonic() - began)
    if not finished:
        return None
    results = _collect(plan, work, jobs) | {
        "made_by": {
            "command": command,
            "version": __version__,
            "torch": importlib.metadata.version("torch"),
            "seed": plan.seed,
            "processes": processes,
            "threads": 1,
            "started": started["started"],
            "wall_seconds": round(read_json(out / _WORK / _RUN)["seconds"], 1),
        }
    }
    write_json(out / "demo.json", results)
    _draw(results, out)
    return results


def _claim(plan: Plan, out: Path, *, resume: bool, force: bool) -> dict[str, Any]:
    """Make the directory ours, and return what the first sitting noted."""
    run = out / _WORK / _RUN
    if resume and not run.exists():
        raise InputError(
            explain(
                f"{out}: there is no run to go on with",
                expected="a directory that `regard demo` wrote to",
                got=_what_is(out),
                help="drop --resume to begin a run"
                if not out.exists() or (out.is_dir() and not any(out.iterdir()))
                else "choose another --out, and drop --resume to begin a run",
            )
        )
    noted = _noted(run) if resume else None
    if noted is not None and noted["plan"] != plan.to_json():
        raise InputError(
            explain(
                f"{out}: the run in it has another plan",
                expected=_only(noted["plan"], plan.to_json()),
                got=_only(plan.to_json(), noted["plan"]),
                because="a run goes on with what it began with",
                help="give the first command again with --resume, or --force to start anew",
            )
        )
    results = [f"{job.name}{end}" for job in plan.jobs() for end in (".json", ".safetensors")]
    claim_directory(
        out, names=("demo.json", "report.html"), is_ours=_is_ours, force=force, resume=resume
    )
    # What is in our own directory below is ours.
    claim_directory(out / _WORK, names=(_RUN, *results), resume=True)
    if noted is not None:
        return noted
    for old in (out / _WORK).glob("*"):
        if old.suffix in (".json", ".safetensors"):
            old.unlink()
    for name in FILES:
        (out / MODEL / name).unlink(missing_ok=True)
    noted = {
        "plan": plan.to_json(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": 0.0,
    }
    write_json(run, noted)
    return noted


def _noted(run: Path) -> dict[str, Any]:
    """Read what the first sitting noted."""
    try:
        noted = json.loads(run.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        got = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(_broken(run, got)) from error
    fits = (
        isinstance(noted, dict)
        and isinstance(noted.get("plan"), dict)
        and isinstance(noted.get("started"), str)
        and isinstance(noted.get("seconds"), float | int)
    )
    if not fits:
        raise InputError(_broken(run, "other entries"))
    return cast(dict[str, Any], noted)


def _broken(run: Path, got: str) -> str:
    return explain(
        f"{run}: the notes of the run cannot be read",
        expected="JSON with plan, started and seconds, as `regard demo` writes it",
        got=got,
        help="choose another --out, and drop --resume to begin a run",
    )


def _is_ours(out: Path) -> bool:
    try:
        _noted(out / _WORK / _RUN)
    except InputError:
        return False
    return True


def _what_is(out: Path) -> str:
    if not out.exists():
        return "nothing"
    if not out.is_dir():
        return "a file"
    return "a directory with other files" if any(out.iterdir()) else "an empty directory"


def _note_time(out: Path, noted: dict[str, Any], seconds: float) -> None:
    # Sittings add up: a resumed run took as long as all of them together.
    write_json(out / _WORK / _RUN, {**noted, "seconds": noted["seconds"] + seconds})


def _only(plan: dict[str, Any], other: dict[str, Any]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in plan.items() if other.get(k) != v) or "the same"


def _collect(plan: Plan, work: Path, jobs: list[Job]) -> dict[str, Any]:
    from regard.seq2seq.recipes.copying import CHANCE  # noqa: PLC0415 - torch

    models: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    letters: dict[str, Any] = {}
    results = {job.name: read_json(work / f"{job.name}.json") for job in jobs}
    for attention in plan.attentions:
        seeds = range(plan.seed, plan.seed + plan.seeds)
        runs = [results[f"copy-{attention}-{seed}"] for seed in seeds]
        models[attention] = {
            measure: {str(n): [run[measure][str(n)] for run in runs] for n in plan.lengths}
            for measure in ("token_accuracy", "exact_match")
        } | {"cpu_seconds": [run["cpu_seconds"] for run in runs]}
        if runs[0]["alignment"]:
            shown[attention] = runs[0]["alignment"]
    letters = results["letters"]
    return {
        "copy": {
            "chance": CHANCE,
            "trained_lengths": [1, plan.longest],
            "lengths": list(plan.lengths),
            "steps": plan.steps,
            "seeds": list(range(plan.seed, plan.seed + plan.seeds)),
            "sequences": plan.sequences,
            "models": models,
        },
        "g2p": letters,
        "alignments": {"copy": shown},
    }


def _draw(results: dict[str, Any], out: Path) -> None:
    from regard.alignment.heatmap import save  # noqa: PLC0415 - matplotlib
    from regard.demo.plots import demo_figures  # noqa: PLC0415
    from regard.demo.report import write_report  # noqa: PLC0415

    pictures = {}
    for name, figure in demo_figures(results).items():
        _, vector = save(figure, out / name)
        pictures[name] = vector.read_text(encoding="utf-8")
    write_report(results, pictures, out / "report.html")
