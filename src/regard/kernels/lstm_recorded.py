"""The teacher-forced decoder of Bahdanau et al. with an LSTM, in plain operations.

Autograd can record it and differentiate twice; the written-out form
(:mod:`regard.kernels.lstm_native`) falls back to it for that.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.kernels.additive import additive_scores
from regard.kernels.gru_recorded import LoopOutputs
from regard.kernels.prepared import PreparedKeys
from regard.kernels.softmax import masked_softmax

__all__ = ["LstmInputs", "lstm_update", "recorded_loop"]


class LstmInputs(NamedTuple):
    """Everything the loop differentiates by, batch first."""

    key: Tensor
    """(batch, T_enc, d_attn): U_a h, projected once."""

    value: Tensor
    """(batch, T_enc, d_h): what the context averages."""

    gates: Tensor
    """(batch, T_dec, 4 d_s): the inputs' part of the gates and all biases; order i, f, g, o."""

    state: Tensor
    """(batch, 2 d_s): s_0 and, behind it, the cell before the first step."""

    W_a: Tensor
    """(d_attn, d_s)"""

    v_a: Tensor
    """(d_attn,)"""

    W_hh: Tensor
    """(4 d_s, d_s)"""

    W_c: Tensor
    """(4 d_s, d_h): the context's part of the gates."""


def lstm_update(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Return PyTorch's LSTM update, h and c (batch, d_s), from all gates (batch, 4 d_s)."""
    i, f, g, o = gates.chunk(4, -1)
    after = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(after), after


def recorded_loop(
    inputs: LstmInputs, key_mask: Tensor | None, keys: PreparedKeys | None
) -> LoopOutputs:
    """Run the loop over a whole sequence of known inputs.

    Parameters
    ----------
    inputs : LstmInputs
    key_mask : (batch, T_enc), bool, or None
        True = may attend. Keys and values at False must be finite.
    keys : PreparedKeys, optional
        Made of ``inputs.key`` and `key_mask`.

    Returns
    -------
    outputs : LoopOutputs
        The states are h alone.
    """
    key, value, gates, state, W_a, v_a, W_hh, W_c = inputs
    if keys is None:
        keys = PreparedKeys(key, key_mask)
    may = None if key_mask is None else key_mask.unsqueeze(1)
    W_q = torch.cat([W_a, W_hh]).t()
    h, cell = state.chunk(2, -1)
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for gate in gates.unbind(1):
        query, from_state = torch.split(h @ W_q, [W_a.shape[0], W_hh.shape[0]], dim=1)
        scores = additive_scores(query.unsqueeze(1), key, v_a, keys=keys, key_mask=key_mask)
        weights = masked_softmax(scores, may)
        context = torch.bmm(weights, value).squeeze(1)
        h, cell = lstm_update(torch.addmm(gate + from_state, context, W_c.t()), cell)
        found.append((h, context, weights.squeeze(1)))
    if not found:
        empty = gates.new_zeros(gates.shape[0], 0, 1)
        return LoopOutputs(
            *(empty.expand(-1, -1, n) for n in (W_hh.shape[1], value.shape[2], key.shape[1]))
        )
    states, contexts, weights = (torch.stack(each, 1) for each in zip(*found, strict=True))
    return LoopOutputs(states, contexts, weights)
