"""Search: from a model and sources to target sequences.

===============  =================================================================
``greedy``       the likeliest symbol at every step
``beam_search``  the likeliest few beginnings together, with the n best answers
``sample``       symbols drawn with the model's probabilities
===============  =================================================================

Names are found when they are first used: what describes a search works without PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.seq2seq.search.beam import beam_search
    from regard.seq2seq.search.choices import SearchSettings
    from regard.seq2seq.search.constraint import Constraint, Trie
    from regard.seq2seq.search.draw import sample
    from regard.seq2seq.search.follow import greedy
    from regard.seq2seq.search.hypothesis import Hypothesis
    from regard.seq2seq.search.ranking import Ranking
    from regard.seq2seq.search.settings import search
    from regard.seq2seq.search.stepper import Stepper
    from regard.seq2seq.search.texts import Wanted, wanted

_HOMES = {
    "Constraint": "constraint",
    "Hypothesis": "hypothesis",
    "Ranking": "ranking",
    "SearchSettings": "choices",
    "Stepper": "stepper",
    "Trie": "constraint",
    "Wanted": "texts",
    "beam_search": "beam",
    "greedy": "follow",
    "sample": "draw",
    "search": "settings",
    "wanted": "texts",
}

__all__ = [
    "Constraint",
    "Hypothesis",
    "Ranking",
    "SearchSettings",
    "Stepper",
    "Trie",
    "Wanted",
    "beam_search",
    "greedy",
    "sample",
    "search",
    "wanted",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
