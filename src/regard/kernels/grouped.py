r"""An additive score without a tangent for each pair, on arrays of any library; and its guards.

With E = e^{2q} and F = e^{2k}, tanh(q + k) = (E F - 1) / (E F + 1): one exponential for each
query and key feature, and for each pair no more than products and a division. Features share
the division too. For two of them, with weights v and w::

    v tanh + w tanh'  =  (-v - w + (v - w) E F + (w - v) E' F' + (v + w) E E' F F')
                         / (1 + E F + E' F' + E E' F F')

Above and below the line stand sums of products of one number that belongs to the query and one
that belongs to the key. Both are matrix products, then, with as many inner terms as a group of
features has subsets: 16 for four features. A score is two small matrix products and a division
for each group, and a sum: :func:`products` and :func:`coefficients` make the matrices.

What keeps it right, all of it decided example by example, so that no result depends on what
else is in the batch:

1. Each feature is shifted to the middle of the narrower of its two sides, so that opposite
   offsets of queries and keys cancel before any exponential.
2. The wider side is clamped where the tangent is saturated for every partner.
3. The group is as large as the exponents allow, from the examples' actual extremes: no product
   overflows, and none gets so small that a processor would treat it as subnormal, which is
   slow. (A kernel that forms 1 + E F by itself has nothing small to fear and can scale by 2^-62
   instead; ``csrc`` does. Here the products stand alone.)
4. An example that is too wide even for the smallest group, or holds a NaN or an infinity, takes
   the tangent for each pair. So does one whose sums are all near zero, where E F - 1 would
   cancel, and a `v` that leaves too few features for their rounding errors to average out: a
   feature alone is within 4e-7.
"""

from typing import Any, NamedTuple

from regard.axes import Array, device_of, namespace

__all__ = [
    "Ranges",
    "Survey",
    "averages",
    "coefficients",
    "exponentials",
    "products",
    "ranges_of",
    "squares_fit",
    "survey",
    "unit_of",
]

_SATURATED = 12.0  # 1 - tanh(12) = 8e-11
_LARGEST = 85.0  # e^85 and e^-85 are normal float32 numbers
_NARROW = 0.5  # |q + k| below which E F - 1 loses what the tangent keeps
_NARROW_SLOPES = 1.0  # the same for the gradient by v
_FEW = 32.0  # features whose rounding errors would not average out
_GROUPS = (4, 2)


class Ranges(NamedTuple):
    """Where queries and keys lie; arrays, so that a compiler can trace what uses them."""

    shift: Array
    """(examples, 1, d_attn): added to queries and taken from keys."""

    limit: Array
    """(examples, 1, d_attn): how far from 0 a shifted query or key matters."""

    above: Array
    """(examples, 1, d_attn): the largest exponent that E F can have, or 0."""

    below: Array
    """(examples, 1, d_attn): the largest that its inverse can have, or 0."""

    reach: Array
    """(examples,): the largest abs(q + k); NaN or infinite where an argument is."""


class Survey(NamedTuple):
    """What is right for which example."""

    ranges: Ranges

    groups: list[int]
    """For each example how many features may share a division; 0 = take tangents."""

    squares: list[bool]
    """For each example whether (1 + E F)^2 may be formed by products, for gradients."""


def ranges_of(query: Array, key: Array) -> Ranges:
    """Return where queries (examples, T_dec, d_attn) and keys lie; neither is empty."""
    xp = namespace(query)
    q_low, q_high = _extremes(query)
    k_low, k_high = _extremes(key)
    q_half, k_half = 0.5 * q_high - 0.5 * q_low, 0.5 * k_high - 0.5 * k_low
    by_keys = k_half <= q_half
    shift = xp.where(by_keys, 0.5 * k_high + 0.5 * k_low, -(0.5 * q_high + 0.5 * q_low))
    limit = xp.where(by_keys, k_half, q_half) + _SATURATED
    highest = clamp(q_high + shift, limit) + clamp(k_high - shift, limit)
    lowest = clamp(q_low + shift, limit) + clamp(k_low - shift, limit)
    zero = xp.zeros_like(highest)
    reach = xp.max(xp.maximum(xp.abs(q_high + k_high), xp.abs(q_low + k_low)), axis=(1, 2))
    return Ranges(
        shift, limit, 2 * xp.maximum(highest, zero), 2 * xp.maximum(-lowest, zero), reach
    )


