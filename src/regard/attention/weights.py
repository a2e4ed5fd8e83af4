"""From scores to weights: a softmax that keeps its promises under masks.

The contract: weights are never negative; each row sums to 1, or is all zero when its query may
attend nowhere; a forbidden key has weight exactly 0 and no influence on any gradient, whatever
its score holds, NaN and infinity included.
"""

from collections.abc import Callable
from typing import Any

from jaxtyping import Bool, Float

from regard.attention import reference
from regard.axes import Array, Nested, checked, namespace

__all__ = ["bounded_above", "softmax"]


@checked
def softmax(
    scores: Float[Array, "*rows T_enc"] | Nested,
    *,
    mask: Bool[Array, "*rows T_enc"] | Nested | None = None,
) -> Float[Array, "*rows T_enc"] | Nested:
    r"""Turn each row of scores into weights over the keys.

    .. math:: a_i = \exp(e_i - m) / \sum_j \exp(e_j - m), \quad m = \max_j e_j

    with i and j over the keys that may be attended. Subtracting the largest score leaves the
    ratio as it is and keeps every exponential within range.

    Parameters
    ----------
    scores : (*rows, T_enc)
        -inf forbids a key as a mask does. Scores of +inf, as products that overflow have them,
        are taken in the limit: the keys that have one share the weight equally. A NaN that may
        be attended makes its row NaN. Always over the last axis.
    mask : (*rows, T_enc), bool, optional
        True where the query may attend.

    Returns
    -------
    weights : (*rows, T_enc)
        Between 0 and 1. A row sums to 1 within rounding, or is all zero. Half-precision scores
        are normalised in float32 and returned in their own type. Lists give lists.

    Raises
    ------
    ShapeError
        Scores and mask differ in shape.
    MaskError
        The mask is not boolean.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio 2015, section 3.1, eq. 6. arXiv:1409.0473

    Examples
    --------
    >>> [round(weight, 3) for weight in softmax([0.94, 0.52, 0.24])]
    [0.464, 0.305, 0.231]
    >>> softmax([0.94, 0.52], mask=[False, False])
    [0.0, 0.0]
    """
    if isinstance(scores, list | tuple):
        return row_by_row(reference.softmax, scores, mask)
    if scores.shape[-1] == 0:
        return scores
    xp = namespace(scores)
    half = xp.finfo(scores.dtype).bits < 32
    work = bounded_above(xp.astype(scores, xp.float32) if half else scores)
    if mask is None:
        peak = _bounded(xp.max(work, axis=-1, keepdims=True))
        exponentials = xp.exp(work - peak)
    else:
        lowest = xp.full_like(work, float(xp.finfo(work.dtype).min))
        peak = _bounded(xp.max(xp.where(mask, work, lowest), axis=-1, keepdims=True))
        # The peak stands in for forbidden scores, so that none overflows or carries a NaN on.
        kept = xp.where(mask, work, peak)
        exponentials = xp.where(mask, xp.exp(kept - peak), xp.zeros_like(work))
    total = xp.sum(exponentials, axis=-1, keepdims=True)
    # Only a row with no key to attend sums to 0; dividing it by 1 leaves it all zero.
    weights = exponentials / xp.where(total > 0, total, xp.ones_like(total))
    return xp.astype(weights, scores.dtype) if half else weights


def bounded_above(scores: Array) -> Array:
    """Return scores with the largest finite number for +inf, so that inf - inf is not met."""
    xp = namespace(scores)
    return xp.clip(scores, None, float(xp.finfo(scores.dtype).max))


def _bounded(peak: Array) -> Array:
    xp = namespace(peak)
    # A row of -inf has no peak to subtract: -inf - (-inf) would be NaN instead of no weight.
    return xp.where(peak == float("-inf"), xp.zeros_like(peak), peak)


def row_by_row(normalise: Callable[[Any, Any], Nested], scores: Any, mask: Any) -> Nested:
    """Apply a normaliser of one row, a list, to every row of nested lists."""
    if scores and isinstance(scores[0], list | tuple):
        rows = [None] * len(scores) if mask is None else mask
        return [row_by_row(normalise, row, may) for row, may in zip(scores, rows, strict=True)]
    return normalise(scores, mask)
