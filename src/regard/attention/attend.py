"""The pipeline: scores, then mask, then weights, then context; for one step or all.

One function serves cross-attention, self-attention and every score. It takes queries with as
many axes as keys; a decoder step is ``T_dec = 1``. The calls that take a single decoder state,
as the lesson writes them, are in :mod:`regard.attention.steps`.
"""

import math
from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Integer

from regard.attention.masks import causal as causal_mask
from regard.attention.masks import corner_of, from_lengths
from regard.attention.normalizers import Normalizer, normalizer_of
from regard.attention.scores import Score, named
from regard.axes import Array, checked, library, namespace
from regard.errors import ConventionError, explain

__all__ = ["Attended", "attend", "clear", "clear_unused", "permitted", "self_attention"]


class Attended(NamedTuple):
    """What attention returns; unpacks as ``context, weights``."""

    context: Array
    """(*batch, T_dec, d_v): the weighted mean of the values; zero for a row without keys."""

    weights: Array | None
    """(*batch, T_dec, T_enc), one row a query; None where they were not asked for."""


@checked
def attend(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    value: Float[Array, "*batch T_enc d_v"] | None = None,
    *,
    score: str | Score = "dot",
    mask: Bool[Array, "*batch T_dec T_enc"] | None = None,
    key_lengths: Integer[Array, "*batch"] | None = None,
    causal: bool | str | None = None,
    bias: Float[Array, "*batch T_dec T_enc"] | None = None,
    scale: float | None = None,
    normalizer: str | Normalizer = "softmax",
    need_weights: bool = True,
    **params: Array,
) -> Attended:
    r"""Let every query read the values, weighted by how well the keys answer it.

    .. math:: c_t = \sum_i a_{t,i} v_i, \quad a_t = \mathrm{softmax}_i(e_{t,i})

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states, or the sequence itself in self-attention.
    key : (*batch, T_enc, d_h)
        Encoder states.
    value : (*batch, T_enc, d_v), optional
        What is averaged; the keys themselves if left out, the classical case.
    score : str or callable
        A name of :data:`regard.attention.scores.SCORES`, its parameters given by name
        (``score="general", W=W``), or a function of query and key.
    mask : (*batch, T_dec, T_enc), bool, optional
        True where the query may attend.
    key_lengths : (*batch,), integers, optional
        Number of real keys of each example.
    causal : bool, "top_left" or "bottom_right", optional
        Forbid the future (:func:`regard.attention.masks.causal`). All three restrictions hold
        together.
    bias : (*batch, T_dec, T_enc), optional
        Added to the scores: relative positions, or another library's float mask.
    scale : float, optional
        Multiplies the scores before the bias; a finite number, or an array without axes. With
        ``scaled_dot`` it replaces 1/sqrt(d).
    normalizer : str or callable
        ``softmax``, ``sparsemax``, ``entmax15``, ``smoothed``, or a function ``(scores, mask)
        -> weights`` that gives forbidden keys weight 0 (:mod:`regard.attention.normalizers`).
    need_weights : bool
        Whether to return the weights. The context is the same, bit for bit, either way.
    **params
        The named score's parameters.

    Returns
    -------
    attended : Attended
        ``(context, weights)``.

    Raises
    ------
    ShapeError, MaskError, BackendError
        An argument does not fit the others; raised before any arithmetic. ShapeError too where
        a function of the caller's returns scores or weights of another shape.
    ConventionError
        Unknown score or normaliser, parameters that are not the score's own, a `scale` that is
        no finite number, or a causal mask with two meanings.

    Notes
    -----
    Keys and values that no query may attend are cleared before they are used, and so are
    queries that may attend nowhere: NaN in padding reaches neither the result nor a gradient.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio 2015, section 3.1, eqs. 5 and 6. arXiv:1409.0473

    Examples
    --------
    >>> import numpy as np
    >>> states = np.array([[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]])
    >>> context, weights = attend(np.array([[0.9, 0.1, 0.2]]), states, score="dot")
    >>> weights.round(3)
    array([[0.464, 0.305, 0.231]])
    """
    xp = namespace(query)
    shared = value is None
    value = key if value is None else value
    _require_scale(scale)
    if score == "scaled_dot" and scale is not None:
        score = "dot"
    compare = named(score, params)
    normalise = normalizer_of(normalizer)
    may = permitted(query, key, mask=mask, key_lengths=key_lengths, causal=causal)
    query, key = clear_unused(query, key, may)
    value = key if shared else clear_unused(query, value, may)[1]
    scores = compare(query, key)
    if scale is not None:
        scores = scores * scale
    if bias is not None:
        scores = scores + bias
    weights = normalise(scores, may)
    return Attended(xp.matmul(weights, value), weights if need_weights else None)


