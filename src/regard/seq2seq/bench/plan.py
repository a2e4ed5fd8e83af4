"""Which runs a bench has."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.recipes.recipe import Recipe
from regard.seq2seq.recipes.registry import NAMES, find, variants

__all__ = ["SHIPPED", "Run", "plan"]

SHIPPED = ("copy", "g2p:eng", "names", "translate")
"""Tasks whose data ship with regard."""


@dataclass(frozen=True)
class Run:
    """One training of one recipe.

    Parameters
    ----------
    task : str
        "names", or with a language "g2p:fre".
    seed : int
        From 0.
    """

    task: str
    seed: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.task.replace(':', '-')}-seed{self.seed}"

    def recipe(self, data_dir: str | Path | None) -> Recipe:
        """Return the recipe; its data are read when they are asked for."""
        name, _, language = self.task.partition(":")
        return find(name, language=language or None, data_dir=data_dir)

    @property
    def first_seed(self) -> int:
        """The first member's seed; the n-th one's is n larger, and no two runs share one."""
        return 100 * self.seed


def plan(
    tasks: Sequence[str] = (), *, seeds: int = 3, data_dir: str | Path | None = None
) -> list[Run]:
    """Return the runs, all tasks with the first seed before any with the second.

    Parameters
    ----------
    tasks : sequence of str
        Each a recipe, for all its languages, or one of them as in "g2p:fre". None given: all
        for which there are data.
    seeds : int
        1 to 1000.
    data_dir : path, optional
        Where data that do not ship are.

    Raises
    ------
    InputError
        There is no such task, its data are missing, or the number of seeds is refused.
    """
    if not 1 <= seeds <= 1000:
        raise InputError(
            explain("plan(): `seeds` is refused", expected="from 1 to 1000", got=repr(seeds))
        )
    wanted: dict[str, None] = {}
    for task in tasks or NAMES:
        name, colon, language = task.partition(":")
        languages = variants(name)
        # Asked for everything, one gets what there are data for.
        some = [f"{name}:{one}" for one in languages] or [name]
        if colon:
            some = [f"{name}:{language}"]
        elif data_dir is None and (not tasks or name == "g2p"):
            some = [one for one in some if one in SHIPPED]
        wanted |= dict.fromkeys(some)
    runs = [Run(task, seed) for seed in range(seeds) for task in wanted]
    for run in runs[: len(wanted)]:
        recipe = run.recipe(data_dir)
        if run.task not in SHIPPED:
            recipe.load()  # what is missing is better said now
    return runs
