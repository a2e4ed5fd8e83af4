"""Inflection: a lemma and its features to the form, SIGMORPHON 2016, task 1, user's copy.

Ten languages with about 12,500 examples each. The best entry was an ensemble of GRU
encoder-decoders with attention [1]_. Features are symbols of their own before the lemma's, so
that attention can look at them.

References
----------
.. [1] Cotterell et al., "The SIGMORPHON 2016 Shared Task: Morphological Reinflection",
   SIGMORPHON 2016.
"""

from functools import partial
from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.job import JobSettings
from regard.seq2seq.pairs import Columns
from regard.seq2seq.recipes.files import located
from regard.seq2seq.recipes.recipe import Measure, Parts, Published, Recipe, read_parts
from regard.seq2seq.recipes.small import small_settings

__all__ = ["LANGUAGES", "MACRO", "recipe"]

LANGUAGES = (
    "arabic",
    "finnish",
    "georgian",
    "german",
    "hungarian",
    "maltese",
    "navajo",
    "russian",
    "spanish",
    "turkish",
)

HOME = "https://github.com/ryancotterell/sigmorphon2016 (data)"
_SOURCE = "Cotterell et al. 2016, abstract"
_BEST = "best entry"

MACRO = Published(_BEST, {"accuracy": 95.56}, _SOURCE)
"""The mean over the ten languages."""

# The extremes are all that the abstract gives besides the mean.
_OF_LANGUAGE = {"maltese": 88.99, "hungarian": 99.30}


def recipe(language: str, data_dir: str | Path | None) -> Recipe:
    """Return the recipe of one language.

    Parameters
    ----------
    language : str
        One of :data:`LANGUAGES`.
    data_dir : path or None
        Where ``german-task1-train`` and so on are.

    Raises
    ------
    InputError
        There is no such language. That files are missing is said when they are loaded.
    """
    if language not in LANGUAGES:
        raise InputError(
            explain(
                f"the recipe `inflection` has no language {language!r}",
                expected=", ".join(LANGUAGES),
                got=repr(language),
            )
        )
    title = f"{language.capitalize()} inflection, SIGMORPHON 2016 task 1"
    own = _OF_LANGUAGE.get(language)
    published = (
        Published(_BEST, {"accuracy": own}, _SOURCE)
        if own is not None
        else Published("best entry, mean of ten languages", MACRO.values, _SOURCE)
    )
    return Recipe(
        name="inflection",
        variant=language,
        title=title,
        load=partial(_load, language, data_dir, title),
        job=_job,
        seconds=300.0,
        members=2,
        beam=1,
        measures=(
            Measure("accuracy", "exact_match_error", right=True),
            Measure("CER", "symbol_error_rate"),
        ),
        published=(published,),
    )


def _load(language: str, data_dir: str | Path | None, title: str) -> Parts:
    names = [f"{language}-task1-{part}" for part in Parts._fields]
    columns = Columns(source=1, features=2, target=3, header=False)
    with located(data_dir, names, what=title, home=HOME) as paths:
        return read_parts(paths, names, columns=columns, file_format="tsv")


def _job(seconds: float, seed: int) -> JobSettings:
    return small_settings(
        seconds,
        seed,
        batch_tokens=1000,
        dropout=0.15,  # benchmarks/recipe_settings.py
        label_smoothing=0.0,
        steps=1_000_000,
        metric="exact_match",
    )
