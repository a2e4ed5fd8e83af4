"""Additive attention in one native pass as a PyTorch operator, ``regard::additive_attention``.

The scores of :mod:`regard.kernels.torch_op` with softmax and context in the same pass. What is
kept for the gradient is the weights; scores are never written.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from regard.kernels import native
from regard.kernels.additive import alias
from regard.kernels.native_attend import Arrays, attend_at, softmax_gradient_at
from regard.kernels.softmax import both, masked_softmax

__all__ = ["additive_attention"]

_SCHEMA = (
    "(Tensor query, Tensor key, Tensor v, Tensor value, Tensor? key_mask=None,"
    " Tensor? mask=None, bool need_weights=True) -> (Tensor, Tensor)"
)


def additive_attention(
    query: Tensor,
    key: Tensor,
    v: Tensor,
    value: Tensor,
    *,
    key_mask: Tensor | None = None,
    mask: Tensor | None = None,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Attend with weights softmax(v . tanh(query + key)), in the native kernel.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn), float32, on the CPU
        Already projected; any strides.
    v : (d_attn,)
    value : (*batch, T_enc, d_v)
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended. Other keys and values are never read; their gradients are 0.
    mask : (*batch, T_dec, T_enc), bool, optional
        True = may attend; holds together with `key_mask`.
    need_weights : bool
        Whether to return the weights; without gradients they are not even made then.

    Returns
    -------
    context : (*batch, T_dec, d_v)
        Zero, with a gradient of zero, for a query that may attend nowhere.
    weights : (*batch, T_dec, T_enc) or None
        A second derivative goes through the plain formula, and holds all pairs at once.

    Raises
    ------
    BackendError
        The native library is not available.
    """
    recorded = torch.is_grad_enabled() and any(
        each.requires_grad for each in (query, key, v, value)
    )
    given = (query, key, v, value, key_mask, mask)
    context, weights = _attention(*given, need_weights or recorded)
    return context, weights if need_weights else None


@torch.library.custom_op(
    "regard::additive_attention", mutates_args=(), device_types="cpu", schema=_SCHEMA
)
def _attention(  # noqa: PLR0917 - an operator's schema
    query: Tensor,
    key: Tensor,
    v: Tensor,
    value: Tensor,
    key_mask: Tensor | None = None,
    mask: Tensor | None = None,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor]:
    context, weights = _results(query, key, value, need_weights)
    # Kept in a name until the call is over: a copy must not be freed before it is read.
    given = [
        None if each is None else each.contiguous()
        for each in (query, key, v, value, key_mask, mask)
    ]
    written = (weights if need_weights else None, context)
    addresses = map(native.address_of, (*given, *written))
    attend_at(Arrays(*addresses), native.sizes_of(query, key), value.shape[-1])  # type: ignore[arg-type] # None only where it may be
    return context, weights


@torch.library.custom_op(
    "regard::additive_attention_backward",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor query, Tensor key, Tensor v, Tensor value, Tensor weights,"
    " Tensor? d_context, Tensor? d_weights, Tensor? key_mask=None)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
)
def _gradients(  # noqa: PLR0917 - an operator's schema
    query: Tensor,
    key: Tensor,
    v: Tensor,
    value: Tensor,
    weights: Tensor,
    d_context: Tensor | None,
    d_weights: Tensor | None,
    key_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    weights = weights.contiguous()
    with torch.autocast("cpu", enabled=False):  # the products are to stay in float32
        if d_context is None:
            assert d_weights is not None  # autograd asks for the gradient of something
            grad, d_value = d_weights.clone(), torch.zeros_like(value)
        else:
            grad = torch.matmul(d_context, value.mT)
            d_value = torch.matmul(weights.mT, d_context)
            grad = grad if d_weights is None else grad.add_(d_weights)
    grad = grad.contiguous()
    *rows, T_enc = weights.shape
    softmax_gradient_at(weights.data_ptr(), grad.data_ptr(), prod(rows), T_enc)
    # Kept in a name until the call is over: a copy must not be freed before it is read.
    mask = None if key_mask is None else key_mask.contiguous()
    given = (query.contiguous(), key.contiguous(), v.contiguous(), mask, grad)
    found = (torch.empty_like(given[0]), torch.empty_like(given[1]), torch.empty_like(given[2]))
    native.backward(map(native.address_of, (*given, *found)), native.sizes_of(query, key))
    return *found, d_value


@_attention.register_fake
def _attention_shapes(  # noqa: PLR0917 - an operator's schema
    query: Tensor,
    key: Tensor,
    v: Tensor,
    value: Tensor,
    key_mask: Tensor | None = None,
    mask: Tensor | None = None,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor]:
    del v, key_mask, mask
    return _results(query, key, value, need_weights)


@_gradients.register_fake
def _gradients_shapes(  # noqa: PLR0917 - an operator's schema
    query: Tensor,
    key: Tensor,
    v: Tensor,
    value: Tensor,
    weights: Tensor,
    d_context: Tensor | None,
    d_weights: Tensor | None,
    key_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    del weights, d_context, d_weights, key_mask
    return tuple(each.new_empty(each.shape) for each in (query, key, v, value))  # type: ignore[return-value] # four


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)  # often nobody looks at the weights
    ctx.save_for_backward(*inputs[:6], output[1])


def _differentiate(
    ctx: Any, d_context: Tensor | None, d_weights: Tensor | None
) -> tuple[Tensor | None, ...]:
    query, key, v, value, key_mask, mask, weights = ctx.saved_tensors
    if d_context is None and d_weights is None:
        return (None,) * 7
    if not torch.is_grad_enabled():
        given = (query, key, v, value, weights, d_context, d_weights, key_mask)
        return *_gradients(*given), None, None, None
    # A second derivative was asked for: autograd is to see the plain formula.
    inputs = [alias(each) for each in (query, key, v, value)]
    results = _plain(inputs, both(key_mask, mask))
    wanted = [
        (result, grad)
        for result, grad in zip(results, (d_context, d_weights), strict=True)
        if grad is not None
    ]
    outputs, grads = zip(*wanted, strict=True)
    found = torch.autograd.grad(outputs, inputs, grads, create_graph=True, allow_unused=True)
    return *found, None, None, None


_attention.register_autograd(_differentiate, setup_context=_remember)


def _plain(inputs: Sequence[Tensor], may: Tensor | None) -> tuple[Tensor, Tensor]:
    query, key, v, value = inputs
    scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v
    weights = masked_softmax(scores, may)
    return torch.matmul(weights, value), weights


def _results(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    need_weights: bool,
) -> tuple[Tensor, Tensor]:
    weights = (*query.shape[:-1], key.shape[-2]) if need_weights else (0,)
    return query.new_empty(*query.shape[:-1], value.shape[-1]), query.new_empty(weights)
