"""What a search finds: one target sequence, its probabilities, and where it looked."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hypothesis", "best_first"]


@dataclass(frozen=True)
class Hypothesis:
    """One target sequence that a search found.

    Attributes
    ----------
    ids : tuple of int
        Without begin and end.
    log_probs : tuple of float
        Natural logarithm of each symbol's probability, at most 0. If finished, one more than
        ids: the last one is that of the end.
    finished : bool
        False if the limit came before the end.
    weights : (T_dec, T_enc) or None
        Attention weights, one row for each of ``ids``, one column for each source symbol,
        padding cut off; None without attention.
    score : float
        What the search ranks by: the logarithm of the sequence's probability, with the
        penalties that were asked for (:class:`~regard.seq2seq.search.ranking.Ranking`).
    """

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finished: bool
    weights: NDArray[np.float32] | None
    score: float

    @property
    def log_prob(self) -> float:
        """Natural logarithm of the whole sequence's probability."""
        return sum(self.log_probs)


def best_first(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Return hypotheses in the order in which a beam lists them.

    Those that ended go before those that were cut, each by their score; equal ones stay in the
    order in which they were found.
    """
    return sorted(hypotheses, key=lambda each: (not each.finished, -each.score))
