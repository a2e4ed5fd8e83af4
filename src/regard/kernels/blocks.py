"""Additive scores in blocks that fit a core's cache, for arrays of any library; no compiler.

The arithmetic is that of :mod:`regard.kernels.grouped`, with tangents where it says so. Memory
beyond the arguments and the scores is that of the exponentials and of a few blocks. NumPy and
PyTorch reuse the blocks; libraries whose arrays cannot be written to make new ones.
"""

from itertools import groupby
from math import prod

import numpy as np

from regard.axes import Array, device_of, namespace
from regard.kernels.buffers import Plan, buffers_for, spans
from regard.kernels.grouped import coefficients, survey, unit_of

__all__ = ["BLOCK", "additive_scores", "pays", "plan_for"]

# Numbers in a block. A few blocks are in use at once, and all should stay in the second cache.
BLOCK = 2**17
# Groups of features that should be in a block even if it then holds few queries.
_GROUPS = 8
# Queries x keys over queries + keys, from which on a group of that size repays its products.
_WORTH = ((4, 24.0),)
_WORTH_IN_TORCH = 48.0


def additive_scores(query: Array, key: Array, v: Array) -> Array:
    """Score with v . tanh(query + key) for every pair; PyTorch must not record it.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn)
        Already projected. Types other than float32 take tangents throughout.
    v : (d_attn,)

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        In float32 within 1e-7 sum(abs(v)) of the exact value for features enough to average
        over; a NaN or infinity gives what the plain formula gives.
    """
    xp = namespace(query)
    *batch, T_dec, d_attn = query.shape
    T_enc = key.shape[-2]
    examples = prod(batch)
    query = xp.reshape(query, (examples, T_dec, d_attn))
    key = xp.reshape(key, (examples, T_enc, d_attn))
    if not examples * T_dec * T_enc * d_attn:
        scores = xp.matmul(query, xp.matrix_transpose(key))  # zeros, if anything
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = _scores(query, key, v)
    return xp.reshape(scores, (*batch, T_dec, T_enc))


def pays(T_dec: int, T_enc: int) -> bool:
    """Return whether, in PyTorch, groups of features are faster than features one by one."""
    return T_dec * T_enc >= _WORTH_IN_TORCH * (T_dec + T_enc)


def _scores(query: Array, key: Array, v: Array) -> Array:
    xp = namespace(query)
    largest = _largest_group(query.shape[1], key.shape[1])
    unit = unit_of(v) if largest and query.dtype == xp.float32 else None
    if unit is None:
        return _by_tangents(query, key, v)
    looked = survey(query, key, largest=largest)
    shift, limit, *_ = looked.ranges
    parts = []
    for group, run in groupby(range(query.shape[0]), looked.groups.__getitem__):
        indices = list(run)
        here = slice(indices[0], indices[-1] + 1)
        if group == 0:
            parts.append(_by_tangents(query[here, ...], key[here, ...], v))
            continue
        q, k, middle, most = (each[here, ...] for each in (query, key, shift, limit))
        parts.append(_by_groups(q, k, middle, most, v=v / unit, group=group) * unit)
    return _joined(parts, axis=0)


def _largest_group(T_dec: int, T_enc: int) -> int:
    ratio = T_dec * T_enc / (T_dec + T_enc)
    return next((group for group, least in _WORTH if ratio >= least), 0)


def plan_for(T_dec: int, T_enc: int, groups: int, *, split: bool, size: int = BLOCK) -> Plan:
    """Return blocks of about `size` numbers; queries are only told apart if `split`."""
    whole = groups * T_dec * T_enc
    if whole <= size:
        return Plan(size // whole, groups, T_dec)
    queries = max(1, min(T_dec, size // (_GROUPS * T_enc))) if split else T_dec
    return Plan(1, max(1, min(groups, size // (queries * T_enc))), queries)


def _by_groups(
    query: Array, key: Array, shift: Array, limit: Array, *, v: Array, group: int
) -> Array:
    """Return scores (n, T_dec, T_enc), with this many features sharing a division."""
    n, T_dec, d_attn = query.shape
    T_enc = key.shape[1]
    groups = -(-d_attn // group)
    blocks = buffers_for(query)
    counts = coefficients(_in_groups(v[:, None, None], group)[..., 0, 0])[..., None, None]
    plan = plan_for(T_dec, T_enc, groups, split=blocks.writable)
    # Exponentials are made for many examples at once if these are short.
    prepared = max(1, BLOCK // ((T_dec + T_enc) * d_attn * plan.examples)) * plan.examples
    parts = []
    for some in spans(n, prepared):
        sides = blocks.exponentials(*(each[some, ...] for each in (query, key, shift, limit)))
        for here in spans(sides.shape[0], plan.examples):
            factors = _in_groups(blocks.turned(sides[here, ...]), group)
            both = blocks.products("products", factors)
            counted = blocks.multiply("counted", both[..., T_dec:], counts)
            parts.append(blocks.quotients(both[..., :T_dec], both[..., T_dec:], counted, plan))
    return _joined(parts, axis=0)


def _in_groups(x: Array, group: int) -> Array:
    """Return (d_attn, n, T) as (group, groups, n, T), filled up with zeros."""
    xp = namespace(x)
    d_attn, n, T = x.shape
    rest = -d_attn % group
    if rest:
        x = xp.concat([x, xp.zeros((rest, n, T), dtype=x.dtype, device=device_of(x))], axis=0)
    return xp.reshape(x, (group, -1, n, T))


def _by_tangents(query: Array, key: Array, v: Array) -> Array:
    """Return scores (n, T_dec, T_enc) by the plain formula, block by block."""
    xp = namespace(query)
    n, T_dec, d_attn = query.shape
    row = key.shape[1] * d_attn
    together = max(1, BLOCK // (T_dec * row))
    queries = max(1, min(T_dec, BLOCK // row))
    blocks = buffers_for(query)
    parts = []
    for here in spans(n, together):
        rows = []
        for some in spans(T_dec, queries):
            asking = xp.expand_dims(query[here, some, :], axis=2)
            pairs = blocks.add("pairs", asking, xp.expand_dims(key[here, ...], axis=1))
            rows.append(xp.matmul(blocks.tanh("pairs", pairs), v))
        parts.append(_joined(rows, axis=1))
    return _joined(parts, axis=0)


def _joined(parts: list[Array], *, axis: int) -> Array:
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=axis)
