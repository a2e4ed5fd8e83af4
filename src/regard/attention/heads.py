"""Several attentions side by side, over any score.

A head is :func:`regard.attention.attend.attend` on its own slice of the features with its own
parameters, and nothing else: one head is the single-head result, exactly. The paper is Vaswani
et al. 2017, section 3.2.2 (arXiv:1706.03762).
"""

import functools
import operator
from typing import Any

from jaxtyping import Bool, Float, Integer

from regard.attention.attend import Attended, attend, clear_unused, permitted
from regard.attention.scores import Score
from regard.axes import Array, checked, namespace
from regard.errors import ShapeError, explain

__all__ = ["merge_heads", "multi_head", "split_heads"]


@checked
def split_heads(
    x: Float[Array, "*batch T d_model"], heads: int
) -> Float[Array, "*batch heads T d_head"]:
    """Cut the features into heads: head n takes features n * d_head to (n + 1) * d_head.

    Parameters
    ----------
    x : (*batch, T, heads * d_head)
        A sequence.
    heads : int
        Number of equal slices.

    Returns
    -------
    split : (*batch, heads, T, d_head)
        Features are cut first and the axes exchanged after. Reshaping straight to this shape
        would scramble positions and heads without any error.

    Raises
    ------
    ShapeError
        `heads` is no integer of at least 1, or the features do not divide into that many.
    """
    xp = namespace(x)
    *batch, T, d_model = x.shape
    d_head = _slice_size("x", d_model, heads)
    cut = xp.reshape(x, (*batch, T, heads, d_head))
    return xp.moveaxis(cut, -2, -3)


def merge_heads(x: Float[Array, "*batch heads T d_head"]) -> Float[Array, "*batch T d_model"]:
    """Join the heads' features again: the inverse of :func:`split_heads`.

    Parameters
    ----------
    x : (*batch, heads, T, d_head)

    Returns
    -------
    merged : (*batch, T, heads * d_head)
    """
    xp = namespace(x)
    *batch, heads, T, d_head = x.shape
    return xp.reshape(xp.moveaxis(x, -3, -2), (*batch, T, heads * d_head))


