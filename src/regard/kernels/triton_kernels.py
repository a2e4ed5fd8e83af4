"""Additive scores and their gradient as Triton kernels; float32.

The arithmetic is that of ``csrc``: features two by two share a division, terms are scaled by
2^-62 so that the product of two uses the whole range of exponents, and an example that is too
wide, or all near zero, takes a tangent for each pair. Inputs come features first, (batch, d,
T), so that one feature's queries and keys are two contiguous vectors, and a tile of pairs is
their outer product. No atomics: each program owns what it writes.

These kernels have run in Triton's interpreter only. They have never been compiled for a GPU,
and never been measured on one: block sizes and numbers of warps are estimates.
"""

# Triton reads the body of a kernel as its own language.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

import triton
import triton.language as tl

__all__ = ["context_kernel", "scores_kernel", "slopes_kernel"]

_SCALE = tl.constexpr(2.0**-62)


@triton.jit
def _tangent(x):
    """Return the hyperbolic tangent within 2e-7, also relative to itself near 0."""
    y = x * x
    p = -5.70498872745e-3 * y + 2.06390887954e-2
    p = p * y - 5.37397155531e-2
    p = p * y + 1.33314422036e-1
    p = p * y - 3.33332819422e-1
    near = x + x * (y * p)
    size = tl.minimum(tl.abs(x), 10.0)
    far = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * size))
    far = tl.where(x < 0, -far, far)
    far = tl.where(x != x, x, far)  # noqa: PLR0124 - NaN stays
    return tl.where(size < 0.625, near, far)


@triton.jit
def _score_tile(
    E, F, v, t, i, T_dec, T_enc, d, factored, BLOCK_T: tl.constexpr, BLOCK_I: tl.constexpr
):
    """Return the sums of weighted tangents (BLOCK_T, BLOCK_I); d is even."""
    asks, found = t < T_dec, i < T_enc
    total = tl.zeros((BLOCK_T, BLOCK_I), tl.float32)
    if factored:
        for c in range(0, d, 2):
            v0, v1 = tl.load(v + c), tl.load(v + c + 1)
            e0 = tl.load(E + c * T_dec + t, mask=asks, other=0.0)
            e1 = tl.load(E + (c + 1) * T_dec + t, mask=asks, other=0.0)
            f0 = tl.load(F + c * T_enc + i, mask=found, other=0.0)
            f1 = tl.load(F + (c + 1) * T_enc + i, mask=found, other=0.0)
            a = e0[:, None] * f0[None, :] + _SCALE
            b = e1[:, None] * f1[None, :] + _SCALE
            # 1 / (1 + E F) lies around a half; taking that off keeps the sum small.
            total += (v0 * b + v1 * a) / (a * b) - (0.5 / _SCALE) * (v0 + v1)
        total *= -2.0 * _SCALE
    else:
        for c in range(0, d, 2):
            e0 = tl.load(E + c * T_dec + t, mask=asks, other=0.0)
            e1 = tl.load(E + (c + 1) * T_dec + t, mask=asks, other=0.0)
            f0 = tl.load(F + c * T_enc + i, mask=found, other=0.0)
            f1 = tl.load(F + (c + 1) * T_enc + i, mask=found, other=0.0)
            v0, v1 = tl.load(v + c), tl.load(v + c + 1)
            first = v0 * _tangent(e0[:, None] + f0[None, :])
            total += first + v1 * _tangent(e1[:, None] + f1[None, :])
    return total


@triton.jit
def scores_kernel(
    E, F, v, kind, scores, T_dec, T_enc, d, BLOCK_T: tl.constexpr, BLOCK_I: tl.constexpr
):
    """Write scores (batch, T_dec, T_enc); one program a tile.

    E : (batch, d, T_dec), F : (batch, d, T_enc), v : (d,), kind : (batch,), 1 = factored.
    """
    n = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    i = tl.program_id(2) * BLOCK_I + tl.arange(0, BLOCK_I)
    E += n * d * T_dec
    F += n * d * T_enc
    factored = tl.load(kind + n) != 0
    tile = _score_tile(E, F, v, t, i, T_dec, T_enc, d, factored, BLOCK_T, BLOCK_I)
    at = n * T_dec * T_enc + t[:, None].to(tl.int64) * T_enc + i[None, :]
    tl.store(scores + at, tile, mask=(t < T_dec)[:, None] & (i < T_enc)[None, :])


