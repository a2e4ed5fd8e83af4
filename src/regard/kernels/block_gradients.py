r"""The gradients of additive scores in blocks; no compiler.

With x = E F as in :mod:`regard.kernels.grouped`, the tangent's derivative is 4 x / (1 + x)^2.
So with w = g / (1 + x)^2, where g is the gradient by the scores, a feature's gradients need no
more of the pairs than two products of a matrix and a vector::

    d_query = 4 v E (w F)        d_key = 4 v F (w' E)        d_v = sum g - 2 sum (w 1 + E (w F))

and (1 + x)^2 = 1 + E 2F + E^2 F^2 is itself a matrix product with three inner terms. Nothing is
kept from the forward pass but its arguments.
"""

from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from regard.axes import Array, device_of, namespace
from regard.kernels.blocks import BLOCK, plan_for
from regard.kernels.buffers import Reused, spans
from regard.kernels.grouped import survey, unit_of

__all__ = ["additive_gradients"]


def additive_gradients(
    query: Array, key: Array, v: Array, grad: Array
) -> tuple[Array, Array, Array]:
    """Return the gradients of sum(grad * scores) by query, key and v.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn)
        Already projected; arrays of NumPy or PyTorch. Types other than float32 take tangents.
    v : (d_attn,)
    grad : (*batch, T_dec, T_enc)
        The gradient by the scores.

    Returns
    -------
    d_query, d_key, d_v
        In the shapes of `query`, `key` and `v`; in float32 within 1e-6 of the largest of each.
    """
    xp = namespace(query)
    n = prod(query.shape[:-2])
    q, k, g = (xp.reshape(each, (n, *each.shape[-2:])) for each in (query, key, grad))
    d_query, d_key = xp.zeros_like(q), xp.zeros_like(k)
    d_v = xp.zeros(v.shape, dtype=_wide(v), device=device_of(v))
    if prod(g.shape) * v.shape[0]:
        with np.errstate(over="ignore", invalid="ignore"):
            _fill(q, k, v, g, (d_query, d_key, d_v))
    narrow = xp.astype(d_v, v.dtype)
    return xp.reshape(d_query, query.shape), xp.reshape(d_key, key.shape), narrow


def _fill(query: Array, key: Array, v: Array, grad: Array, found: tuple[Array, ...]) -> None:
    xp = namespace(query)
    d_query, d_key, d_v = found
    looked = None
    if query.dtype == xp.float32 and unit_of(v) is not None:
        looked = survey(query, key)
    by_squares = looked.squares if looked else [False] * query.shape[0]
    for squares, run in groupby(range(query.shape[0]), by_squares.__getitem__):
        indices = list(run)
        here = slice(indices[0], indices[-1] + 1)
        q, k, g = query[here], key[here], grad[here]
        into = d_query[here], d_key[here], d_v
        if squares and looked:
            shift, limit = looked.ranges.shift[here], looked.ranges.limit[here]
            _by_squares(q, k, g, shift=shift, limit=limit, into=into)
        else:
            _by_tangents(q, k, g, into)
    d_query *= v
    d_key *= v


def _by_squares(
    query: Array,
    key: Array,
    grad: Array,
    *,
    shift: Array,
    limit: Array,
    into: tuple[Array, ...],
) -> None:
    """Write gradients by query and key, without their factor v, and add to that by v."""
    xp = namespace(query)
    (n, T_dec, d_attn), T_enc = query.shape, key.shape[1]
    d_query, d_key, d_v = into
    blocks = Reused(query)
    plan = plan_for(T_dec, T_enc, d_attn, split=True, size=2 * BLOCK)
    for here in spans(n, plan.examples):
        sides = blocks.exponentials(query[here], key[here], shift[here], limit[here])
        turned = blocks.turned(sides)
        E, F = turned[..., :T_dec], turned[..., T_dec:]
        g = grad[here]
        # Features first, as the products come; turned once at the end.
        by_query = blocks.empty("by_query", (d_attn, g.shape[0], 2, T_dec))
        by_key = blocks.empty("by_key", (d_attn, g.shape[0], 1, T_enc))
        by_key[...] = 0
        squares = blocks.squares("squares", turned)
        left, right = squares[..., :T_dec], squares[..., T_dec:]
        right[1] *= 2
        queries = xp.permute_dims(left, (1, 2, 3, 0))
        keys = xp.permute_dims(right, (1, 2, 0, 3))
        for some in spans(d_attn, plan.groups):
            q, k = queries[some], keys[some]
            for rows in spans(T_dec, plan.queries):
                below = blocks.matmul("w", q[..., rows, :], k)
                w = blocks.divide("w", g[None, :, rows], below)
                # Row vectors on the left: PyTorch has no fast product for one on the right.
                turned = xp.matrix_transpose(w)
                by_query[some, ..., rows] = blocks.matmul("sums", k[..., :2, :], turned)
                by_key[some] += blocks.matmul("part", E[some, :, None, rows], w)
        w_ones, w_keys = by_query[:, :, 0], by_query[:, :, 1]  # w 1 and w 2F
        w_keys *= E
        d_v += xp.sum(g, dtype=d_v.dtype)
        d_v -= xp.sum(w_ones, axis=(1, 2), dtype=d_v.dtype) * 2
        d_v -= xp.sum(w_keys, axis=(1, 2), dtype=d_v.dtype)
        F *= by_key[:, :, 0]
        d_query[here] = xp.permute_dims(w_keys, (1, 2, 0))
        d_key[here] = xp.permute_dims(F, (1, 2, 0))
        d_query[here] *= 2
        d_key[here] *= 4


def _by_tangents(query: Array, key: Array, grad: Array, into: tuple[Array, ...]) -> None:
    """Do what :func:`_by_squares` does, with a tangent for each pair."""
    xp = namespace(query)
    n, T_dec, d_attn = query.shape
    d_query, d_key, d_v = into
    blocks = Reused(query)
    row = key.shape[1] * d_attn
    for here in spans(n, max(1, BLOCK // (T_dec * row))):
        for rows in spans(T_dec, max(1, min(T_dec, BLOCK // row))):
            pairs = blocks.add("pairs", query[here, rows, None, :], key[here, None])
            t = blocks.tanh("pairs", pairs)
            g = grad[here, rows, :, None]
            slope = blocks.multiply("slope", t, t)
            slope *= -1
            slope += 1
            slope *= g
            t *= g
            d_v += xp.sum(t, axis=(0, 1, 2), dtype=d_v.dtype)
            d_query[here, rows] += xp.sum(slope, axis=2)
            d_key[here] += xp.sum(slope, axis=1)


def _wide(v: Array) -> Any:
    """Return the type to add up d_v in: the sums of all pairs' shares nearly cancel."""
    xp = namespace(v)
    return v.dtype if str(device_of(v)).startswith("mps") else xp.float64
