"""Additive attention on a GPU: the operators of :mod:`regard.kernels.torch_op` in Triton.

Importing this module registers the kernels of :mod:`regard.kernels.triton_kernels` for CUDA
devices under the operators' names, so that one operator has one gradient and one shape
everywhere. They serve where ``REGARD_KERNELS=triton`` asks for them: they were tested in
Triton's interpreter and never measured on a GPU, so nothing chooses them by itself.
"""

from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels import torch_op
from regard.kernels.grouped import averages, clamp, ranges_of
from regard.kernels.triton_kernels import context_kernel, scores_kernel, slopes_kernel

__all__ = ["additive_context", "additive_gradients", "additive_scores", "takes"]

_BLOCK = 64  # queries, and keys, of a tile
_FEATURES = 16  # whose gradients a program holds
_WARPS = 4
_HALF_SCALE = 2.0**-31  # 2^-62 split over the two factors
_WIDEST = 86.0  # two features' exponents, scaled by 2^-124, stay below 2^127
_NARROW = 0.5


def takes(*tensors: Tensor) -> bool:
    """Return whether the kernels can read these tensors: float32, on a CUDA device."""
    return all(x.dtype == torch.float32 and x.device.type == "cuda" for x in tensors)


def additive_scores(
    query: Tensor, key: Tensor, v: Tensor, key_mask: Tensor | None = None
) -> Tensor:
    """Score with v . tanh(query + key) for every pair; no gradient.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn), float32
        Already projected.
    v : (d_attn,)
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended. Scores of other keys are 0, whatever they hold.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
    """
    scores = query.new_zeros(*query.shape[:-1], key.shape[-2])
    if not scores.numel() or not v.numel():
        return scores
    given = _prepare(query, key, v, key_mask, multiple=2)
    n, d, T_dec = given.query.shape
    T_enc = given.key.shape[2]
    scores_kernel[(n, _blocks(T_dec), _blocks(T_enc))](
        *(given.query, given.key, given.v, given.kind, scores, T_dec, T_enc, d),
        BLOCK_T=_BLOCK,
        BLOCK_I=_BLOCK,
        num_warps=_WARPS,
    )
    scores *= given.unit
    return scores if key_mask is None else scores.masked_fill_(~key_mask.unsqueeze(-2), 0.0)


