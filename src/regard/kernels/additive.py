r"""Additive scores of many queries at once, in memory that does not grow with the pairs.

Written plainly, ``tanh(q + k) @ v`` holds an array (batch, T_dec, T_enc, d_attn), twice when it
is trained. Here the pairs pass through one buffer, block by block, forward and backward; the
arithmetic is that of :mod:`regard.kernels.pairs`.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import torch
from torch import Tensor

from regard.kernels import blocks, fused, torch_op
from regard.kernels.block_gradients import additive_gradients
from regard.kernels.choose import additive_path
from regard.kernels.pairs import PreparedKeys as FactoredKeys
from regard.kernels.pairs import prepare_keys, prepare_queries, reciprocals
from regard.kernels.prepared import PreparedKeys
from regard.kernels.transforms import by_hand

__all__ = ["additive_scores", "alias"]

# What a block may hold. On a CPU it should stay in a core's cache; an accelerator wants work.
_BLOCK_BYTES = {"cpu": 2**20}
_BLOCK_BYTES_ELSEWHERE = 2**28


def additive_scores(
    query: Tensor,
    key: Tensor,
    v: Tensor,
    *,
    keys: PreparedKeys | None = None,
    key_mask: Tensor | None = None,
) -> Tensor:
    r"""Score with v . tanh(query + key) for every pair.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn)
        Already projected.
    v : (d_attn,)
    keys : PreparedKeys, optional
        What :func:`~regard.kernels.prepared.prepare` made of `key`, to save making it again.
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended. No path promises to look: it saves the native one work.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Anything where `key_mask` is False.

    Notes
    -----
    Half precision and transforms of ``torch.func`` take the plain formula, which every
    transform knows; code under ``torch.compile`` that of :mod:`regard.kernels.fused` where it
    pays. Second derivatives go through the plain formula as well. Elsewhere float32 on the CPU
    goes to the native library where :mod:`regard.kernels.choose` says so.
    """
    if not by_hand(key.dtype):
        if torch.compiler.is_compiling() and fused.suits_a_graph(query, key):
            return fused.additive_scores(query, key, v)
        return _plain(query, key, v)
    path = additive_path(
        query.numel() * key.shape[-2], suits_native=torch_op.takes(query, key, v)
    )
    if path == "native" or (path == "triton" and _triton_takes(query, key, v)):
        return torch_op.additive_scores(query, key, v, key_mask)
    if path == "plain" or not (query.numel() and key.numel()):
        return _plain(query, key, v)
    if path == "compile" and key.dtype == torch.float32:
        return fused.compiled()(query, key, v)
    # Many queries repay what needs both sides at once; few are better off with prepared keys.
    many = blocks.pays(query.shape[-2], key.shape[-2])
    factored = None if keys is None or many else keys.factored
    recorded = torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, v))
    return (_apply if recorded else _forward)(query, key, v, factored)


def alias(given: Tensor) -> Tensor:
    """Return the same values as a node to differentiate by, so that autograd stops there.

    Differentiating by an input itself would walk on, to other inputs that were made of it.
    """
    return given.view_as(given) if given.requires_grad else given.detach().requires_grad_()


def _apply(*given: Any) -> Tensor:
    return _AdditiveScores.apply(*given)  # type: ignore[no-any-return,no-untyped-call] # torch's gap


def _triton_takes(query: Tensor, key: Tensor, v: Tensor) -> bool:
    from regard.kernels import triton_op  # noqa: PLC0415 - not everywhere installed

    return triton_op.takes(query, key, v)


def _plain(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    pairs = query.unsqueeze(-2) + key.unsqueeze(-3)  # (*batch, T_dec, T_enc, d_attn)
    return torch.tanh(pairs) @ v


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, v: Tensor, keys: FactoredKeys | None
    ) -> Tensor:
        ctx.save_for_backward(query, key, v)
        ctx.keys = keys
        return _forward(query, key, v, keys)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, v = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative was asked for: let autograd see the plain formula.
            inputs = tuple(alias(each) for each in (query, key, v))
            scores = _plain(*inputs)
            return (*torch.autograd.grad(scores, inputs, grad, create_graph=True), None)
        if ctx.keys is None and _in_groups(query, key):
            return (*additive_gradients(query, key, v, grad), None)
        return (*_backward(query, v, ctx.keys or prepare_keys(key), grad), None)


def _in_groups(query: Tensor, key: Tensor) -> bool:
    return query.dtype == torch.float32 and blocks.pays(query.shape[-2], key.shape[-2])


def _forward(query: Tensor, key: Tensor, v: Tensor, keys: FactoredKeys | None) -> Tensor:
    if keys is None:
        if _in_groups(query, key):
            return blocks.additive_scores(query, key, v)  # type: ignore[no-any-return] # any array
        keys = prepare_keys(key)
    *batch, T_dec, d_attn = query.shape
    examples, T_enc = prod(query.shape[:-2]), keys.factor.shape[-2]
    E = prepare_queries(query, keys).reshape(examples, T_dec, 1, d_attn)
    F = keys.factor.reshape(examples, 1, T_enc, d_attn)
    scores = query.new_empty(examples, T_dec, T_enc)
    for here, r in _blocks(E, F, factored=keys.factored):
        scores[here] = torch.mv(r.view(-1, d_attn), v).view(r.shape[:-1])
    # tanh = 1 - 2 r
    return scores.mul_(-2).add_(v.sum()).view(*batch, T_dec, T_enc)


def _backward(
    query: Tensor, v: Tensor, keys: FactoredKeys, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    T_dec, d_attn = query.shape[-2:]
    examples, T_enc = prod(query.shape[:-2]), keys.factor.shape[-2]
    E = prepare_queries(query, keys).reshape(examples, T_dec, 1, d_attn)
    F = keys.factor.reshape(examples, 1, T_enc, d_attn)
    grad = grad.reshape(examples, T_dec, T_enc)
    d_query = E.new_empty(examples, T_dec, d_attn)
    d_key = F.new_zeros(examples, T_enc, d_attn)
    d_v, quarter = torch.zeros_like(v), v.new_tensor(0.25)
    for here, r in _blocks(E, F, factored=keys.factored):
        g = grad[here].contiguous()
        r.sub_(0.5)  # half of the tangent, turned: its sums with g do not cancel later
        d_v.addmv_(r.view(-1, d_attn).t(), g.view(-1))
        torch.addcmul(quarter, r, r, value=-1, out=r)  # a quarter of the tangent's derivative
        r.mul_(g.unsqueeze(-1))
        torch.sum(r, 2, out=d_query[here])
        d_key[here[0]] += r.sum(1)
    slope = 4 * v
    return (
        d_query.mul_(slope).view_as(query),
        d_key.mul_(slope).view(keys.factor.shape),
        d_v.mul_(-2),
    )


def _blocks(
    E: Tensor, F: Tensor, *, factored: bool
) -> Iterator[tuple[tuple[slice, slice], Tensor]]:
    """Yield slices of batch and T_dec with their r, in a buffer that the next overwrites."""
    examples, T_dec, _, d_attn = E.shape
    T_enc = F.shape[2]
    limit = _BLOCK_BYTES.get(F.device.type, _BLOCK_BYTES_ELSEWHERE) // F.element_size()
    row = max(1, T_enc * d_attn)
    steps = max(1, min(T_dec, limit // row))
    together = max(1, min(examples, limit // (row * max(1, T_dec)))) if steps == T_dec else 1
    buffer = F.new_empty(together * steps * T_enc * d_attn)
    for b in range(0, examples, together):
        for t in range(0, T_dec, steps):
            here = slice(b, b + together), slice(t, t + steps)
            e, f = E[here], F[here[0]]
            shape = (e.shape[0], e.shape[1], T_enc, d_attn)
            r = buffer[: prod(shape)].view(shape)
            yield here, reciprocals(e, f, factored=factored, out=r)
