"""One query an example, as a decoder asks: scores, softmax and context together.

Without gradients, and where the native library takes the arrays, a step is one pass over keys
and values that were prepared before (:mod:`regard.kernels.native_step`). Everywhere else it is
:mod:`regard.kernels.attention`; the numbers are the same to rounding.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.axes import checked
from regard.errors import BackendError, ShapeError, explain
from regard.kernels.attention import additive_attention, goes_native
from regard.kernels.native_step import step_forward
from regard.kernels.prepared import PreparedKeys

__all__ = ["Read", "attend", "native_step", "step_applies"]


class Read(NamedTuple):
    """What queries read of the values; unpacks as ``context, weights``."""

    context: Tensor
    """(*batch, T_dec, d_v); zero for an example without any permitted key."""

    weights: Tensor
    """(*batch, T_dec, T_enc); 0 for keys that may not be attended."""


@checked
def attend(
    query: Float[Tensor, "*batch T_dec d_attn"],
    keys: PreparedKeys,
    v: Float[Tensor, " d_attn"],
    value: Float[Tensor, "*batch T_enc d_v"],
) -> Read:
    r"""Attend with weights softmax(v . tanh(query + key)) to prepared keys.

    Parameters
    ----------
    query : (*batch, T_dec, d_attn)
        Already projected. T_dec = 1 is a decoder's step, which this is made for.
    keys : PreparedKeys
        What :func:`regard.kernels.prepared.prepare` returned.
    v : (d_attn,)
    value : (*batch, T_enc, d_v)
        Finite also where the mask of `keys` is False.

    Returns
    -------
    read : Read
        Gradients flow to all but the keys' own tensor, which is part of no graph.

    Raises
    ------
    ShapeError, BackendError
        Two arguments disagree on a named axis, or are no such tensors.

    Examples
    --------
    >>> from regard.kernels.prepared import prepare
    >>> keys = prepare(torch.zeros(2, 4, 7))
    >>> context, weights = attend(torch.ones(2, 1, 7), keys, torch.ones(7), torch.ones(2, 4, 3))
    >>> context.shape, weights[0].tolist()
    (torch.Size([2, 1, 3]), [[0.25, 0.25, 0.25, 0.25]])
    """
    _require_fit(query, keys, value)
    if step_applies(query, keys, v, value):
        return native_step(query, keys, v, value)
    context, weights = additive_attention(
        query, keys.key, v, value, keys=keys, key_mask=keys.key_mask
    )
    assert weights is not None  # they were asked for
    return Read(context, weights)


def step_applies(query: Tensor, keys: PreparedKeys, *others: Tensor) -> bool:
    """Return whether :func:`native_step` can and should take these arrays.

    Parameters
    ----------
    query : (*batch, T_dec, any)
        Projected or not.
    keys : PreparedKeys
    *others : Tensor
        Whatever else is read, parameters that project the query included: none may want a
        gradient.
    """
    given = (query, keys.key, *others)
    return (
        query.shape[-2] == 1
        and not (torch.is_grad_enabled() and any(each.requires_grad for each in given))
        and goes_native(keys.key.numel(), *given, prepared=True)
    )


def native_step(query: Tensor, keys: PreparedKeys, v: Tensor, value: Tensor) -> Read:
    """Return what :func:`attend` returns, in one pass; nothing is checked.

    Parameters
    ----------
    query, keys, v, value
        As :func:`attend` takes them, where :func:`step_applies` says yes.
    """
    query, v, value = query.contiguous(), v.contiguous(), value.contiguous()
    prepared = keys.native
    context = query.new_empty(*query.shape[:-1], value.shape[-1])
    weights = query.new_empty(*query.shape[:-1], value.shape[-2])
    asked = prepared.with_values(v.data_ptr(), value.data_ptr(), value.shape[-1])
    step_forward(
        prepared,
        asked,
        query=query.data_ptr(),
        scores=None,
        weights=weights.data_ptr(),
        context=context.data_ptr(),
    )
    return Read(context, weights)


def _require_fit(query: Tensor, keys: object, value: Tensor) -> None:
    if not isinstance(keys, PreparedKeys):
        raise BackendError(
            explain(
                "attend(): `keys` are not prepared",
                expected="what prepare(key) returned",
                got=type(keys).__name__,
            )
        )
    wanted = (*query.shape[:-2], value.shape[-2], query.shape[-1])
    if tuple(keys.key.shape) != wanted:
        raise ShapeError(
            explain(
                "attend(): `keys` do not fit `query` and `value`",
                expected=f"prepared keys of shape {wanted}",
                got=f"prepared keys of shape {tuple(keys.key.shape)}",
            )
        )
    if keys.key.dtype != query.dtype or keys.key.device != query.device:
        raise BackendError(
            explain(
                "attend(): `keys` and `query` differ in number type or device",
                expected=f"prepared keys in {query.dtype} on {query.device}",
                got=f"prepared keys in {keys.key.dtype} on {keys.key.device}",
            )
        )
