"""From ``regard train NAME`` to a recipe's data and settings."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.job import JobSettings
    from regard.seq2seq.recipes.recipe import Recipe

__all__ = ["recipe_called", "settings_of"]

NAMES = ("copy", "g2p", "inflection", "names", "translate")
"""The names of the recipes; a test compares them with the registry, which needs torch."""

# Options that leave a recipe the one that it is.
_FREE = {"time_budget", "clock", "steps", "accumulate", "attention"}


def recipe_called(data: str, *, language: str | None, data_dir: str | None) -> "Recipe | None":
    """Return the recipe that DATA names, or None if it is a file.

    Parameters
    ----------
    data : str
        As the command line has it; a file that is called like a recipe is written ./g2p.
    language, data_dir : str or None
        ``--language`` and ``--data-dir``.

    Raises
    ------
    InputError
        There is no such language, or an option does not belong to a file.
    """
    if data in NAMES:
        from regard.seq2seq.recipes.registry import find

        return find(data, language=language, data_dir=data_dir)
    for flag, value in (("--language", language), ("--data-dir", data_dir)):
        if value is not None:
            raise InputError(
                explain(
                    f"{flag} belongs to a recipe",
                    expected=f"{flag} together with one of {', '.join(NAMES)}",
                    got=f"{flag} {value} and the file {data}",
                    help=f"leave {flag} out",
                )
            )
    return None


def settings_of(recipe: "Recipe", *, seed: int, **given: Any) -> "JobSettings":
    """Return a recipe's settings, with what the command line may change.

    Parameters
    ----------
    recipe : Recipe
    seed : int
    **given
        Options that were given: ``time_budget`` in seconds, ``clock``, ``steps`` instead of a
        time, ``accumulate``, ``attention``.

    Raises
    ------
    click.UsageError
        Another option was given: the recipe sets it.
    """
    refused = [f"--{name.replace('_', '-')}" for name in given if name not in _FREE]
    if refused:
        raise click.UsageError(f"the recipe `{recipe.name}` sets {', '.join(refused)} itself")
    settings = recipe.job(given.get("time_budget") or recipe.seconds, seed)
    training = settings.train
    if "steps" in given:
        training = replace(
            training,
            steps=given["steps"],
            time_budget=given.get("time_budget", 0.0),
            warm_up=min(training.warm_up, given["steps"]),
        )
    training = replace(
        training,
        **{name: given[name] for name in ("clock", "accumulate") if name in given},
    )
    model = dict(settings.model)
    if "attention" in given:
        model["attention"] = given["attention"]
    return replace(settings, model=model, train=training)
