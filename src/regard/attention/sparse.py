r"""Sparse weights: normalisers that give a poor key exactly zero, where a softmax never does.

Both project a row of scores onto the weights that sum to 1, and keep the promises of
:func:`regard.attention.weights.softmax`: weights are never negative; each row sums to 1, or is
all zero when its query may attend nowhere; a forbidden key has weight exactly 0 and no
influence on any gradient, whatever its score holds.
"""

from collections.abc import Callable

from jaxtyping import Bool, Float

from regard.attention import reference_variants as reference
from regard.attention.weights import bounded_above, row_by_row
from regard.axes import Array, Nested, checked, device_of, namespace

__all__ = ["entmax15", "sparsemax"]


@checked
def sparsemax(
    scores: Float[Array, "*rows T_enc"] | Nested,
    *,
    mask: Bool[Array, "*rows T_enc"] | Nested | None = None,
) -> Float[Array, "*rows T_enc"] | Nested:
    r"""Return the weights nearest to the scores, as Martins and Astudillo [1]_ define them.

    .. math:: a = \arg\min_{p \in \Delta} \lVert p - e \rVert^2 = \max(e - \tau, 0)

    with the threshold tau for which the row sums to 1.

    Parameters
    ----------
    scores : (*rows, T_enc)
        Any finite numbers; -inf forbids a key as a mask does. Always over the last axis. Unlike
        a softmax's, their scale decides how many keys are attended: differences above 1 give
        the lower key nothing.
    mask : (*rows, T_enc), bool, optional
        True where the query may attend.

    Returns
    -------
    weights : (*rows, T_enc)
        Between 0 and 1, often exactly 0. A row sums to 1 within rounding, or is all zero.
        Half-precision scores are normalised in float32. Lists give lists.

    Raises
    ------
    ShapeError
        Scores and mask differ in shape.
    MaskError
        The mask is not boolean.

    Notes
    -----
    Algorithm 1: sort, find the largest k with ``1 + k e_(k) > e_(1) + ... + e_(k)``, and take
    tau from the k largest. Backward, the mean over the attended keys is taken away from their
    gradients, and all other keys get none: the paper's Jacobian, section 2.5.

    References
    ----------
    .. [1] Martins and Astudillo, "From Softmax to Sparsemax: A Sparse Model of Attention and
       Multi-Label Classification", ICML 2016, section 2, eqs. 1 to 4. arXiv:1602.02068

    Examples
    --------
    >>> [round(weight, 3) for weight in sparsemax([0.94, 0.52, -0.24])]
    [0.71, 0.29, 0.0]
    """
    if isinstance(scores, list | tuple):
        return row_by_row(reference.sparsemax, scores, mask)
    return _normalised(scores, mask, _sparsemax, lowest=-2.0)


@checked
def entmax15(
    scores: Float[Array, "*rows T_enc"] | Nested,
    *,
    mask: Bool[Array, "*rows T_enc"] | Nested | None = None,
) -> Float[Array, "*rows T_enc"] | Nested:
    r"""Return the 1.5-entmax of each row, between softmax and sparsemax [1]_.

    .. math:: a_i = \max(e_i / 2 - \tau, 0)^2

    with the threshold tau for which the row sums to 1.

    Parameters
    ----------
    scores : (*rows, T_enc)
        Any finite numbers; -inf forbids a key as a mask does. Always over the last axis.
        Differences above 2 give the lower key nothing.
    mask : (*rows, T_enc), bool, optional
        True where the query may attend.

    Returns
    -------
    weights : (*rows, T_enc)
        Between 0 and 1, often exactly 0. A row sums to 1 within rounding, or is all zero.
        Half-precision scores are normalised in float32. Lists give lists.

    Raises
    ------
    ShapeError
        Scores and mask differ in shape.
    MaskError
        The mask is not boolean.

    Notes
    -----
    The exact algorithm: for each number k of largest scores the threshold has a closed form in
    their mean and spread; the right k is the last whose score reaches its own threshold.

    References
    ----------
    .. [1] Peters, Niculae and Martins, "Sparse Sequence-to-Sequence Models", ACL 2019, section
       3 and algorithm 2. arXiv:1905.05702

    Examples
    --------
    >>> [round(weight, 3) for weight in entmax15([0.94, 0.52, -0.94])]
    [0.647, 0.353, 0.0]
    """
    if isinstance(scores, list | tuple):
        return row_by_row(reference.entmax15, scores, mask)
    return _normalised(scores, mask, _entmax15, lowest=-4.0)


