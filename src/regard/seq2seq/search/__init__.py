"""Search: from a model and sources to target sequences.

===============  =================================================================
``greedy``       the likeliest symbol at every step
``beam_search``  the likeliest few beginnings together, with the n best answers
``sample``       symbols drawn with the model's probabilities
===============  =================================================================
"""

from regard.seq2seq.search.beam import beam_search
from regard.seq2seq.search.constraint import Constraint, Trie
from regard.seq2seq.search.greedy import greedy
from regard.seq2seq.search.hypothesis import Hypothesis
from regard.seq2seq.search.ranking import Ranking
from regard.seq2seq.search.sample import sample
from regard.seq2seq.search.settings import SearchSettings, search
from regard.seq2seq.search.stepper import Stepper
from regard.seq2seq.search.wanted import Wanted, wanted

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
