"""The native kernel as PyTorch operators, ``regard::additive_scores`` and its gradient.

An operator that PyTorch knows has shapes under ``torch.compile`` and ``torch.export``, a
gradient, and a place in profiles. Both take float32 tensors on the CPU;
:func:`regard.kernels.additive.additive_scores` sends them nothing else.
"""

from typing import Any

import torch
from torch import Tensor

from regard.kernels import native

__all__ = ["additive_scores", "takes"]

# Subclasses may hold their numbers elsewhere, or none.
_PLAIN = (Tensor, torch.nn.Parameter)


def additive_scores(
    query: Tensor, key: Tensor, v: Tensor, key_mask: Tensor | None = None
) -> Tensor:
    """Score with v . tanh(query + key) for every pair, in the native kernel.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn), float32, on the CPU
        Already projected; any strides.
    v : (d_attn,)
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended. Other keys are never read; their scores and gradients are 0.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        A second derivative goes through the plain formula, and holds all pairs at once.

    Raises
    ------
    BackendError
        The native library is not available.
    """
    return _scores(query, key, v, key_mask)  # type: ignore[no-any-return] # torch's gap


def takes(*tensors: Tensor) -> bool:
    """Return whether the native library can read these tensors: float32 in the CPU's memory."""
    # A loop and comparisons by identity: this runs at every step of a decoder.
    for each in tensors:
        if (
            each.dtype is not torch.float32
            or not each.is_cpu
            or each.layout is not torch.strided
            or type(each) not in _PLAIN
        ):
            return False
    return True


@torch.library.custom_op(
    "regard::additive_scores",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor query, Tensor key, Tensor v, Tensor? key_mask=None) -> Tensor",
)
def _scores(query: Tensor, key: Tensor, v: Tensor, key_mask: Tensor | None = None) -> Tensor:
    mask = None if key_mask is None else key_mask.contiguous()
    scores = query.new_empty(*query.shape[:-1], key.shape[-2])
    given = (query.contiguous(), key.contiguous(), v.contiguous(), mask, scores)
    native.forward(map(native.address_of, given), native.sizes_of(query, key))
    return scores


@torch.library.custom_op(
    "regard::additive_scores_backward",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor query, Tensor key, Tensor v, Tensor grad, Tensor? key_mask=None)"
    " -> (Tensor, Tensor, Tensor)",
)
def _gradients(
    query: Tensor, key: Tensor, v: Tensor, grad: Tensor, key_mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    mask = None if key_mask is None else key_mask.contiguous()
    # Kept in a name until the call is over: a copy must not be freed before it is read.
    given = (query.contiguous(), key.contiguous(), v.contiguous(), mask, grad.contiguous())
    found = (torch.empty_like(given[0]), torch.empty_like(given[1]), torch.empty_like(given[2]))
    native.backward(map(native.address_of, (*given, *found)), native.sizes_of(query, key))
    return found


@_scores.register_fake
def _scores_shape(
    query: Tensor, key: Tensor, v: Tensor, key_mask: Tensor | None = None
) -> Tensor:
    del v, key_mask
    return query.new_empty(*query.shape[:-1], key.shape[-2])


@_gradients.register_fake
def _gradients_shapes(
    query: Tensor, key: Tensor, v: Tensor, grad: Tensor, key_mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    del grad, key_mask
    return query.new_empty(query.shape), key.new_empty(key.shape), v.new_empty(v.shape)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    query, key, v, key_mask = ctx.saved_tensors
    if not torch.is_grad_enabled():
        return (*_gradients(query, key, v, grad, key_mask), None)
    # A second derivative was asked for: autograd is to see the plain formula. New nodes of the
    # same values stop it there, as inputs may have been made of one another.
    inputs = [
        each.view_as(each) if each.requires_grad else each.detach().requires_grad_()
        for each in (query, key, v)
    ]
    pairs = inputs[0].unsqueeze(-2) + inputs[1].unsqueeze(-3)
    scores = torch.tanh(pairs) @ inputs[2]
    if key_mask is not None:
        scores = scores.masked_fill(~key_mask.unsqueeze(-2), 0.0)
    return (*torch.autograd.grad(scores, inputs, grad, create_graph=True), None)


_scores.register_autograd(_differentiate, setup_context=_remember)
