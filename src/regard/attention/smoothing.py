"""Smoothed weights: a normaliser that lets an attention keep several keys in view."""

from jaxtyping import Bool, Float

from regard.attention.weights import softmax
from regard.axes import Array, checked, namespace

__all__ = ["smoothed"]


@checked
def smoothed(
    scores: Float[Array, "*rows T_enc"], *, mask: Bool[Array, "*rows T_enc"] | None = None
) -> Float[Array, "*rows T_enc"]:
    r"""Normalise sigmoids instead of exponentials, as Chorowski et al. [1]_ do.

    .. math:: a_i = \sigma(e_i) / \textstyle\sum_j \sigma(e_j)

    Parameters
    ----------
    scores : (*rows, T_enc)
        Any finite numbers; -inf forbids a key as a mask does. Unlike a softmax's, they are not
        free up to a constant: all keys with scores far above 0 share alike.
    mask : (*rows, T_enc), bool, optional
        True where the query may attend.

    Returns
    -------
    weights : (*rows, T_enc)
        Between 0 and 1. A row sums to 1 within rounding, or is all zero.

    Raises
    ------
    ShapeError
        Scores and mask differ in shape.
    MaskError
        The mask is not boolean.

    Notes
    -----
    Computed as a softmax of log-sigmoids, which is the same and cannot become 0/0. The paper's
    other proposal, sharpening by an inverse temperature beta > 1, is the `scale` of
    :func:`~regard.attention.attend.attend`.

    References
    ----------
    .. [1] Chorowski et al., "Attention-Based Models for Speech Recognition", NIPS 2015, section
       2.3. arXiv:1506.07503

    Examples
    --------
    >>> import numpy as np
    >>> print(smoothed(np.array([9.0, 7.0, -9.0])).round(2))
    [0.5 0.5 0. ]
    """
    xp = namespace(scores)
    if mask is not None:
        scores = xp.where(mask, scores, xp.zeros_like(scores))
    # At 0 both minimum and abs take the mean of their two slopes, which is the sigmoid's own.
    log_sigmoid = xp.minimum(scores, xp.zeros_like(scores)) - xp.log1p(xp.exp(-abs(scores)))
    weights: Array = softmax(log_sigmoid, mask=mask)
    return weights
