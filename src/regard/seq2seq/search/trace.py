"""How the hypotheses of a beam came to be, and reading them off at the end."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.seq2seq.search.hypothesis import Hypothesis

__all__ = ["Found", "Trace"]


class Found(NamedTuple):
    """Hypotheses of some sources, by where they ended; all arrays (sources, n)."""

    finished: bool
    scores: NDArray[np.float32]
    """The best first; minus infinity where there is none."""

    places: NDArray[np.int64]
    """(sources, n, 2): the step after the last symbol, and the row of that step."""

    ends: NDArray[np.float32]
    """Log-probabilities of the end."""


class Trace:
    """What every row of every step was made of.

    Parameters
    ----------
    widths : list of int
        Source symbols of each example; further columns of weights are padding.

    Notes
    -----
    Memory grows with rows times steps; kept weights with that times the longest source. Paths
    are only put together for the answers, once, all at the same time.
    """

    def __init__(self, widths: list[int]) -> None:
        self._widths = widths
        self._parents: list[NDArray[np.int64]] = []
        self._symbols: list[NDArray[np.int64]] = []
        self._log_probs: list[NDArray[np.float32]] = []
        self._weights: list[NDArray[np.float32]] = []

    def looks(self, weights: NDArray[np.float32] | None) -> None:
        """Keep where the rows of a step looked."""
        if weights is not None:
            self._weights.append(weights)

    def chose(
        self,
        parents: NDArray[np.int64],
        symbols: NDArray[np.int64],
        log_probs: NDArray[np.float32],
    ) -> None:
        """Keep which rows of a step the next step's rows go on from, and with what symbol."""
        self._parents.append(parents)
        self._symbols.append(symbols)
        self._log_probs.append(log_probs)

    def read(self, order: NDArray[np.int64], *found: Found) -> list[list[Hypothesis]]:
        """Put the hypotheses together.

        Parameters
        ----------
        order : (sources,)
            Number of the example that each row of `found` belongs to.
        *found : Found
            Those of the first go before those of the second, and so on; there are never more
            answers than one of them has columns.

        Returns
        -------
        answers : list of lists of Hypothesis
            At least one an example: an empty one without an end where there is none, as with
            scores that are no numbers.
        """
        answers: list[list[Hypothesis]] = [[] for _ in self._widths]
        most = found[0].scores.shape[1]
        for part in found:
            rows, columns = np.nonzero(part.scores > -np.inf)
            lengths, places = part.places[rows, columns].T
            ids, log_probs, weights = self._paths(lengths, places)
            for i, row in enumerate(rows):
                example = int(order[row])
                if len(answers[example]) == most:
                    continue
                length = int(lengths[i])
                each = log_probs[i, :length].tolist()
                if part.finished:
                    each.append(float(part.ends[row, columns[i]]))
                width = self._widths[example]
                answers[example].append(
                    Hypothesis(
                        ids=tuple(ids[i, :length].tolist()),
                        log_probs=tuple(each),
                        finished=part.finished,
                        # A copy: a view would keep the whole batch's weights alive.
                        weights=None if weights is None else weights[i, :length, :width].copy(),
                        score=float(part.scores[row, columns[i]]),
                    )
                )
        for example, each in enumerate(answers):
            if not each:
                looked = np.zeros((0, self._widths[example]), dtype=np.float32)
                weights = looked if self._weights else None
                each.append(Hypothesis((), (), False, weights, -math.inf))
        return answers

    def _paths(
        self, lengths: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32] | None]:
        steps = int(lengths.max(initial=0))
        ids = np.zeros((len(rows), steps), dtype=np.int64)
        log_probs = np.zeros((len(rows), steps), dtype=np.float32)
        weights = None
        if self._weights:
            weights = np.zeros((len(rows), steps, self._weights[0].shape[1]), dtype=np.float32)
        rows = rows.copy()
        for step in reversed(range(steps)):
            on = np.flatnonzero(lengths > step)
            at = rows[on]
            ids[on, step] = self._symbols[step][at]
            log_probs[on, step] = self._log_probs[step][at]
            rows[on] = at = self._parents[step][at]
            if weights is not None:
                weights[on, step] = self._weights[step][at]
        return ids, log_probs, weights
