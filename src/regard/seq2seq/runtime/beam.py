"""Beam search, the NumPy form of :mod:`regard.seq2seq.search.beam`, with the same answers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.seq2seq.rewriter import Asked
from regard.seq2seq.runtime.cells import Floats, Ids
from regard.seq2seq.runtime.model import Steps, log_softmax
from regard.seq2seq.search import Hypothesis
from regard.seq2seq.search.constraint import forbid_reserved
from regard.seq2seq.search.trace import Found, Trace
from regard.seq2seq.vocab import BOS, EOS

__all__ = ["beam_search"]

# Sources without a beginning left are dropped when they make up this share of the batch:
# dropping copies the memory of the others.
_DROP = 1 / 4


def beam_search(
    model: Steps, source: Ids, lengths: Ids, asked: Asked, *, need_weights: bool
) -> list[list[Hypothesis]]:
    """Follow the likeliest beginnings; what is returned is said there."""
    search = _Beams(model, source, lengths, asked)
    while len(search.sources):
        search.advance(need_weights)
    return search.answers()


@dataclass
class _Best:
    """The best answers of every source so far; places without one score minus infinity."""

    scores: Floats
    """(sources, nbest), the best first."""

    places: Ids
    """(sources, nbest, 2): the step, and the row of that step that answered."""

    log_probs: Floats
    """(sources, nbest): of the end; of no meaning where the answer was cut."""

    def add(self, scores: Floats, places: Ids, log_probs: Floats) -> None:
        """Take in (sources, any number) more."""
        count = self.scores.shape[1]
        joined = np.concatenate([self.scores, scores], 1)
        order = np.argsort(-joined, axis=1, kind="stable")[:, :count]
        rows = np.arange(len(joined))[:, None]
        self.scores = joined[rows, order]
        self.log_probs = np.concatenate([self.log_probs, log_probs], 1)[rows, order]
        self.places = np.concatenate([self.places, places], 1)[rows, order]

    def select(self, kept: NDArray[np.bool_]) -> "_Best":
        return _Best(self.scores[kept], self.places[kept], self.log_probs[kept])

    @classmethod
    def none_yet(cls, sources: int, nbest: int) -> "_Best":
        scores = np.full((sources, nbest), -np.inf, np.float32)
        return cls(scores, np.zeros((sources, nbest, 2), np.int64), np.zeros_like(scores))


class _Beams:
    """One batch: `sources` still in it, each with `width` rows, one for each beginning."""

    def __init__(self, model: Steps, source: Ids, lengths: Ids, asked: Asked) -> None:
        batch, t_enc = source.shape
        how = asked.how
        self._model, self._how, self._constraint = model, how, asked.constraint
        self.sources = np.arange(batch)  # which are still in the batch
        self._limits = np.array(asked.limits)
        self._step = 0
        self._memory, self._state = model.start(source, lengths)
        self._previous = np.full(batch, BOS)
        # The logarithm of a beginning's probability; minus infinity once it is given up.
        self._scores = np.zeros((batch, 1), np.float32)
        constraint = asked.constraint
        self._nodes = None if constraint is None else constraint.start(batch)
        self._real: NDArray[np.bool_] | None = None
        self._looked: Floats | None = None
        if how.ranking.coverage:
            self._real = np.arange(t_enc) < lengths[:, None]
            self._looked = np.zeros((batch, t_enc), np.float32)
        self._best = _Best.none_yet(batch, how.nbest)
        self._cut = _Best.none_yet(batch, how.nbest)
        self._done: list[tuple[Ids, _Best, _Best]] = []
        self._trace = Trace(lengths.tolist())

    def advance(self, need_weights: bool) -> None:
        """Go one step."""
        sources, width = self._scores.shape
        scores, self._state, weights = self._model.step(
            self._previous, self._memory, self._state
        )
        before = self._looked
        if self._looked is not None and weights is not None:
            self._looked = self._looked + weights
        log_probs = log_softmax(forbid_reserved(scores))
        symbols = log_probs.shape[1]
        if self._constraint is not None:
            forbidden = self._constraint.forbidden(self._nodes, self._step, symbols)
            if forbidden is not None:
                np.copyto(log_probs, -np.inf, where=forbidden)
        sums = self._scores[..., None] + log_probs.reshape(sources, width, symbols)
        totals, flat = _highest(sums.reshape(sources, -1), min(self._how.beam, width * symbols))
        slots, chosen = np.divmod(flat, symbols)
        parents = np.arange(sources)[:, None] * width + slots
        each = log_probs[parents, chosen]
        self._trace.looks(weights if need_weights else None)
        ends = (chosen == EOS) & (totals > -np.inf)
        if ends.any():
            self._finish(ends, totals, parents, each)
            totals[ends] = -np.inf
        at_limit = self._limits <= self._step
        if at_limit.any():
            self._cut_off(at_limit, ends, parents, before)
            totals[at_limit] = -np.inf
        # What cannot win any more is given up.
        longest = (self._limits + 1).astype(np.float32)
        bound = self._how.ranking.bound(totals, longest)
        totals[bound <= self._best.scores[:, -1:]] = -np.inf
        self._go_on(totals, parents, chosen, each)

    def answers(self) -> list[list[Hypothesis]]:
        """Read off what was found."""
        order = np.concatenate([sources for sources, _, _ in self._done])
        finished = _found(True, [best for _, best, _ in self._done])
        cut = _found(False, [cut for _, _, cut in self._done])
        return self._trace.read(order, finished, cut)

    def _finish(
        self, ends: NDArray[np.bool_], totals: Floats, parents: Ids, each: Floats
    ) -> None:
        looked = None if self._looked is None else self._looked[parents]
        real = None if self._real is None else self._real[parents]
        scores = self._how.ranking.score(totals, self._step + 1, looked, real)
        scores = np.where(ends, scores, np.float32(-np.inf))
        self._best.add(scores, self._places(parents), each)

    def _cut_off(
        self,
        at_limit: NDArray[np.bool_],
        ends: NDArray[np.bool_],
        parents: Ids,
        looked: Floats | None,
    ) -> None:
        """Keep the beginnings that have reached the limit and did not end there."""
        sources, width = self._scores.shape
        alive = (self._scores > -np.inf) & at_limit[:, None]
        ended = np.zeros(sources * width, dtype=np.bool_)
        ended[parents[ends]] = True
        scores = self._how.ranking.score(
            self._scores.reshape(-1), max(self._step, 1), looked, self._real
        )
        gone = ~alive | ended.reshape(sources, width)
        scores = np.where(gone, np.float32(-np.inf), scores.reshape(sources, width))
        rows = np.arange(sources * width).reshape(sources, width)
        self._cut.add(scores, self._places(rows), np.zeros_like(scores))

    def _places(self, rows: Ids) -> Ids:
        return np.stack([np.full_like(rows, self._step), rows], -1)

    def _go_on(self, totals: Floats, parents: Ids, chosen: Ids, each: Floats) -> None:
        alive: NDArray[np.bool_] = np.any(totals > -np.inf, axis=1)
        dropped = len(alive) - int(alive.sum()) > _DROP * len(alive)
        if dropped:
            gone = ~alive
            self._done.append(
                (self.sources[gone], self._best.select(gone), self._cut.select(gone))
            )
            self._best, self._cut = self._best.select(alive), self._cut.select(alive)
            self.sources, self._limits = self.sources[alive], self._limits[alive]
            totals, parents = totals[alive], parents[alive]
            chosen, each = chosen[alive], each[alive]
        rows, self._previous = parents.reshape(-1), chosen.reshape(-1)
        self._trace.chose(rows, self._previous, each.reshape(-1))
        self._scores = totals
        self._step += 1
        if not len(self.sources):
            return
        if dropped:
            self._memory = self._memory.take(np.flatnonzero(alive))
        self._state = self._state.take(rows)
        if self._looked is not None and self._real is not None:
            self._looked, self._real = self._looked[rows], self._real[rows]
        if self._constraint is not None and self._nodes is not None:
            self._nodes = self._constraint.advance(self._nodes[rows], self._previous)


def _highest(values: Floats, count: int) -> tuple[Floats, Ids]:
    """Return the `count` highest of each row, the best first, and where they stood."""
    rows = np.arange(len(values))[:, None]
    places = np.argpartition(values, -count, axis=1)[:, -count:]
    found = values[rows, places]
    order = np.argsort(-found, axis=1, kind="stable")
    return found[rows, order], places[rows, order]


def _found(finished: bool, parts: list[_Best]) -> Found:
    return Found(
        finished,
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.log_probs for part in parts]),
    )