def additive_gradients(
    query: Tensor, key: Tensor, v: Tensor, grad: Tensor, key_mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of sum(grad * scores) by query, key and v.

    Parameters
    ----------
    query, key, v, key_mask
        As :func:`additive_scores` takes them.
    grad : (*batch, T_dec, T_enc)
        Not looked at where `key_mask` is False.
    """
    if not grad.numel() or not v.numel():
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(v)
    if key_mask is not None:
        grad = grad.masked_fill(~key_mask.unsqueeze(-2), 0.0)
    given = _prepare(query, key, v, key_mask, multiple=_FEATURES)
    grad = grad.contiguous()
    T_enc = grad.shape[-1]
    by_query, by_v = _slopes(given.query, given.key, given, grad, (T_enc, 1), with_v=True)
    by_key, _ = _slopes(given.key, given.query, given, grad, (1, T_enc), with_v=False)
    d_attn = v.shape[0]
    d_query, d_key = (
        (each.transpose(1, 2)[..., :d_attn] * v).reshape(like.shape)
        for each, like in ((by_query, query), (by_key, key))
    )
    return d_query, d_key, by_v.sum((0, 1), dtype=torch.float64)[:d_attn].to(v.dtype)


def additive_context(
    query: Tensor, key: Tensor, v: Tensor, value: Tensor, key_mask: Tensor | None = None
) -> Tensor:
    """Attend without ever holding scores or weights; no gradient.

    Parameters
    ----------
    query, key, v, key_mask
        As :func:`additive_scores` takes them.
    value : (*batch, T_enc, d_v)

    Returns
    -------
    context : (*batch, T_dec, d_v)
        Zero for a query without a permitted key.
    """
    context = query.new_zeros(*query.shape[:-1], value.shape[-1])
    if not context.numel() or not key.numel():
        return context
    given = _prepare(query, key, v, key_mask, multiple=2)
    n, d, T_dec = given.query.shape
    T_enc, d_v = value.shape[-2:]
    may = key.new_ones(n, T_enc, dtype=torch.int8)
    if key_mask is not None:
        may = key_mask.reshape(n, T_enc).to(torch.int8).contiguous()
    context_kernel[(n, _blocks(T_dec))](
        *(given.query, given.key, given.v, given.kind, given.unit, may),
        *(value.contiguous(), context, T_dec, T_enc, d, d_v),
        BLOCK_T=_BLOCK,
        BLOCK_I=_BLOCK,
        # A product of tiles has at least 16 columns.
        BLOCK_V=max(16, 1 << (d_v - 1).bit_length()),
        num_warps=_WARPS,
    )
    return context


class _Given(NamedTuple):
    query: Tensor  # (n, d, T_dec): exponentials where factored, else as they are
    key: Tensor  # (n, d, T_enc)
    v: Tensor  # (d,), over the unit
    kind: Tensor  # (n,), 1 = factored
    unit: Tensor  # (1,)


def _prepare(
    query: Tensor, key: Tensor, v: Tensor, key_mask: Tensor | None, *, multiple: int
) -> _Given:
    """Lay out the inputs as the kernels want them; nothing waits for the device."""
    n = prod(query.shape[:-2])
    q, k = (each.reshape(n, *each.shape[-2:]) for each in (query, key))
    if key_mask is not None:
        k = k.masked_fill(~key_mask.reshape(n, -1, 1), 0.0)
    many = averages(v)
    unit = torch.where(many, v.abs().amax(), torch.ones_like(v[0]))
    ranges = ranges_of(q, k)
    most = ranges.above.amax((1, 2))
    factored = (ranges.reach >= _NARROW) & (ranges.reach < float("inf"))
    factored = factored & (most <= _WIDEST) & many
    ready = []
    for x, shift in ((q, ranges.shift), (k, -ranges.shift)):
        exponential = torch.exp(2 * clamp(x + shift, ranges.limit)) * _HALF_SCALE
        chosen = torch.where(factored[:, None, None], exponential, x).transpose(1, 2)
        ready.append(_filled(chosen, multiple, axis=1).contiguous())
    weights = _filled(v / unit, multiple, axis=0).contiguous()
    return _Given(ready[0], ready[1], weights, factored.to(torch.int8), unit.reshape(1))


def _filled(x: Tensor, multiple: int, *, axis: int) -> Tensor:
    """Return x with zeros added on one axis up to a multiple; a feature of zeros scores 0."""
    rest = -x.shape[axis] % multiple
    if not rest:
        return x
    shape = [*x.shape]
    shape[axis] = rest
    return torch.cat([x, x.new_zeros(shape)], axis)


def _slopes(
    mine: Tensor,
    other: Tensor,
    given: _Given,
    grad: Tensor,
    strides: tuple[int, int],
    *,
    with_v: bool,
) -> tuple[Tensor, Tensor]:
    n, d, T_mine = mine.shape
    slopes = torch.empty_like(mine)
    by_v = mine.new_empty(n, _blocks(T_mine), d) if with_v else mine.new_empty(0)
    slopes_kernel[(n, _blocks(T_mine), d // _FEATURES)](
        *(mine, other, given.kind, grad, slopes, by_v, T_mine, other.shape[2], d, *strides),
        WITH_V=with_v,
        BLOCK=_BLOCK,
        BLOCK_OTHER=_BLOCK,
        FEATURES=_FEATURES,
        num_warps=_WARPS,
    )
    return slopes, by_v


def _blocks(T: int) -> int:
    return -(-T // _BLOCK)


def _register(operator: Any, kernel: Any) -> None:
    operator.register_kernel("cuda")(kernel)


_register(torch_op._scores, additive_scores)
_register(torch_op._gradients, additive_gradients)
