"""The teacher-forced Bahdanau decoder in plain operations, and what all its forms share.

Autograd can record it and differentiate twice; the written-out forms fall back to it for that.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from regard.kernels.additive import additive_scores, alias
from regard.kernels.prepared import PreparedKeys
from regard.kernels.softmax import masked_softmax

__all__ = ["LoopInputs", "LoopOutputs", "gru_update", "recorded_gradients", "recorded_loop"]


class LoopInputs(NamedTuple):
    """Everything the loop differentiates by, batch first."""

    key: Tensor
    """(batch, T_enc, d_attn): U_a h, projected once."""

    value: Tensor
    """(batch, T_enc, d_h): what the context averages."""

    gates: Tensor
    """(batch, T_dec, 3 d_s): the inputs' part of the gates with their bias; order r, z, n."""

    state: Tensor
    """(batch, d_s): s_0."""

    W_a: Tensor
    """(d_attn, d_s)"""

    v_a: Tensor
    """(d_attn,)"""

    W_hh: Tensor
    """(3 d_s, d_s)"""

    b_hh: Tensor
    """(3 d_s,)"""

    W_c: Tensor
    """(3 d_s, d_h): the context's part of the gates."""


class LoopOutputs(NamedTuple):
    """What every step produced, batch first."""

    states: Tensor
    """(batch, T_dec, d_s): s_1 .. s_T."""

    contexts: Tensor
    """(batch, T_dec, d_h)"""

    weights: Tensor
    """(batch, T_dec, T_enc)"""


def gru_update(from_input: Tensor, from_state: Tensor, state: Tensor) -> Tensor:
    """Return PyTorch's GRU update (batch, d_s) from its gates' two halves (batch, 3 d_s)."""
    input_r, input_z, input_n = from_input.chunk(3, -1)
    state_r, state_z, state_n = from_state.chunk(3, -1)
    r = torch.sigmoid(input_r + state_r)
    z = torch.sigmoid(input_z + state_z)
    n = torch.tanh(input_n + r * state_n)
    return torch.lerp(n, state, z)


def recorded_loop(
    inputs: LoopInputs, key_mask: Tensor | None, keys: PreparedKeys | None
) -> LoopOutputs:
    """Run the same loop in plain operations that autograd can record."""
    key, value, gates, state, W_a, v_a, W_hh, b_hh, W_c = inputs
    if keys is None:
        keys = PreparedKeys(key, key_mask)
    may = None if key_mask is None else key_mask.unsqueeze(1)
    W_q = torch.cat([W_a, W_hh])
    b_q = torch.cat([b_hh.new_zeros(W_a.shape[0]), b_hh])
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for gate in gates.unbind(1):
        query, from_state = torch.split(
            torch.addmm(b_q, state, W_q.t()), [W_a.shape[0], W_hh.shape[0]], dim=1
        )
        scores = additive_scores(query.unsqueeze(1), key, v_a, keys=keys, key_mask=key_mask)
        weights = masked_softmax(scores, may)
        context = torch.bmm(weights, value).squeeze(1)
        state = gru_update(torch.addmm(gate, context, W_c.t()), from_state, state)
        found.append((state, context, weights.squeeze(1)))
    if not found:
        empty = gates.new_zeros(gates.shape[0], 0, 1)
        return LoopOutputs(
            *(empty.expand(-1, -1, n) for n in (state.shape[1], value.shape[2], key.shape[1]))
        )
    states, contexts, weights = (torch.stack(each, 1) for each in zip(*found, strict=True))
    return LoopOutputs(states, contexts, weights)


def recorded_gradients(
    loop: Callable[[list[Tensor]], tuple[Tensor, ...]],
    given: list[Tensor],
    grads: tuple[Tensor | None, ...],
) -> tuple[Tensor | None, ...]:
    """Differentiate a recorded loop, so that the gradient has a gradient itself."""
    inputs = [alias(each) for each in given]
    pairs = [
        (out, grad) for out, grad in zip(loop(inputs), grads, strict=True) if grad is not None
    ]
    return torch.autograd.grad(
        [out for out, _ in pairs],
        inputs,
        [grad for _, grad in pairs],
        create_graph=True,
        allow_unused=True,
    )
