"""Searches that follow one sequence for each source: the likeliest symbol, or a drawn one.

As :mod:`regard.seq2seq.search.follow` and ``draw``, of which these are the NumPy form.
"""

from collections.abc import Callable

import numpy as np

from regard.seq2seq.rewriter import Asked
from regard.seq2seq.runtime.cells import Floats, Ids
from regard.seq2seq.runtime.model import Steps, log_softmax
from regard.seq2seq.search import Hypothesis
from regard.seq2seq.search.constraint import forbid_reserved
from regard.seq2seq.search.record import Record
from regard.seq2seq.vocab import BOS, EOS

__all__ = ["drawn", "greedy"]

# Rows that have ended are dropped when they make up this share: dropping copies the others.
_DROP = 1 / 8

Chooser = Callable[[Floats, Ids], Ids]
"""(log_probs (rows, symbols), rows' numbers in the batch) -> symbols (rows,)."""


def greedy(model: Steps, source: Ids, lengths: Ids, asked: Asked) -> list[Hypothesis]:
    """Take the likeliest symbol at every step."""
    return _follow(model, source, lengths, asked, lambda log_probs, rows: log_probs.argmax(-1))


def drawn(
    model: Steps,
    source: Ids,
    lengths: Ids,
    asked: Asked,
    *,
    temperature: float,
    turn: int,
) -> list[Hypothesis]:
    """Draw one target for each source; ``turn`` counts those of one source."""
    numbers = [number * asked.how.nbest + turn for number in asked.numbers]
    # Each sequence draws from a stream of its own, one number a step.
    streams = [np.random.default_rng([asked.how.seed, number]) for number in numbers]

    def draw(log_probs: Floats, rows: Ids) -> Ids:
        points = np.array([streams[row].random() for row in rows.tolist()])
        scaled = log_probs.astype(np.float64) / temperature
        cumulated = np.exp(scaled - scaled.max(-1, keepdims=True)).cumsum(-1)
        cumulated /= cumulated[:, -1:]
        # The first symbol whose share ends beyond the point; shares of zero are never hit.
        reach = points[:, None] * cumulated[:, -1:]
        places: Ids = (cumulated <= reach).sum(-1)
        return places

    return _follow(model, source, lengths, asked, draw)


def _follow(
    model: Steps, source: Ids, lengths: Ids, asked: Asked, choose: Chooser
) -> list[Hypothesis]:
    ranking, constraint, record = asked.how.ranking, asked.constraint, Record()
    keep_weights = asked.need_weights or bool(ranking.coverage)
    rows = np.arange(len(source))
    last = np.array(asked.limits)
    previous = np.full(len(rows), BOS)
    done = np.zeros(len(rows), dtype=np.bool_)
    nodes = None if constraint is None else constraint.start(len(rows))
    memory, state = model.start(source, lengths)
    # One step more than the limit, in which a sequence may still end.
    for step in range(max(asked.limits) + 1):
        scores, state, weights = model.step(previous, memory, state)
        log_probs = log_softmax(forbid_reserved(scores))
        if constraint is not None:
            forbidden = constraint.forbidden(nodes, step, log_probs.shape[1])
            if forbidden is not None:
                np.copyto(log_probs, -np.inf, where=forbidden)
        previous = choose(log_probs, rows)
        record.rows.append(rows)
        record.symbols.append(previous)
        record.log_probs.append(log_probs[np.arange(len(rows)), previous])
        if keep_weights and weights is not None:
            record.weights.append(weights)
        done = done | (previous == EOS) | (last <= step)
        ended = int(done.sum())
        if ended == len(rows):
            break
        if constraint is not None:
            nodes = constraint.advance(nodes, previous)
        if ended > _DROP * len(rows):
            kept = np.flatnonzero(~done)
            memory, state = memory.take(kept), state.take(kept)
            rows, previous, last, done = rows[kept], previous[kept], last[kept], done[kept]
            nodes = None if nodes is None else nodes[kept]
    widths = lengths.tolist()
    return list(
        record.hypotheses(
            asked.limits, widths, ranking=ranking, need_weights=asked.need_weights
        )
    )
