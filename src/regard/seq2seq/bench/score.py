"""Scoring a finished run on the held-out parts of its recipe."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import BackendError
from regard.seq2seq.bleu import bleu
from regard.seq2seq.bootstrap import bootstrap
from regard.seq2seq.checkpoint import load_model
from regard.seq2seq.ensemble import joined
from regard.seq2seq.metrics import error_rates
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.recipes.recipe import Recipe
from regard.seq2seq.search import SearchSettings
from regard.seq2seq.transducer import Transducer

__all__ = ["score"]


def score(recipe: Recipe, directories: Sequence[Path]) -> dict[str, Any]:
    """Return the measures of a run, in percent.

    Parameters
    ----------
    recipe : Recipe
    directories : sequence of path
        The members' model directories.

    Returns
    -------
    scores : dict
        ``dev`` and ``test``, each with ``one``, the first member alone and greedy, and ``all``,
        all members with the recipe's beam: the result. ``interval`` is of the first measure of
        the result on test, over the chance of its examples.
    """
    parts = recipe.load()
    models = [load_model(directory) for directory in directories]
    names = [str(directory) for directory in directories]
    one = Transducer(*models[0])
    every = Transducer(*joined(models, names))
    searches = {"one": (one, SearchSettings()), "all": (every, SearchSettings(recipe.beam))}
    found: dict[str, Any] = {"dev": {}, "test": {}}
    for part, pairs in (("dev", parts.dev), ("test", parts.test)):
        for name, (transducer, search) in searches.items():
            found[part][name], predictions, references = _rates(
                recipe, transducer, search, pairs
            )
    # What was computed last is the result.
    first = recipe.measures[0]
    interval = bootstrap(predictions, references, measure=first.rate)
    ends = [
        100.0 * (1.0 - end if first.right else end) for end in (interval.low, interval.high)
    ]
    found["interval"] = {"level": interval.level, "low": min(ends), "high": max(ends)}
    if recipe.name == "translate":
        found["bleu"] = _bleu(every, predictions, references)
    return found


def _rates(
    recipe: Recipe, transducer: Transducer, search: SearchSettings, pairs: Pairs
) -> tuple[dict[str, Any], list[tuple[str, ...]], list[list[list[str]]]]:
    known = pairs.references()
    target = transducer.description.target
    answers = transducer.predict(list(known), search=search, need_weights=False)
    predictions = [answer.target_symbols for answer in answers]
    references = [[target.split(text) for text in texts] for texts in known.values()]
    rates = error_rates(predictions, references)
    values: dict[str, Any] = {m.name: round(m.of(rates), 4) for m in recipe.measures}
    return values | {"examples": rates.examples}, predictions, references


def _bleu(
    transducer: Transducer,
    predictions: Sequence[tuple[str, ...]],
    references: Sequence[Sequence[Sequence[str]]],
) -> dict[str, Any] | None:
    """Return BLEU over the recipe's own tokens, or None where sacrebleu is missing."""
    join = transducer.description.target.join
    try:
        found = bleu(
            [join(answer) for answer in predictions],
            [[join(each) for each in known] for known in references],
            tokenize="none",
        )
    except BackendError:
        return None
    return {"score": round(found.score, 2), "signature": found.signature}