def _sparsemax(z: Array) -> Array:
    xp = namespace(z)
    ordered, k = _ordered(z)
    total = xp.cumulative_sum(ordered, axis=-1)
    reached = 1 + k * ordered > total
    tau = _at_last(reached, (total - 1) / k)
    # From the unsorted scores, so that the gradient needs no way back through the sorting.
    attended = ~(z <= tau)  # so written, NaN is attended and shows
    tau = (_sum(attended, z) - 1) / _count(attended, z)
    return xp.where(attended, xp.clip(z - tau, 0.0, None), xp.zeros_like(z))


def _entmax15(z: Array) -> Array:
    xp = namespace(z)
    x = z / 2
    ordered, k = _ordered(x)
    mean = xp.cumulative_sum(ordered, axis=-1) / k
    square = xp.cumulative_sum(ordered**2, axis=-1) / k
    rest = 1 / k - (square - mean**2)
    taus = mean - xp.sqrt(xp.clip(rest, 0.0, None))
    tau = _at_last(taus <= ordered, taus)
    # The same closed form on the unsorted scores that stay; under its root is at least 1/k^2,
    # so that its gradient is finite.
    attended = ~(x <= tau)
    count = _count(attended, x)
    mean = _sum(attended, x) / count
    spread = _sum(attended, (x - mean) ** 2)
    above = xp.where(attended, x - mean + xp.sqrt((1 - spread) / count), xp.zeros_like(x))
    return xp.clip(above, 0.0, None) ** 2


def _normalised(
    scores: Array, mask: Array | None, normalise: Callable[[Array], Array], *, lowest: float
) -> Array:
    """Normalise what may be attended; `lowest` below the peak no score has any weight."""
    if scores.shape[-1] == 0:
        return scores
    xp = namespace(scores)
    half = xp.finfo(scores.dtype).bits < 32
    work = bounded_above(xp.astype(scores, xp.float32) if half else scores)
    may = work != float("-inf")
    may = may if mask is None else may & mask
    # A forbidden score takes the place of the smallest number, so that none is carried on.
    low = xp.full_like(work, float(xp.finfo(work.dtype).min))
    peak = xp.max(xp.where(may, work, low), axis=-1, keepdims=True)
    z = xp.where(may, work, peak) - peak
    floor = xp.full_like(z, lowest)
    z = xp.where(may & ~(z < floor), z, floor)
    weights = xp.where(may, normalise(z), xp.zeros_like(z))
    return xp.astype(weights, scores.dtype) if half else weights


def _ordered(z: Array) -> tuple[Array, Array]:
    xp = namespace(z)
    k = xp.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=device_of(z))
    return xp.sort(z, axis=-1, descending=True), k


def _at_last(reached: Array, taus: Array) -> Array:
    """Return each row's tau at its last True; the Trues of a row stand in front."""
    xp = namespace(taus)
    later = xp.concat([reached[..., 1:], xp.zeros_like(reached[..., :1])], axis=-1)
    return _sum(reached & ~later, taus)


def _sum(chosen: Array, z: Array) -> Array:
    xp = namespace(z)
    return xp.sum(xp.where(chosen, z, xp.zeros_like(z)), axis=-1, keepdims=True)


def _count(chosen: Array, z: Array) -> Array:
    xp = namespace(z)
    count = xp.sum(xp.astype(chosen, z.dtype), axis=-1, keepdims=True)
    return xp.clip(count, 1.0, None)
