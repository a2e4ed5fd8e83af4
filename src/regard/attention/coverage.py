r"""Coverage: an attention that is told how much it has attended to each key already [1]_.

.. [1] See, Liu and Manning, "Get To The Point: Summarization with Pointer-Generator Networks",
   ACL 2017, section 2.3. arXiv:1704.04368
"""

from jaxtyping import Float

from regard.axes import Array, checked, namespace

__all__ = ["coverage_before", "coverage_loss", "covered"]


@checked
def coverage_before(
    weights: Float[Array, "*batch T_dec T_enc"],
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Return what each step finds attended to by the steps before it: equation 10.

    .. math:: c^t = \sum_{t'=0}^{t-1} a^{t'}

    Parameters
    ----------
    weights : (*batch, T_dec, T_enc)
        One row a step.

    Returns
    -------
    coverage : (*batch, T_dec, T_enc)
        At least 0; the first step's row is zero.

    Raises
    ------
    ShapeError, BackendError
        `weights` is no array of floating-point numbers with two axes.

    Examples
    --------
    >>> import numpy as np
    >>> coverage_before(np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]))
    array([[0. , 0. ],
           [0.5, 0.5],
           [0.5, 1.5]])
    """
    xp = namespace(weights)
    if weights.shape[-2] == 0:
        return weights
    earlier = xp.cumulative_sum(weights[..., :-1, :], axis=-2)
    return xp.concat([xp.zeros_like(weights[..., :1, :]), earlier], axis=-2)


@checked
def covered(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    *,
    coverage: Float[Array, "*batch T_dec T_enc"],
    W_s: Float[Array, "d_attn d_s"],
    W_h: Float[Array, "d_attn d_h"],
    w_c: Float[Array, " d_attn"],
    b: Float[Array, " d_attn"],
    v: Float[Array, " d_attn"],
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score as :func:`~regard.attention.scores.additive` does, with coverage: equation 11.

    .. math:: e_{t,i} = v^\top \tanh(W_h h_i + W_s s_t + w_c c_i^t + b)

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states *after* the step, s_t.
    key : (*batch, T_enc, d_h)
        Encoder states.
    coverage : (*batch, T_dec, T_enc)
        What each step finds covered (:func:`coverage_before`).
    W_s, W_h : (d_attn, d_s), (d_attn, d_h)
        Projections of queries and keys.
    w_c : (d_attn,)
        What a unit of coverage adds to each feature.
    b, v : (d_attn,)
        The paper's b_attn, and the weights of the features.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Within plus or minus sum(abs(v)); neither masked nor normalised.

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.

    Notes
    -----
    Coverage depends on the weights of the steps before, so a sequence of steps is a loop
    (:class:`regard.nn.CoverageDecoder`); this function scores steps whose coverage is known.
    """
    xp = namespace(query)
    from_query = xp.matmul(query, xp.matrix_transpose(W_s)) + b  # (*batch, T_dec, d_attn)
    from_key = xp.matmul(key, xp.matrix_transpose(W_h))  # (*batch, T_enc, d_attn)
    pairs = xp.expand_dims(from_query, axis=-2) + xp.expand_dims(from_key, axis=-3)
    return xp.matmul(xp.tanh(pairs + xp.expand_dims(coverage, axis=-1) * w_c), v)


@checked
def coverage_loss(
    weights: Float[Array, "*batch T_dec T_enc"],
) -> Float[Array, "*batch T_dec"]:
    r"""Return how much each step attends to what is covered already: equation 12.

    .. math:: \mathrm{covloss}_t = \sum_i \min(a_i^t, c_i^t)

    Parameters
    ----------
    weights : (*batch, T_dec, T_enc)
        One row a step, each summing to at most 1.

    Returns
    -------
    loss : (*batch, T_dec)
        Between 0 and 1; 0 for the first step. Equation 13 adds lambda times this to a step's
        negative log-likelihood, with lambda = 1. Steps that are padding are the caller's to
        leave out, as in the likelihood.

    Raises
    ------
    ShapeError, BackendError
        `weights` is no array of floating-point numbers with two axes.

    Examples
    --------
    >>> import numpy as np
    >>> print(coverage_loss(np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])))
    [0.  0.5 0.5]
    """
    xp = namespace(weights)
    return xp.sum(xp.minimum(weights, coverage_before(weights)), axis=-1)
