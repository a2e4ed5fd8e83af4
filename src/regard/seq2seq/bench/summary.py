"""Many runs to one table: means over seeds beside the published results."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from regard.seq2seq.recipes import inflection, sigmorphon_g2p
from regard.seq2seq.recipes.recipe import Published, Recipe
from regard.seq2seq.recipes.registry import find

__all__ = ["Row", "Spread", "rows"]


class _Family(NamedTuple):
    """Tasks whose mean over languages is published."""

    name: str
    languages: Sequence[str]
    published: Published
    title: str


_FAMILIES = (
    _Family(
        "g2p",
        sigmorphon_g2p.LANGUAGES,
        sigmorphon_g2p.MACRO,
        "letters to sounds, SIGMORPHON 2020",
    ),
    _Family(
        "inflection",
        inflection.LANGUAGES,
        inflection.MACRO,
        "inflection, SIGMORPHON 2016",
    ),
)


class Spread(NamedTuple):
    """A measure over seeds, in percent."""

    mean: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of at least one value."""
        return cls(sum(values) / len(values), min(values), max(values), len(values))


class Row(NamedTuple):
    """One task of the table."""

    task: str
    title: str
    measure: str
    ours: Spread
    one: Spread
    """The first member alone, greedy."""
    grid: float
    """Points that one test example makes."""
    seconds: float
    """Time budget of a run."""
    clock: str
    cores: int
    members: int
    beam: int
    published: tuple[Published, ...]
    complete: bool = True
    """Of a mean over languages: whether all of them are in it."""


class _Budget(NamedTuple):
    """What runs of one row have in common; sorts by time first."""

    seconds: float
    members: int
    cores: int
    beam: int
    clock: str


def rows(results: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return a row for each task and budget that has a result, and for families with several.

    Runs of one task with different budgets are rows of their own, the least first: together
    they show what more time brings.

    Parameters
    ----------
    results : sequence of mappings
        Of finished runs, in any order.
    """
    alike: dict[tuple[str, _Budget], list[Mapping[str, Any]]] = {}
    for result in sorted(results, key=lambda one: one["seed"]):
        alike.setdefault((result["task"], _budget(result)), []).append(result)
    tasks = list(dict.fromkeys(task for task, _ in alike))
    budgets = sorted({budget for _, budget in alike})
    found = []
    for task in tasks:
        name, _, language = task.partition(":")
        recipe = find(name, language=language or None)
        for budget in budgets:
            if (task, budget) in alike:
                found.append(_row(task, recipe, budget, alike[task, budget]))
    for family in _FAMILIES:
        for budget in budgets:
            some = [
                alike[f"{family.name}:{language}", budget]
                for language in family.languages
                if (f"{family.name}:{language}", budget) in alike
            ]
            if len(some) > 1:
                found.append(_mean(family, budget, some))
    return found


def _row(task: str, recipe: Recipe, budget: _Budget, runs: Sequence[Mapping[str, Any]]) -> Row:
    measure = recipe.measures[0].name
    return Row(
        task=task,
        title=recipe.title,
        measure=measure,
        ours=Spread.of([run["test"]["all"][measure] for run in runs]),
        one=Spread.of([run["test"]["one"][measure] for run in runs]),
        grid=100.0 / runs[0]["test"]["all"]["examples"],
        **budget._asdict(),
        published=recipe.published,
    )


def _mean(
    family: _Family, budget: _Budget, of_language: Sequence[Sequence[Mapping[str, Any]]]
) -> Row:
    """Return the mean over languages: of each seed first, so that it has a spread."""
    measure = next(iter(family.published.values))
    seeds = min(len(runs) for runs in of_language)

    def spread(which: str) -> Spread:
        each = [
            [runs[seed]["test"][which][measure] for runs in of_language]
            for seed in range(seeds)
        ]
        return Spread.of([sum(values) / len(values) for values in each])

    examples = sum(runs[0]["test"]["all"]["examples"] for runs in of_language)
    return Row(
        task=family.name,
        title=f"mean of {len(of_language)} languages, {family.title}",
        measure=measure,
        ours=spread("all"),
        one=spread("one"),
        grid=100.0 / examples,
        **budget._asdict(),
        published=(family.published,),
        complete=len(of_language) == len(family.languages),
    )


def _budget(run: Mapping[str, Any]) -> _Budget:
    given = run["budget"]
    return _Budget(
        given["seconds"], given["members"], given["cores"], run["beam"], given["clock"]
    )
