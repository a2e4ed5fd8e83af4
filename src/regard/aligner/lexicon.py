r"""What a source word is translated as: expected counts under a sparse prior.

.. math::

   p(t \mid s) = \frac{\exp \psi(c_{st} + \alpha + \kappa x_{st})}
                      {\exp \psi(\sum_{t'} c_{st'} + \alpha + \kappa x_{st'})}

with :math:`c_{st}` how often s is believed to have made t, and :math:`\psi` the digamma
function: the mean field update of a multinomial with a Dirichlet prior [1]_. A small
:math:`\alpha` prefers few translations a word, which keeps rare words from collecting what
nobody else explains. The prior's mean is not even: :math:`x_{st}` says how alike the two words
are spelled, so that a number or a name seen once is believed to translate as itself.

References
----------
.. [1] Riley and Gildea, "Improving the IBM Alignment Models Using Variational Bayes",
   ACL 2012, section 3.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Lexicon", "Prior"]

_FLOOR = 1e-30
"""Under the probabilities of pairs that the prior rules out: a sentence of such has one."""

_UNIGRAMS = 5.0
"""Counts of words as such that the empty word's own are smoothed with."""

_BOLD = 20.0
"""How much likelier than others the first step takes two words of the same spelling to be."""


@dataclass(frozen=True)
class Prior:
    """What is believed of the lexicon before any text is seen.

    Parameters
    ----------
    sparsity : float
        alpha, counts of each word pair; small values prefer few translations.
    spelling : float
        kappa, counts of two words that are spelled the same.
    """

    sparsity: float = 1e-4
    spelling: float = 1.0


class Lexicon:
    """Translation probabilities of the word pairs of a corpus, in one direction.

    Parameters
    ----------
    prior : Prior
    given, made : (word pairs,), int64
        The words of each pair: p(made | given).
    alike : (word pairs,), float64
        How alike they are spelled, 0 to 1.
    frequency : (made words,), float64
        How often each word stands in the corpus, at least 1.
    words : int
        How many words there are to be given.
    """

    def __init__(  # noqa: PLR0917 - what a lexicon is made of
        self,
        prior: Prior,
        given: Tensor,
        made: Tensor,
        alike: Tensor,
        frequency: Tensor,
        words: int,
    ) -> None:
        self._given, self._made = given, made
        self._pseudo = prior.sparsity + prior.spelling * alike
        self._pseudo_totals = torch.full((words,), prior.sparsity * len(frequency)).double()
        self._pseudo_totals.index_add_(0, given[1:], prior.spelling * alike[1:])
        self.unigram = frequency / frequency.sum()
        self.counts = torch.zeros(len(given), dtype=torch.float64)
        self.totals = torch.zeros(words, dtype=torch.float64)
        self.empty = torch.zeros(len(frequency), dtype=torch.float64)
        even = 1 / len(frequency)
        self.table = (even * (1 + _BOLD * alike)).clamp_max(1).float()
        self.empty_table = torch.full((len(frequency),), even)
        self._settle(self.table)

    def learn(self, counts: Tensor, empty: Tensor) -> None:
        """Take new expected counts, and compute the probabilities anew.

        Parameters
        ----------
        counts : (word pairs,), float64
        empty : (made words,), float64
            Of words that no word made.
        """
        totals = torch.zeros_like(self.totals).index_add_(0, self._given[1:], counts[1:])
        self.restore(counts, totals, empty)

    def restore(
        self, counts: Tensor, totals: Tensor, empty: Tensor, unknown: Tensor | None = None
    ) -> None:
        """Take counts and their totals, and compute the probabilities.

        Parameters
        ----------
        counts : (word pairs,), float64
        totals : (words,), float64
            Of each given word, pairs outside this corpus included.
        empty : (made words,), float64
        unknown : (word pairs,), bool, optional
            Where one of the words was not in the text that was learned from: nothing is known
            of such a pair, which is then as likely as the word as such.
        """
        self.counts, self.totals, self.empty = counts, totals, empty
        sums = torch.digamma(totals + self._pseudo_totals)
        table = (torch.digamma(counts + self._pseudo) - sums[self._given]).exp().float()
        if unknown is not None:
            as_such = self.unigram[self._made[unknown]].float()
            table[unknown] = torch.maximum(table[unknown], as_such)
        self._settle(table)
        smoothed = empty + _UNIGRAMS * self.unigram
        self.empty_table = (smoothed / smoothed.sum()).float()

    def _settle(self, table: Tensor) -> None:
        self.table = table.clamp_min(_FLOOR)
        self.table[0] = _FLOOR  # padding
