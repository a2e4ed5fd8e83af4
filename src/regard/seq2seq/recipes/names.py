"""Arabic names to their English spelling, on data that ship with regard.

12,877 pairs to train on, 1,431 to choose by and 1,590 to test on [1]_. Three names stand in two
of the published parts; they are taken out of the earlier one. Of a name's spellings the nearest
counts.

References
----------
.. [1] Rosca and Breuel, "Sequence-to-sequence neural network models for transliteration", 2016.
   arXiv:1610.09565
"""

from dataclasses import replace

from regard.seq2seq.pairs import Pairs
from regard.seq2seq.recipes.recipe import Measure, Parts, Recipe
from regard.seq2seq.recipes.shipped import shipped
from regard.seq2seq.recipes.small import small_settings

__all__ = ["recipe"]


def recipe() -> Recipe:
    """Return the recipe."""
    return Recipe(
        name="names",
        variant="ara-eng",
        title="Arabic names to English letters",
        load=_load,
        job=small_settings,
        seconds=120.0,
        beam=5,
        measures=(Measure("CER", "symbol_error_rate"), Measure("WER", "exact_match_error")),
    )


def _load() -> Parts:
    train, dev, test = shipped("names-ar2en")
    return Parts(_without(train, dev, test), _without(dev, test), test)


def _without(pairs: Pairs, *others: Pairs) -> Pairs:
    sources = {source for other in others for source, _ in other.items}
    return replace(pairs, items=tuple(one for one in pairs.items if one[0] not in sources))
