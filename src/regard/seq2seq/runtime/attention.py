"""Scores and weights of attention over the memories of some sources.

Several rows, the beginnings that a beam search follows, may read one source: ``rows`` is
``sources * width``, a source's rows beside each other, and the memory is not repeated for them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.seq2seq.runtime.cells import Floats, Ids, Linear

__all__ = ["Memory", "Score", "additive", "average", "compared", "dot", "softmax"]

Score = Callable[[Floats, "Memory"], Floats]
"""(query (rows, d_s), memory) -> scores (rows, T_enc)."""


# Pairs of features that are compared at once: what a cache holds.
_PAIRS = 1 << 16


@dataclass(frozen=True)
class Memory:
    """Keys and values of some sources."""

    key: Floats
    """(sources, T_enc, n): what a query is compared with."""

    value: Floats
    """(sources, T_enc, d_h)"""

    mask: NDArray[np.bool_] | None
    """(sources, T_enc), False on padding; None where there is none."""

    lengths: Ids
    """(sources,)"""

    def take(self, sources: Ids) -> "Memory":
        """Return the memory of these sources, in this order."""
        value = self.value[sources]
        return Memory(
            value if self.key is self.value else self.key[sources],
            value,
            None if self.mask is None else self.mask[sources],
            self.lengths[sources],
        )

    def rows(self, mask: NDArray[np.bool_], rows: int) -> NDArray[np.bool_]:
        """Return something of the sources, as (sources, T_enc), for every row."""
        return np.repeat(mask, rows // len(mask), axis=0)


def softmax(scores: Floats, may: NDArray[np.bool_] | None = None) -> Floats:
    """Return weights (rows, T_enc) that are 0 where a row may not look; ``scores`` are lost.

    A row that may look nowhere has no weights at all.
    """
    if may is not None:
        scores[~may] = -np.inf
    top = scores.max(-1, keepdims=True)
    if may is not None:
        top[np.isneginf(top)] = 0.0
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    if may is not None:
        total[total == 0.0] = 1.0
    scores /= total
    return scores


def average(weights: Floats, memory: Memory) -> Floats:
    """Return the contexts (rows, d_h) of weights (rows, T_enc)."""
    sources, t_enc, d_h = memory.value.shape
    found: Floats = (weights.reshape(sources, -1, t_enc) @ memory.value).reshape(-1, d_h)
    return found


def compared(query: Floats, key: Floats, more: Floats | None = None) -> Floats:
    """Return tanh of key + query (+ more), (rows, T_enc, d_attn).

    Parameters
    ----------
    query : (rows, d_attn)
        Projected.
    key : (sources, T_enc, d_attn)
    more : (rows, T_enc, d_attn), optional
    """
    sources, t_enc, d_attn = key.shape
    pairs = key[:, None] + query.reshape(sources, -1, 1, d_attn)
    pairs = pairs.reshape(-1, t_enc, d_attn)
    if more is not None:
        pairs += more
    np.tanh(pairs, out=pairs)
    return pairs


def additive(from_query: Linear, v: Floats) -> Score:
    """Return the score v^T tanh(W s + key)."""

    def score(query: Floats, memory: Memory) -> Floats:
        projected = from_query(query)
        sources, t_enc, d_attn = memory.key.shape
        width = len(query) // sources
        scores = np.empty((len(query), t_enc), np.float32)
        many = max(1, _PAIRS // (width * t_enc * d_attn))
        for first in range(0, sources, many):
            some = slice(first * width, (first + many) * width)
            pairs = compared(projected[some], memory.key[first : first + many])
            np.matmul(pairs, v, out=scores[some])
        return scores

    return score


def dot(query: Floats, memory: Memory) -> Floats:
    """Return the products of queries and keys."""
    sources, t_enc, d_s = memory.key.shape
    keys = memory.key.swapaxes(1, 2)
    found: Floats = (query.reshape(sources, -1, d_s) @ keys).reshape(-1, t_enc)
    return found
