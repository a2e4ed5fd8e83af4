"""Find a reproduction by its name and run it."""

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from regard.audit.reproduce.kept import Models
from regard.audit.reproduce.report import Report
from regard.audit.reproduce.result import Reproduction
from regard.errors import InputError, explain

__all__ = ["TARGETS", "reproduce"]

TARGETS = {
    "sst": "the file sst_dataset.csv (columns text, label, exp_split) of the authors' code",
    "pronoun": "the folder with train.txt, dev.txt and test.txt of the authors' code",
    "copy": "",
}
"""Reproductions, and what their --data has to be."""


def reproduce(
    target: str,
    *,
    data: str | None = None,
    seeds: Sequence[int] = (0,),
    quick: bool = False,
    models: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    keep: Callable[[Report], None] | None = None,
) -> Report:
    """Measure a published result again.

    Parameters
    ----------
    target : {"sst", "pronoun", "copy"}
    data : str, optional
        Where the data lie; their terms do not allow to ship them, but for ``copy``, which draws
        its own.
    seeds : sequence of int
        One whole run each, of numbers that follow each other.
    quick : bool
        A smaller run, to see that it works; its figures are outside their bands.
    models : path, optional
        A folder: trained models are kept in it, and those that are there are not trained again.
    progress : callable, optional
    keep : callable, optional
        Gets the report so far after every seed.

    Raises
    ------
    InputError
        The target is unknown, or its data are missing.
    """
    if target not in TARGETS:
        raise InputError(
            explain(
                "reproduce(): `target` is unknown",
                expected=" or ".join(TARGETS),
                got=repr(target),
            )
        )
    needed = TARGETS[target]
    if needed and (data is None or not Path(data).exists()):
        raise InputError(
            explain(
                f"reproduce {target}: its data are missing",
                expected=f"--data: {needed}",
                got=data or "no --data",
                because="their terms do not allow to ship them",
            )
        )
    module = importlib.import_module(f"regard.audit.reproduce.{target}")
    command = f"regard audit reproduce {target}{' --data DATA' if needed else ''}"
    command += f" --seed {seeds[0]} --seeds {len(seeds)}"
    say = progress or (lambda what, done, of: None)
    runs: list[Reproduction] = []
    for seed in seeds:
        shelf = Models(models)
        began = time.process_time()
        found: Reproduction = module.run(
            data, seed=seed, quick=quick, models=shelf, progress=_of_seed(seed, say)
        )
        seconds = time.process_time() - began + shelf.seconds
        runs.append(replace(found, seconds=seconds))
        if keep is not None:
            keep(Report(tuple(runs), command))
    return Report(tuple(runs), command)


def _of_seed(
    seed: int, say: Callable[[str, int, int], None]
) -> Callable[[str, int, int], None]:
    return lambda what, done, of: say(f"seed {seed}: {what}", done, of)
