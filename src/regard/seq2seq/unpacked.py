"""A recurrence over padded sequences in tensors alone, for tracers and exporters.

PyTorch's own way, packed sequences, keeps the lengths in a data structure that exporters cannot
see through. Here the backward direction runs over sequences that were turned round in place,
each within its own length, and last states are picked by length.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.nn.recurrence import Layers

__all__ = ["run_unpacked"]


def run_unpacked(rnn: Layers, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Run padded sequences, as ``rnn`` runs them packed.

    Parameters
    ----------
    rnn : torch.nn.GRU or torch.nn.LSTM
        With ``batch_first`` and biases, in one or both directions.
    inputs : (batch, T_enc, d_in)
    lengths : (batch,)
        From 1 to T_enc.

    Returns
    -------
    states : (batch, T_enc, d_h)
        Zero on padding.
    ends : (directions, batch, d_hidden)
        h of the highest layer after each direction's last step.
    """
    steps = torch.arange(inputs.shape[1], device=inputs.device)
    inside = steps < lengths.unsqueeze(1)
    turned = torch.where(inside, lengths.unsqueeze(1) - 1 - steps, steps)
    last = (lengths - 1).unsqueeze(1)
    ends: list[Tensor] = []
    for layer in range(rnn.num_layers):
        if layer:
            inputs = functional.dropout(inputs, rnn.dropout, rnn.training)
        found, ends = [], []
        for suffix in ("", "_reverse") if rnn.bidirectional else ("",):
            given = _picked(inputs, turned) if suffix else inputs
            states = _one_direction(rnn, given, f"_l{layer}{suffix}")
            ends.append(_picked(states, last).squeeze(1))
            found.append(_picked(states, turned) if suffix else states)
        inputs = torch.cat(found, -1).masked_fill(~inside.unsqueeze(-1), 0.0)
    return inputs, torch.stack(ends)


def _one_direction(rnn: Layers, given: Tensor, place: str) -> Tensor:
    weights = [
        getattr(rnn, name + place) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    first = given.new_zeros(1, given.shape[0], rnn.hidden_size)
    options = (True, 1, 0.0, False, False, True)  # biases .. batch_first
    if isinstance(rnn, nn.GRU):
        states: Tensor = torch.gru(given, first, weights, *options)[0]
    else:
        states = torch.lstm(given, (first, first), weights, *options)[0]
    return states


def _picked(states: Tensor, places: Tensor) -> Tensor:
    """Return the states (batch, n, d) at places (batch, n) of their sequences."""
    return states.gather(1, places.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
