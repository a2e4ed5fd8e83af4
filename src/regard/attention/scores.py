r"""Attention scores: how well each key answers each query.

Every function maps queries ``(*batch, T_dec, d_s)`` and keys ``(*batch, T_enc, d_h)`` to scores
``(*batch, T_dec, T_enc)``. A score is neither masked nor normalised: that is
:mod:`regard.attention.weights`. A decoder that runs one step at a time passes ``T_dec = 1``; no
axis is ever squeezed away and none is broadcast.

:data:`SCORES` lists them under the names that papers and libraries use, except ``location``,
which also needs the weights of the step before.
"""

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Float

from regard.attention import faster
from regard.attention.location import location
from regard.axes import Array, checked, namespace
from regard.errors import ConventionError, ShapeError, explain

__all__ = [
    "SCORES",
    "Score",
    "additive",
    "concat",
    "dot",
    "general",
    "location",
    "named",
    "scaled_dot",
]

Score = Callable[[Array, Array], Array]
"""Any function of query and key that returns scores ``(*batch, T_dec, T_enc)``."""


@checked
def additive(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    *,
    W_a: Float[Array, "d_attn d_s"],
    U_a: Float[Array, "d_attn d_h"],
    v_a: Float[Array, " d_attn"],
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score with a one-hidden-layer network, as Bahdanau et al. [1]_ do.

    .. math:: e_{t,i} = v_a^\top \tanh(W_a s_t + U_a h_i)

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states. The paper scores with the state *before* the step, s_{t-1}.
    key : (*batch, T_enc, d_h)
        Encoder states; d_h is twice the hidden size if the encoder is bidirectional.
    W_a, U_a : (d_attn, d_s), (d_attn, d_h)
        Projections into the space where queries and keys are compared.
    v_a : (d_attn,)
        Weighs the d_attn features of each pair into one number.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Within plus or minus sum(abs(v_a)), since tanh is bounded.

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.

    Notes
    -----
    Float32 arrays that make more than 10,000 pairs times features go to :mod:`regard.kernels`,
    which holds nothing of the size ``(*batch, T_dec, T_enc, d_attn)``; the formula below, which
    the rest takes, holds two such arrays. The environment variable ``REGARD_KERNELS`` and
    :func:`regard.backend` say which kernel.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align
       and Translate", ICLR 2015, appendix A.1.2. arXiv:1409.0473

    Examples
    --------
    >>> import numpy as np
    >>> key = np.array([[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]])
    >>> query = np.array([[0.9, 0.1, 0.2]])
    >>> W_a = np.array([[0.6, 0.3, 0.1], [0.1, 0.5, 0.4]])
    >>> U_a = np.array([[0.5, 0.2, 0.3], [0.2, 0.6, 0.2]])
    >>> additive(query, key, W_a=W_a, U_a=U_a, v_a=np.array([0.8, 0.6])).round(3)
    array([[0.912, 0.938, 0.988]])
    """
    xp = namespace(query)
    from_query = query @ xp.matrix_transpose(W_a)  # (*batch, T_dec, d_attn)
    from_key = key @ xp.matrix_transpose(U_a)  # (*batch, T_enc, d_attn)
    return _compare(from_query, from_key, v_a)


@checked
def dot(
    query: Float[Array, "*batch T_dec d_h"], key: Float[Array, "*batch T_enc d_h"]
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score with the inner product, the first of Luong et al.'s three [1]_.

    .. math:: e_{t,i} = s_t^\top h_i

    Parameters
    ----------
    query : (*batch, T_dec, d_h)
        Decoder states *after* the step, s_t. Their size must be that of the keys: a hard
        condition of this score, and the commonest mistake with it. :func:`general` lifts it.
    key : (*batch, T_enc, d_h)
        Encoder states.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Unbounded; their spread grows with the square root of d_h (see :func:`scaled_dot`).

    Raises
    ------
    ShapeError
        Query and key differ in size or in their batch axes.

    References
    ----------
    .. [1] Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine
       Translation", EMNLP 2015, section 3.1, eq. 8. arXiv:1508.04025

    Examples
    --------
    >>> import numpy as np
    >>> key = np.array([[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]])
    >>> dot(np.array([[0.9, 0.1, 0.2]]), key)
    array([[0.94, 0.52, 0.24]])
    """
    xp = namespace(query)
    return query @ xp.matrix_transpose(key)


@checked
def general(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    *,
    W: Float[Array, "d_s d_h"],
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score with a learned bilinear form, the second of Luong et al.'s three [1]_.

    .. math:: e_{t,i} = s_t^\top W h_i

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states *after* the step, s_t.
    key : (*batch, T_enc, d_h)
        Encoder states.
    W : (d_s, d_h)
        Says which feature of a query answers to which feature of a key.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, section 3.1, eq. 8. arXiv:1508.04025

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> general(np.array([[0.9, 0.1]]), np.array([[1.0, 0.0, 0.2], [0.1, 0.9, 0.3]]), W=W)
    array([[0.9 , 0.27]])
    """
    xp = namespace(query)
    # (s W) h, not s (W h): the query side is the shorter one when decoding step by step.
    return (query @ W) @ xp.matrix_transpose(key)


@checked
def concat(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    *,
    W_c: Float[Array, "d_attn d_s+d_h"],
    v_c: Float[Array, " d_attn"],
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score a network over the joined pair, the third of Luong et al.'s three [1]_.

    .. math:: e_{t,i} = v_c^\top \tanh(W_c [s_t; h_i])

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states *after* the step, s_t.
    key : (*batch, T_enc, d_h)
        Encoder states.
    W_c : (d_attn, d_s + d_h)
        Reads the query first, then the key, in the paper's order.
    v_c : (d_attn,)
        Weighs the d_attn features of each pair into one number.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Within plus or minus sum(abs(v_c)).

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.

    Notes
    -----
    ``W_c [s; h] = W_s s + W_h h`` with the two halves of W_c, so this is :func:`additive`
    written with one matrix. The halves are applied apart: nothing is ever concatenated, and
    each query and key is projected once instead of once a pair.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, section 3.1, eq. 8. arXiv:1508.04025
    """
    xp = namespace(query)
    d_s = query.shape[-1]
    from_query = query @ xp.matrix_transpose(W_c[:, :d_s])  # (*batch, T_dec, d_attn)
    from_key = key @ xp.matrix_transpose(W_c[:, d_s:])  # (*batch, T_enc, d_attn)
    return _compare(from_query, from_key, v_c)


@checked
def scaled_dot(
    query: Float[Array, "*batch T_dec d_head"], key: Float[Array, "*batch T_enc d_head"]
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score with the inner product over the root of its length, as Vaswani et al. [1]_ do.

    .. math:: e_{t,i} = s_t^\top h_i / \sqrt{d}

    Parameters
    ----------
    query, key : (*batch, T_dec, d_head), (*batch, T_enc, d_head)
        Of one size, d = d_head.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Of unit variance for independent features of unit variance, whatever d_head is; a dot
        product of variance d_head would drive the softmax to where it has no gradient.

    Raises
    ------
    ShapeError
        Query and key differ in size or in their batch axes.

    References
    ----------
    .. [1] Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2.1, eq. 1.
       arXiv:1706.03762
    """
    xp = namespace(query)
    # Scaling the query touches T_dec * d numbers, scaling the scores T_dec * T_enc.
    return (query * (1.0 / math.sqrt(query.shape[-1]))) @ xp.matrix_transpose(key)


SCORES: dict[str, Callable[..., Array]] = {
    "additive": additive,
    "bahdanau": additive,
    "mlp": additive,
    "dot": dot,
    "general": general,
    "bilinear": general,
    "multiplicative": general,
    "concat": concat,
    "scaled_dot": scaled_dot,
}
"""Every score by its names: those of the papers, and what other libraries call them."""


def named(score: str | Score, params: dict[str, Any]) -> Score:
    """Return a score as a function of query and key alone, its parameters bound.

    Parameters
    ----------
    score : str or callable
        A name of :data:`SCORES`, or a function of query and key.
    params : dict of arrays
        The named score's parameters; empty for a function, which brings its own and whose
        result is checked to be scores ``(*batch, T_dec, T_enc)``.

    Raises
    ------
    ConventionError
        The name is unknown, or the parameters are not those the score takes.
    """
    if callable(score):
        if params:
            raise ConventionError(
                explain(
                    f"`score` is a function and cannot take {_names(params)}",
                    expected="a function of query and key that holds its own parameters",
                    got=f"{_names(params)} beside it",
                )
            )
        return partial(_own, score)
    if score not in SCORES:
        raise ConventionError(
            explain(
                f"there is no score {score!r}",
                expected=f"one of {_names(SCORES)}, or a function of query and key",
                got=repr(score),
            )
        )
    function = SCORES[score]
    takes = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    if set(takes) != set(params) or any(params[name] is None for name in takes):
        raise ConventionError(
            explain(
                f"score {score!r} does not fit its parameters",
                expected=_names(takes) or "no parameters",
                got=_names(name for name, value in params.items() if value is not None)
                or "no parameters",
            )
        )

    def bound(query: Array, key: Array) -> Array:
        return function(query, key, **params)

    return bound


def _own(score: Score, query: Array, key: Array) -> Array:
    scores = score(query, key)
    due = (*query.shape[:-1], key.shape[-2])
    shape = getattr(scores, "shape", None)
    if shape is not None and tuple(shape) == due:
        return scores
    raise ShapeError(
        explain(
            "the function given as `score` returns no score for each query and key",
            expected=f"scores {due}, which is (*batch, T_dec, T_enc)",
            got=type(scores).__name__ if shape is None else f"scores {tuple(shape)}",
        )
    )


def _compare(from_query: Array, from_key: Array, v: Array) -> Array:
    scores = faster.additive_scores(from_query, from_key, v)
    if scores is not None:
        return scores
    xp = namespace(from_query)
    # Every query meets every key: the two new axes are what makes the pairs.
    pairs = xp.expand_dims(from_query, axis=-2) + xp.expand_dims(from_key, axis=-3)
    return xp.tanh(pairs) @ v  # (*batch, T_dec, T_enc): v collapses d_attn


def _names(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