@checked
def self_attention(
    x: Float[Array, "*batch T d_model"],
    *,
    W_q: Float[Array, "d_k d_model"],
    W_k: Float[Array, "d_k d_model"],
    W_v: Float[Array, "d_v d_model"],
    score: str | Score = "scaled_dot",
    mask: Bool[Array, "*batch T T"] | None = None,
    key_lengths: Integer[Array, "*batch"] | None = None,
    causal: bool | str | None = None,
    bias: Float[Array, "*batch T T"] | None = None,
    **options: Any,
) -> Attended:
    """Attend within one sequence: query, key and value are three projections of it.

    Parameters
    ----------
    x : (*batch, T, d_model)
        The sequence.
    W_q, W_k : (d_k, d_model)
        What each position asks for, and what it offers to be found by.
    W_v : (d_v, d_model)
        What it hands over when found.
    mask, causal, bias
        As for :func:`attend`.
    key_lengths : (*batch,), integers, optional
        Number of real positions of each example. Padding is cleared before anything else, and
        asks with zeros.
    score, **options
        As for :func:`attend`, of which this is the case T_dec = T_enc.

    Returns
    -------
    attended : Attended
        Context ``(*batch, T, d_v)``, weights ``(*batch, T, T)``.

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.

    References
    ----------
    .. [1] Vaswani et al. 2017, section 3.2.1 and 3.2.3. arXiv:1706.03762
    """
    xp = namespace(x)
    may = permitted(x, x, mask=mask, key_lengths=key_lengths, causal=causal)
    if key_lengths is not None:
        real = from_lengths(key_lengths, T_dec=1, T_enc=x.shape[-2])
        x = clear(x, real[..., 0, :])
    asking, found = clear_unused(x, x, may)
    query = xp.matmul(asking, xp.matrix_transpose(W_q))
    key, value = (xp.matmul(found, xp.matrix_transpose(W)) for W in (W_k, W_v))
    attended: Attended = attend(query, key, value, score=score, mask=may, bias=bias, **options)
    return attended


def clear_unused(asking: Array, found: Array, may: Array | None) -> tuple[Array, Array]:
    """Return queries and keys with what takes no part set to 0, NaN included.

    Parameters
    ----------
    asking : (*batch, T_dec, d_s)
        Cleared where a query may attend nowhere.
    found : (*batch, T_enc, d_h)
        Cleared where no query may attend.
    may : (*batch, T_dec, T_enc), bool, or None
    """
    if may is None:
        return asking, found
    xp = namespace(may)
    return clear(asking, xp.any(may, axis=-1)), clear(found, xp.any(may, axis=-2))


def permitted(
    query: Array,
    key: Array,
    *,
    mask: Array | None,
    key_lengths: Array | None,
    causal: bool | str | None,
) -> Array | None:
    """Return the one mask ``(*batch, T_dec, T_enc)`` that all restrictions make, or None."""
    T_dec, T_enc = query.shape[-2], key.shape[-2]
    if key_lengths is not None:
        real = from_lengths(key_lengths, T_dec=T_dec, T_enc=T_enc)
        mask = real if mask is None else mask & real
    if causal is not None and causal is not False:
        past = causal_mask(T_dec, T_enc, corner=corner_of(causal, T_dec, T_enc), like=query)
        if mask is None:
            mask = namespace(query).broadcast_to(past, (*query.shape[:-2], T_dec, T_enc))
        else:
            mask = mask & past
    return mask


def _require_scale(scale: Any) -> None:
    if scale is None or (library(type(scale)) and tuple(scale.shape) == ()):
        return  # an array may be learned, or traced and without a value
    number = isinstance(scale, int | float) and not isinstance(scale, bool)
    if not number or not math.isfinite(scale):
        raise ConventionError(
            explain(
                "attend(): `scale` is no finite number",
                expected="scale=a finite number, or an array without axes",
                got=f"scale of shape {tuple(scale.shape)}"
                if library(type(scale))
                else f"scale={scale!r}",
            )
        )


def clear(states: Array, used: Array) -> Array:
    """Return states (*batch, T, d) with 0 wherever `used` (*batch, T) is False."""
    xp = namespace(states)
    return xp.where(xp.expand_dims(used, axis=-1), states, xp.zeros_like(states))
