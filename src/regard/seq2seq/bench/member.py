"""One member of a run, trained in a process of its own: ``python -m ...bench.member``.

The arguments come as one JSON object on standard input. A member that is asked to stop saves
and ends with :data:`STOPPED`; started again it goes on from there.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.seq2seq.files import write_json

__all__ = ["RESULT", "STOPPED", "train_member"]

STOPPED = 75
"""Exit code: saved, and not finished."""

RESULT = "member.json"
"""Written into the member's directory when it is finished."""


def train_member(
    run: Mapping[str, Any], directory: Path, *, member: int, seconds: float, clock: str
) -> None:
    """Train a member, or go on with it, and write what came of it.

    Parameters
    ----------
    run : mapping
        ``task``, ``seed`` and ``data_dir``.
    directory : path
        The member's model directory.
    member : int
        From 0.
    seconds : float
        Time budget.
    clock : {"wall", "cpu"}
        What it is measured by.
    """
    import torch  # noqa: PLC0415 - the parent reads this module too, and trains nothing

    from regard.seq2seq.bench.plan import Run  # noqa: PLC0415
    from regard.seq2seq.job import train_pairs  # noqa: PLC0415

    torch.set_num_threads(1)
    planned = Run(run["task"], run["seed"])
    recipe = planned.recipe(run["data_dir"])
    parts = recipe.load()
    settings = recipe.job(seconds, planned.seed_of(member))
    settings = replace(settings, train=replace(settings.train, clock=clock))
    transducer, result = train_pairs(
        parts.train,
        parts.dev,
        settings,
        directory=directory,
        resume=directory.exists(),
        force=False,
    )
    write_json(
        directory / RESULT,
        {
            "seed": planned.seed_of(member),
            "steps": result.steps,
            "best_step": result.best_step,
            "cpu_seconds": round(result.seconds, 1),
            "parameters": sum(each.numel() for each in transducer.model.parameters()),
            "settings": settings.to_json(),
        },
    )


def main() -> int:
    """Do what standard input says."""
    from regard.seq2seq.events import InterruptedRun  # noqa: PLC0415

    given = json.load(sys.stdin)
    try:
        train_member(
            given["run"],
            Path(given["directory"]),
            member=given["member"],
            seconds=given["seconds"],
            clock=given["clock"],
        )
    except InterruptedRun:
        return STOPPED
    except RegardError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
