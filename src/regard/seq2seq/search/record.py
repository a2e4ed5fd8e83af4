"""What happened, step by step, in a search that follows one sequence for each source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.seq2seq.search.hypothesis import Hypothesis
from regard.seq2seq.search.ranking import Ranking
from regard.seq2seq.vocab import EOS

__all__ = ["Record", "score_of"]


@dataclass
class Record:
    """One entry a step; rows are numbers in the batch."""

    rows: list[NDArray[np.int64]] = field(default_factory=list)
    symbols: list[NDArray[np.int64]] = field(default_factory=list)
    log_probs: list[NDArray[np.float32]] = field(default_factory=list)
    weights: list[NDArray[np.float32]] = field(default_factory=list)

    def hypotheses(
        self,
        limits: Sequence[int],
        widths: Sequence[int],
        *,
        ranking: Ranking,
        need_weights: bool,
    ) -> Iterator[Hypothesis]:
        """Put the hypotheses together, one for each example.

        Parameters
        ----------
        limits, widths : sequence of int
            Symbols that each target may have, and that each source has.
        ranking : Ranking
        need_weights : bool
            Keep the attention weights.
        """
        shape = (len(limits), len(self.rows))
        ids = np.full(shape, EOS, dtype=np.int64)
        log_probs = np.zeros(shape, dtype=np.float32)
        looked = None
        if self.weights:
            looked = np.zeros((*shape, self.weights[0].shape[1]), dtype=np.float32)
        for step, at in enumerate(self.rows):
            ids[at, step] = self.symbols[step]
            log_probs[at, step] = self.log_probs[step]
            if looked is not None:
                looked[at, step] = self.weights[step]
        for row, limit in enumerate(limits):
            ends = np.flatnonzero(ids[row, : limit + 1] == EOS)
            finished = len(ends) > 0
            length = int(ends[0]) if finished else limit
            each = tuple(log_probs[row, : length + finished].tolist())
            seen = None
            if looked is not None:
                seen = looked[row, : length + finished, : widths[row]]
            yield Hypothesis(
                ids=tuple(ids[row, :length].tolist()),
                log_probs=each,
                finished=finished,
                # A copy: a view would keep the whole batch's weights alive.
                weights=seen[:length].copy() if need_weights and seen is not None else None,
                score=score_of(ranking, each, seen),
            )


def score_of(
    ranking: Ranking, log_probs: Sequence[float], weights: NDArray[np.float32] | None
) -> float:
    """Return the score of a sequence from its symbols' log-probabilities and weights."""
    if ranking.plain:
        return sum(log_probs)
    looked = None if weights is None else weights.sum(0)
    return float(ranking.score(np.float32(sum(log_probs)), len(log_probs), looked, None))
