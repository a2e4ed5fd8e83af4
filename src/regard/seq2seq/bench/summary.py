"""Many runs to one table: means over seeds beside the published results."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from regard.seq2seq.recipes import inflection, sigmorphon_g2p
from regard.seq2seq.recipes.recipe import Published, Recipe
from regard.seq2seq.recipes.registry import find

__all__ = ["Row", "Spread", "rows"]

# Of all languages together there is a published mean.
_FAMILIES = (
    (
        "g2p",
        sigmorphon_g2p.LANGUAGES,
        sigmorphon_g2p.MACRO,
        "letters to sounds, SIGMORPHON 2020",
    ),
    ("inflection", inflection.LANGUAGES, inflection.MACRO, "inflection, SIGMORPHON 2016"),
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


def rows(results: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return a row for each task that has a result, and for each family with several.

    Parameters
    ----------
    results : sequence of mappings
        Of finished runs, in any order.
    """
    by_task: dict[str, list[Mapping[str, Any]]] = {}
    for result in sorted(results, key=lambda one: one["seed"]):
        by_task.setdefault(result["task"], []).append(result)
    found = []
    for task, runs in by_task.items():
        name, _, language = task.partition(":")
        recipe = find(name, language=language or None)
        found.append(_row(task, recipe, runs))
    for name, languages, published, title in _FAMILIES:
        some = {
            language: by_task[f"{name}:{language}"]
            for language in languages
            if f"{name}:{language}" in by_task
        }
        if len(some) > 1:
            found.append(_mean(name, some, len(languages), published, title))
    return found


def _row(task: str, recipe: Recipe, runs: Sequence[Mapping[str, Any]]) -> Row:
    first, measure = runs[0], recipe.measures[0].name
    return Row(
        task=task,
        title=recipe.title,
        measure=measure,
        ours=Spread.of([run["test"]["all"][measure] for run in runs]),
        one=Spread.of([run["test"]["one"][measure] for run in runs]),
        grid=100.0 / first["test"]["all"]["examples"],
        **_budget(first),
        published=recipe.published,
    )


def _mean(
    name: str,
    of_language: Mapping[str, Sequence[Mapping[str, Any]]],
    languages: int,
    published: Published,
    title: str,
) -> Row:
    """Return the mean over languages: of each seed first, so that it has a spread."""
    measure = next(iter(published.values))
    seeds = min(len(runs) for runs in of_language.values())

    def spread(which: str) -> Spread:
        each = [
            [runs[seed]["test"][which][measure] for runs in of_language.values()]
            for seed in range(seeds)
        ]
        return Spread.of([sum(values) / len(values) for values in each])

    first = next(iter(of_language.values()))[0]
    examples = sum(runs[0]["test"]["all"]["examples"] for runs in of_language.values())
    return Row(
        task=name,
        title=f"mean of {len(of_language)} languages, {title}",
        measure=measure,
        ours=spread("all"),
        one=spread("one"),
        grid=100.0 / examples,
        **_budget(first),
        published=(published,),
        complete=len(of_language) == languages,
    )


def _budget(run: Mapping[str, Any]) -> dict[str, Any]:
    budget = run["budget"]
    return {
        "seconds": budget["seconds"],
        "clock": budget["clock"],
        "cores": budget["cores"],
        "members": budget["members"],
        "beam": run["beam"],
    }
