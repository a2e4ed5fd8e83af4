"""Additive scores as a few plain operations that ``torch.compile`` fuses into one loop.

The arithmetic is that of :mod:`regard.kernels.grouped` with one feature a division, as a fused
loop has nothing to gain from matrix products; its guards decide inside the graph, and for the
call as a whole. It serves where the user compiles, and where there is a compiler but no native
library (``REGARD_KERNELS=compile``). On a CPU, PyTorch's compiler needs a C++ compiler.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regard.kernels.grouped import averages, clamp, ranges_of, squares_fit

__all__ = ["additive_scores", "compiled", "suits_a_graph"]

# Queries x keys over queries + keys, from which exponentials are few beside the pairs. A single
# step is below it, always: a decoder's loop would bring two formulas a step into the graph.
_WORTH = 8


def suits_a_graph(query: Tensor, key: Tensor) -> bool:
    """Return whether the code that is being compiled should take :func:`additive_scores`."""
    T_dec, T_enc = query.shape[-2], key.shape[-2]
    return (
        query.dtype == torch.float32
        and T_dec * T_enc >= _WORTH * (T_dec + T_enc)
        and not torch.compiler.is_exporting()
        # torch.cond has no rule for them.
        and not torch._C._are_functorch_transforms_active()
    )


def additive_scores(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Score with v . tanh(query + key) for every pair; to be compiled.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn), float32
        Already projected; no axis is empty.
    v : (d_attn,)

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Differentiable once, as all that ``torch.compile`` makes.
    """
    q, k = (each.reshape(-1, *each.shape[-2:]) for each in (query, key))
    ranges = ranges_of(q.detach(), k.detach())
    right = squares_fit(ranges).all() & averages(v.detach())
    given = (q, k, v, ranges.shift, ranges.limit)
    scores: Tensor = torch.cond(right, _factored, _plain, given)
    return scores.view(*query.shape[:-1], key.shape[-2])


@functools.cache
def compiled() -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return :func:`additive_scores`, to be compiled at its first call for each set of axes."""
    return torch.compile(additive_scores)


def _factored(query: Tensor, key: Tensor, v: Tensor, shift: Tensor, limit: Tensor) -> Tensor:
    E = torch.exp(2 * clamp(query + shift, limit))
    F = torch.exp(2 * clamp(key - shift, limit))
    r = 1 / (1 + E.unsqueeze(-2) * F.unsqueeze(-3))
    # Not a product with v, before which the compiler would write all pairs to memory.
    return (v * (1 - 2 * r)).sum(-1)


def _plain(query: Tensor, key: Tensor, v: Tensor, shift: Any, limit: Any) -> Tensor:
    del shift, limit
    return (v * torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))).sum(-1)
