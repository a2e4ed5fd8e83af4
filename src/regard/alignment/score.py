r"""Alignment error rate, precision, recall and F1, with their uncertainty.

With A the links of a system, S the sure and P the possible links of the annotators, counted
over all sentences [1]_:

.. math::

   \mathrm{precision} = \frac{|A \cap P|}{|A|}, \quad
   \mathrm{recall} = \frac{|A \cap S|}{|S|}, \quad
   \mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}

Notes
-----
AER forgives missing links that are only possible; where S is small and P large, a system that
links little looks good [2]_. Read it beside precision and recall.

References
----------
.. [1] Och and Ney, "A Systematic Comparison of Various Statistical Alignment Models",
   Computational Linguistics 29(1), 2003, section 6.
.. [2] Fraser and Marcu, "Measuring Word Alignment Quality for Statistical Machine Translation",
   Computational Linguistics 33(3), 2007.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.alignment.links import Gold, Links
from regard.errors import InputError, explain

__all__ = ["AlignmentScore", "Interval", "difference", "score_alignments"]

_MEASURES = ("precision", "recall", "f1", "aer")


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes
    ----------
    low, high : float
    level : float
        Share of resamples inside, 0 to 1.
    """

    low: float
    high: float
    level: float


@dataclass(frozen=True)
class AlignmentScore:
    r"""How well a system's links agree with the annotators'.

    Parameters
    ----------
    counts : (sentences, 4) of int
        Of each sentence pair: \\|A\\|, \\|S\\|, \\|A and S\\|, \\|A and P\\|.
    """

    counts: NDArray[np.int64]

    @cached_property
    def _total(self) -> NDArray[np.float64]:
        total: NDArray[np.float64] = self.counts.sum(axis=0).astype(np.float64)
        return total

    @property
    def links(self) -> int:
        """The system's links, over all sentences."""
        return int(self._total[0])

    @property
    def sure(self) -> int:
        """The annotators' sure links, over all sentences."""
        return int(self._total[1])

    @property
    def precision(self) -> float:
        """Share of the system's links that are possible, 0 to 1; 1 where it has none."""
        return float(_measures(self._total)[0])

    @property
    def recall(self) -> float:
        """Share of the sure links that the system has, 0 to 1; 1 where there are none."""
        return float(_measures(self._total)[1])

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 to 1."""
        return float(_measures(self._total)[2])

    @property
    def aer(self) -> float:
        """Alignment error rate, 0 to 1; lower is better."""
        return float(_measures(self._total)[3])

    def sentences(self) -> NDArray[np.float64]:
        """Return precision, recall, F1 and AER of each sentence: (sentences, 4)."""
        return _measures(self.counts.astype(np.float64))

    def interval(
        self, measure: str = "aer", *, level: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> Interval:
        """Return a bootstrap confidence interval over sentences.

        Parameters
        ----------
        measure : {"aer", "precision", "recall", "f1"}
        level : float
            0 to 1, both excluded.
        resamples : int
            At least 100.
        seed : int

        Raises
        ------
        InputError
            An argument is outside its range.

        Notes
        -----
        The percentile bootstrap: sentences are drawn with replacement, the measure is computed
        anew on each draw. It says how far the figure would move on other sentences of the same
        kind, nothing about other text or other annotators.
        """
        column = _column(measure)
        _check(level, resamples)
        drawn = _resampled(self.counts, resamples, seed)[:, column]
        return _quantiles(drawn, level)


def score_alignments(gold: Sequence[Gold], system: Sequence[Links]) -> AlignmentScore:
    """Compare a system's links with annotators'.

    Parameters
    ----------
    gold : sequence of Gold
        One a sentence pair.
    system : sequence of sets of (source, target)
        In the same order.

    Returns
    -------
    score : AlignmentScore

    Raises
    ------
    InputError
        There are none, or the two differ in number.

    Examples
    --------
    >>> gold = [Gold.of({(0, 0), (1, 1)}, {(1, 2)})]
    >>> score = score_alignments(gold, [frozenset({(0, 0), (1, 2)})])
    >>> score.precision, score.recall, score.aer
    (1.0, 0.5, 0.25)
    """
    if len(gold) != len(system) or not gold:
        raise InputError(
            explain(
                "score_alignments(): `gold` and `system` do not match",
                expected="links for the same sentence pairs, at least one",
                got=f"{len(gold)} in `gold`, {len(system)} in `system`",
            )
        )
    rows = [
        (len(a), len(g.sure), len(a & g.sure), len(a & g.possible))
        for g, a in zip(gold, system, strict=True)
    ]
    return AlignmentScore(np.array(rows, dtype=np.int64))


def difference(
    one: AlignmentScore,
    other: AlignmentScore,
    measure: str = "aer",
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return a paired bootstrap interval of ``one - other``; zero outside it is a difference.

    Both must have been scored on the same sentences in the same order: each resample draws the
    same sentences for both, so that hard sentences do not count as noise.

    Parameters
    ----------
    one, other : AlignmentScore
    measure : {"aer", "precision", "recall", "f1"}
    level : float
        0 to 1, both excluded.
    resamples : int
        At least 100.
    seed : int

    Returns
    -------
    interval : Interval

    Raises
    ------
    InputError
        They were not, or an argument is outside its range.
    """
    if not np.array_equal(one.counts[:, 1], other.counts[:, 1]):
        raise InputError(
            explain(
                "difference(): the two scores are of different sentences",
                expected="two systems scored on the same gold links",
                got=f"{len(one.counts)} and {len(other.counts)} sentences, "
                f"{one.sure} and {other.sure} sure links",
            )
        )
    column = _column(measure)
    _check(level, resamples)
    both = [_resampled(s.counts, resamples, seed)[:, column] for s in (one, other)]
    return _quantiles(both[0] - both[1], level)


def _measures(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """From counts (..., 4) to precision, recall, F1, AER (..., 4)."""
    links, sure, hit, allowed = (counts[..., i] for i in range(4))
    # Nothing proposed is nothing wrong; nothing asked for is nothing missed.
    precision = np.where(links > 0, allowed / np.maximum(links, 1), 1.0)
    recall = np.where(sure > 0, hit / np.maximum(sure, 1), 1.0)
    both = precision + recall
    f1 = np.where(both > 0, 2 * precision * recall / np.where(both > 0, both, 1), 0.0)
    some = links + sure
    aer = np.where(some > 0, 1 - (hit + allowed) / np.maximum(some, 1), 0.0)
    return np.stack([precision, recall, f1, aer], axis=-1)


def _resampled(counts: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.float64]:
    sentences = len(counts)
    random = np.random.default_rng(seed)
    # How often each sentence is drawn: one product then sums up all resamples.
    times = random.multinomial(sentences, np.full(sentences, 1 / sentences), size=resamples)
    return _measures((times @ counts).astype(np.float64))


def _quantiles(values: NDArray[np.float64], level: float) -> Interval:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def _column(measure: str) -> int:
    if measure not in _MEASURES:
        raise InputError(
            explain(
                "interval(): `measure` is unknown",
                expected=" or ".join(_MEASURES),
                got=repr(measure),
            )
        )
    return _MEASURES.index(measure)


def _check(level: float, resamples: int) -> None:
    for name, fits, expected, got in (
        ("level", 0 < level < 1, "a number between 0 and 1", level),
        ("resamples", resamples >= 100, "at least 100", resamples),
    ):
        if not fits:
            raise InputError(
                explain(f"interval(): `{name}` is refused", expected=expected, got=repr(got))
            )