def survey(query: Array, key: Array, *, largest: int = _GROUPS[0]) -> Survey:
    """Decide for each example.

    Parameters
    ----------
    query, key : (examples, T_dec, d_attn), (examples, T_enc, d_attn), float32
        Neither empty.
    largest : int
        The largest group to consider.
    """
    xp = namespace(query)
    ranges = ranges_of(query, key)
    suits = (ranges.reach >= _NARROW) & (ranges.reach < float("inf"))
    groups = xp.zeros(query.shape[0], dtype=xp.int32, device=device_of(query))
    for size in reversed(_GROUPS):
        if size <= largest:
            # What a group adds up also bounds each side of its own, as the narrower side lies
            # around 0.
            most = xp.maximum(_most(ranges.above, size), _most(ranges.below, size))
            fits = suits & (most <= _LARGEST)
            groups = xp.where(fits, xp.full_like(groups, size), groups)
    return Survey(ranges, _numbers(groups), _numbers(squares_fit(ranges)))


def squares_fit(ranges: Ranges) -> Array:
    """Return for each example whether (1 + E F)^2 and its products are normal numbers."""
    xp = namespace(ranges.reach)
    most = xp.max(xp.maximum(ranges.above, ranges.below), axis=(1, 2))
    suits = (ranges.reach >= _NARROW_SLOPES) & (ranges.reach < float("inf"))
    return suits & (2 * most <= _LARGEST)


def exponentials(query: Array, key: Array, shift: Array, limit: Array) -> Array:
    """Return e^{2 (query + shift)} and, behind them, e^{2 (key - shift)}, clamped by `limit`.

    Parameters
    ----------
    query, key : (examples, T_dec, d_attn), (examples, T_enc, d_attn)
    shift, limit : (examples, 1, d_attn)

    Returns
    -------
    factors : (examples, T_dec + T_enc, d_attn)
    """
    xp = namespace(query)
    return xp.exp(2 * clamp(xp.concat([query + shift, key - shift], axis=1), limit))


def products(factors: Array) -> Array:
    """Return the product of every subset of a group's factors, the empty one first.

    Parameters
    ----------
    factors : (group, ...)

    Returns
    -------
    products : (2 ** group, ...)
        Feature i is in the subset of index n where bit i of n is set.
    """
    xp = namespace(factors)
    found = xp.ones_like(factors[:1, ...])
    for i in range(factors.shape[0]):
        found = xp.concat([found, found * factors[i : i + 1, ...]], axis=0)
    return found


def coefficients(v: Array) -> Array:
    """Return what each of the :func:`products` counts above the line.

    Parameters
    ----------
    v : (group, n)

    Returns
    -------
    coefficients : (2 ** group, n)
        The weights of the features in the subset, less those of the others.
    """
    xp = namespace(v)
    found = xp.zeros_like(v[:1, :])
    for i in range(v.shape[0]):
        found = xp.concat([found - v[i : i + 1, :], found + v[i : i + 1, :]], axis=0)
    return found


def averages(v: Array) -> Array:
    """Return whether `v` (d_attn,) weighs enough features (guard 4), as an array."""
    xp = namespace(v)
    unit = xp.max(xp.abs(v))
    share = xp.abs(v) / unit
    enough = xp.sum(share) ** 2 >= _FEW * xp.sum(share * share)
    return enough & (unit > 0) & (unit < float("inf"))


def unit_of(v: Array) -> Array | None:
    """Return the largest weight, or None where `v` (d_attn,) weighs too few features."""
    xp = namespace(v)
    return xp.max(xp.abs(v)) if v.shape[0] and bool(averages(v)) else None


def clamp(x: Array, limit: Array) -> Array:
    """Return x, or plus or minus `limit` where it lies beyond; NaN stays."""
    xp = namespace(x)
    return xp.maximum(xp.minimum(x, limit), -limit)


def _extremes(x: Array) -> tuple[Array, Array]:
    xp = namespace(x)
    return xp.min(x, axis=1, keepdims=True), xp.max(x, axis=1, keepdims=True)


def _most(exponents: Array, size: int) -> Array:
    """Return the largest sum over a group of features, for each example."""
    xp = namespace(exponents)
    examples, _, d_attn = exponents.shape
    rest = -d_attn % size
    if rest:
        exponents = xp.concat([exponents, xp.zeros_like(exponents[..., :rest])], axis=2)
    # A group's features lie as far apart as there are groups.
    groups = xp.reshape(exponents, (examples, size, -1))
    return xp.max(xp.sum(groups, axis=1), axis=1)


def _numbers(array: Array) -> list[Any]:
    # One transfer where the library has a way; the standard has none.
    return list(array.tolist()) if hasattr(array, "tolist") else [int(each) for each in array]