@checked
def multi_head(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    value: Float[Array, "*batch T_enc d_v"] | None = None,
    *,
    heads: int,
    score: str | Score = "scaled_dot",
    W_q: Float[Array, "d_q d_s"] | None = None,
    W_k: Float[Array, "d_k d_h"] | None = None,
    W_v: Float[Array, "d_value d_v"] | None = None,
    W_o: Float[Array, "d_out d_context"] | None = None,
    mask: Array | None = None,
    key_lengths: Integer[Array, "*batch"] | None = None,
    causal: bool | str | None = None,
    bias: Array | None = None,
    need_weights: bool = True,
    **options: Any,
) -> Attended:
    r"""Attend with several heads, each over its own slice of the features.

    .. math:: C = [c^1; \dots; c^H] W_o^\top, \quad
       c^n = \mathrm{attend}(Q^n, K^n, V^n), \quad Q = s W_q^\top

    Parameters
    ----------
    query, key, value
        As for :func:`~regard.attention.attend.attend`. Without projections their own features
        are cut into heads.
    heads : int
        Number of heads; must divide the features of query, key and value.
    score : str or callable
        Any score of :func:`~regard.attention.attend.attend`, Luong's general and Bahdanau's
        additive included.
    W_q, W_k, W_v : (heads * d_head, d_s), (heads * d_head, d_h), (heads * d_v', d_v), optional
        Projections in front of the heads, as in the transformer.
    W_o : (d_out, heads * d_v'), optional
        Projection of the joined contexts.
    mask : (*batch, T_dec, T_enc) or (*batch, heads, T_dec, T_enc), bool, optional
        True where the query may attend; one for all heads, or one a head.
    key_lengths, causal
        As for :func:`~regard.attention.attend.attend`.
    bias : like `mask`, but floating-point, optional
        Added to the scores.
    need_weights : bool
        Whether to return the weights.
    **options
        Further options of :func:`~regard.attention.attend.attend`, and the score's parameters,
        each with a leading axis of heads: ``W (heads, d_head, d_head)`` for ``general``,
        ``v_a (heads, d_attn)`` for ``additive``.

    Returns
    -------
    attended : Attended
        Context ``(*batch, T_dec, heads * d_v')`` (or d_out); weights ``(*batch, heads, T_dec,
        T_enc)``, one matrix a head and never their average.

    Raises
    ------
    ShapeError
        The features do not divide into heads, a parameter has no leading axis of `heads`, or
        arguments disagree on a named axis.

    References
    ----------
    .. [1] Vaswani et al. 2017, section 3.2.2. arXiv:1706.03762
    """
    xp = namespace(query)
    value = key if value is None else value
    given = (("query", query, W_q), ("key", key, W_k), ("value", value, W_v))
    sizes = [
        _slice_size(name, (states.shape[-1] if W is None else W.shape[0]), heads)
        for name, states, W in given
    ]
    shared = {name: option for name, option in options.items() if name in _SHARED}
    stacked = {name: option for name, option in options.items() if name not in _SHARED}
    _check_stacked(stacked, heads)
    rank = len(query.shape)
    masks, biases = [], []
    for head in range(heads):
        mask_here = _of_head("mask", mask, head, heads, rank)
        biases.append(_of_head("bias", bias, head, heads, rank))
        _fit(query, key, mask_here, biases[-1])
        masks.append(
            permitted(query, key, mask=mask_here, key_lengths=key_lengths, causal=causal)
        )
    # Before any projection: what no head may use must not reach a projection's gradient.
    anyone = None if masks[0] is None else functools.reduce(operator.or_, masks)
    asking, found = clear_unused(query, key, anyone)
    carried = found if value is key else clear_unused(query, value, anyone)[1]
    inputs = [
        states if W is None else xp.matmul(states, xp.matrix_transpose(W))
        for states, W in ((asking, W_q), (found, W_k), (carried, W_v))
    ]
    contexts, weights = [], []
    for head in range(heads):
        query_part, key_part, value_part = (
            states[..., head * size : (head + 1) * size]
            for states, size in zip(inputs, sizes, strict=True)
        )
        context, own = attend(
            query_part,
            key_part,
            value_part,
            score=score,
            mask=masks[head],
            bias=biases[head],
            **shared,
            **{name: parameter[head, ...] for name, parameter in stacked.items()},
        )
        contexts.append(context)
        weights.append(own)
    joined = xp.concat(contexts, axis=-1)
    if W_o is not None:
        joined = xp.matmul(joined, xp.matrix_transpose(W_o))
    return Attended(joined, xp.stack(weights, axis=-3) if need_weights else None)


_SHARED = {"scale", "normalizer"}


def _restricted(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    mask: Bool[Array, "*batch T_dec T_enc"] | None,
    bias: Float[Array, "*batch T_dec T_enc"] | None,
) -> None:
    """Take one head's restrictions, so that they are checked against query and key."""


_restricted.__name__ = "multi_head"  # what an error text calls it
_fit = checked(_restricted)


def _slice_size(name: str, features: int, heads: int) -> int:
    if not isinstance(heads, int) or isinstance(heads, bool) or heads < 1:
        raise ShapeError(
            explain(
                "`heads` is no number of heads",
                expected="an integer, at least 1 head",
                got=f"heads={heads!r}",
            )
        )
    if features % heads:
        raise ShapeError(
            explain(
                f"`{name}` cannot be cut into {heads} heads",
                expected=f"a number of features that {heads} divides",
                got=f"{features} features",
            )
        )
    return features // heads


def _check_stacked(parameters: dict[str, Any], heads: int) -> None:
    for name, parameter in parameters.items():
        shape = getattr(parameter, "shape", None)
        if shape and shape[0] == heads:
            continue
        raise ShapeError(
            explain(
                f"multi_head(): `{name}` has no leading axis of {heads} heads",
                expected=f"{name} (heads={heads}, ...): one parameter a head",
                got=type(parameter).__name__ if shape is None else f"{name} {tuple(shape)}",
            )
        )


def _of_head(name: str, given: Array | None, head: int, heads: int, rank: int) -> Array | None:
    """Return one head's mask or bias: its own if there is an axis of heads, else the shared."""
    if given is None or len(given.shape) <= rank:
        return given
    if given.shape[-3] != heads:
        raise ShapeError(
            explain(
                f"multi_head(): `{name}` does not fit `heads`",
                expected=f"{name} (*batch, heads={heads}, T_dec, T_enc)",
                got=f"{name} {tuple(given.shape)}",
            )
        )
    return given[..., head, :, :]