@triton.jit
def context_kernel(
    E,
    F,
    v,
    kind,
    unit,
    may,
    value,
    context,
    T_dec,
    T_enc,
    d,
    d_v,
    BLOCK_T: tl.constexpr,
    BLOCK_I: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    """Write contexts (batch, T_dec, d_v) by a running softmax; one program a block of queries.

    unit : (1,), multiplies scores; may : (batch, T_enc), 1 = may be attended;
    value : (batch, T_enc, d_v). A row without a permitted key gives zeros.
    """
    n = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    column = tl.arange(0, BLOCK_V)
    E += n * d * T_dec
    F += n * d * T_enc
    factored = tl.load(kind + n) != 0
    times = tl.load(unit)
    peak = tl.full((BLOCK_T,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_T,), tl.float32)
    summed = tl.zeros((BLOCK_T, BLOCK_V), tl.float32)
    for start in range(0, T_enc, BLOCK_I):
        i = start + tl.arange(0, BLOCK_I)
        allowed = tl.load(may + n * T_enc + i, mask=i < T_enc, other=0) != 0
        tile = _score_tile(E, F, v, t, i, T_dec, T_enc, d, factored, BLOCK_T, BLOCK_I)
        tile = tl.where(allowed[None, :], times * tile, float("-inf"))
        higher = tl.maximum(peak, tl.max(tile, 1))
        # Until a permitted key is met, the peak is -inf, and -inf - -inf would be NaN.
        base = tl.where(higher == float("-inf"), 0.0, higher)
        shares = tl.exp(tile - base[:, None])
        fade = tl.exp(peak - base)
        at = n * T_enc * d_v + i[:, None].to(tl.int64) * d_v + column[None, :]
        here = allowed[:, None] & (column < d_v)[None, :]
        values = tl.load(value + at, mask=here, other=0.0)
        summed = summed * fade[:, None] + tl.dot(shares, values, input_precision="ieee")
        total = total * fade + tl.sum(shares, 1)
        peak = higher
    mean = summed / tl.where(total > 0.0, total, 1.0)[:, None]
    at = n * T_dec * d_v + t[:, None].to(tl.int64) * d_v + column[None, :]
    tl.store(context + at, mean, mask=(t < T_dec)[:, None] & (column < d_v)[None, :])


@triton.jit
def slopes_kernel(
    mine,
    other,
    kind,
    grad,
    slopes,
    by_v,
    T_mine,
    T_other,
    d,
    stride_mine,
    stride_other,
    WITH_V: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_OTHER: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Write sums of grad (1 - h^2) over the other side, h the tangent; and of grad h.

    mine : (batch, d, T_mine), other : (batch, d, T_other); queries and keys or the reverse,
    with the strides of grad that this makes. slopes : (batch, d, T_mine). by_v : (batch,
    blocks, d), only written if WITH_V. d is a multiple of FEATURES, which is even.
    """
    n = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    t = block * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(2) * FEATURES
    row = tl.arange(0, FEATURES)
    inside = t < T_mine
    mine += n * d * T_mine + first * T_mine
    other += n * d * T_other + first * T_other
    grad += n * T_mine * T_other
    factored = tl.load(kind + n) != 0
    total = tl.zeros((FEATURES, BLOCK), tl.float32)
    total_v = tl.zeros((FEATURES,), tl.float32)
    for start in range(0, T_other, BLOCK_OTHER):
        i = start + tl.arange(0, BLOCK_OTHER)
        there = i < T_other
        at = t[:, None].to(tl.int64) * stride_mine + i[None, :].to(tl.int64) * stride_other
        g = tl.load(grad + at, mask=inside[:, None] & there[None, :], other=0.0)
        for c in range(0, FEATURES, 2):
            e0 = tl.load(mine + c * T_mine + t, mask=inside, other=0.0)
            e1 = tl.load(mine + (c + 1) * T_mine + t, mask=inside, other=0.0)
            f0 = tl.load(other + c * T_other + i, mask=there, other=0.0)
            f1 = tl.load(other + (c + 1) * T_other + i, mask=there, other=0.0)
            if factored:
                a = e0[:, None] * f0[None, :] + _SCALE
                b = e1[:, None] * f1[None, :] + _SCALE
                inverse = (2.0 * _SCALE) / (a * b)
                h0 = 1.0 - inverse * b
                h1 = 1.0 - inverse * a
            else:
                h0 = _tangent(e0[:, None] + f0[None, :])
                h1 = _tangent(e1[:, None] + f1[None, :])
            s0 = tl.sum(g - g * h0 * h0, 1)
            s1 = tl.sum(g - g * h1 * h1, 1)
            total += tl.where((row == c)[:, None], s0[None, :], 0.0)
            total += tl.where((row == c + 1)[:, None], s1[None, :], 0.0)
            if WITH_V:
                total_v += tl.where(row == c, tl.sum(g * h0), 0.0)
                total_v += tl.where(row == c + 1, tl.sum(g * h1), 0.0)
    at = n * d * T_mine + (first + row)[:, None] * T_mine + t[None, :]
    tl.store(slopes + at, total, mask=inside[None, :])
    if WITH_V:
        blocks = tl.num_programs(1)
        tl.store(by_v + (n * blocks + block) * d + first + row, total_v)
