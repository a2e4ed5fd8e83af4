r"""The recurrence inside a decoder, GRU or LSTM, with its state as one array.

A state is ``(batch, d_state)``: of every layer, the lowest first, h and, of an LSTM, its cell c
behind it. A GRU of one layer has ``d_state = d_s``, and its state is s_t itself. One array is
what searches select from, what an encoder has to fill at the beginning, and what an exported
step takes and returns. Attention asks with h; c is never compared with anything.
"""

from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import ConventionError, explain

__all__ = [
    "CELLS",
    "Cell",
    "Layers",
    "UpperLayers",
    "advance",
    "cell_of",
    "layers_of",
    "require_cell",
    "run_layers",
    "state_size",
    "step_layers",
    "visible",
]

CELLS = ("gru", "lstm")
"""The kinds of recurrence, as an option names them."""

Cell: TypeAlias = nn.GRUCell | nn.LSTMCell
"""One layer that runs a step at a time."""

Layers: TypeAlias = nn.GRU | nn.LSTM
"""Layers that run a sequence at a time."""


def require_cell(call: str, cell: str) -> None:
    """Refuse an unknown kind of recurrence.

    Raises
    ------
    ConventionError
        It is none of :data:`CELLS`.
    """
    if cell not in CELLS:
        raise ConventionError(
            explain(
                f"{call}(): `cell` has no such value",
                expected='cell="gru" or "lstm"',
                got=f"cell={cell!r}",
            )
        )


def state_size(cell: str, d_s: int, layers: int = 1) -> int:
    """Return d_state: numbers in the state of one example."""
    return layers * d_s * (2 if cell == "lstm" else 1)


def cell_of(cell: str, d_in: int, d_s: int) -> Cell:
    """Return one layer that runs a step at a time, for :func:`advance`."""
    return nn.LSTMCell(d_in, d_s) if cell == "lstm" else nn.GRUCell(d_in, d_s)


def layers_of(
    cell: str, d_in: int, d_s: int, layers: int = 1, *, dropout: float = 0.0
) -> Layers:
    """Return layers that run a sequence at a time, for :func:`run_layers`."""
    kind = nn.LSTM if cell == "lstm" else nn.GRU
    return kind(d_in, d_s, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)


def visible(state: Tensor, d_s: int) -> Tensor:
    """Return h (batch, d_s) of the lowest layer: all that attention sees of it."""
    return state if state.shape[-1] == d_s else state[:, :d_s]


def advance(cell: Cell, given: Tensor, state: Tensor) -> Tensor:
    """Return the state of one layer after a step that reads `given` (batch, d_in)."""
    if isinstance(cell, nn.GRUCell):
        after: Tensor = cell(given, state)
        return after
    h, c = state.chunk(2, -1)
    return torch.cat(cell(given, (h, c)), -1)


def run_layers(rnn: Layers, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Run a sequence of known inputs.

    Parameters
    ----------
    rnn : torch.nn.GRU or torch.nn.LSTM
        What :func:`layers_of` returned.
    inputs : (batch, T_dec, d_in)
    state : (batch, d_state)

    Returns
    -------
    states : (batch, T_dec, d_s)
        h of the highest layer.
    last : (batch, d_state)
        The state after the last step.
    """
    if inputs.shape[1] == 0:  # PyTorch refuses a sequence without steps
        return inputs.new_zeros(inputs.shape[0], 0, rnn.hidden_size), state
    # (batch, layers, 1 or 2, d_s), of which PyTorch wants the layers first.
    shape = (state.shape[0], rnn.num_layers, -1, rnn.hidden_size)
    parts = state.reshape(shape).transpose(0, 1)
    first = [part.contiguous() for part in parts.unbind(2)]
    states, last = rnn(inputs, first[0] if len(first) == 1 else tuple(first))
    ends = torch.stack([last] if len(first) == 1 else list(last), 2)
    return states, ends.transpose(0, 1).flatten(1)


def step_layers(rnn: Layers, given: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Run one step of the same layers, in operations that compilers and exporters know.

    Parameters
    ----------
    rnn : torch.nn.GRU or torch.nn.LSTM
        What :func:`layers_of` returned.
    given : (batch, d_in)
    state : (batch, d_state)

    Returns
    -------
    h : (batch, d_s)
        Of the highest layer.
    after : (batch, d_state)
    """
    found = []
    for layer, before in enumerate(state.chunk(rnn.num_layers, -1)):
        if layer:
            given = functional.dropout(given, rnn.dropout, rnn.training)
        weights = [
            getattr(rnn, f"{name}_l{layer}")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        if isinstance(rnn, nn.GRU):
            given = torch.gru_cell(given, before, *weights)
            found.append(given)
        else:
            h, c = torch.lstm_cell(given, before.chunk(2, -1), *weights)
            given = h
            found += [h, c]
    return given, found[0] if len(found) == 1 else torch.cat(found, -1)


class UpperLayers(nn.Module):
    r"""Layers above one that attends; each reads the states below it and the context.

    .. math:: s_t^{(l)} = \mathrm{RNN}([s_t^{(l-1)}; c_t],\; s_{t-1}^{(l)})

    Parameters
    ----------
    cell : {"gru", "lstm"}
    layers, d_s, d_h : int
        Number of layers, and sizes of a state and of a context.
    dropout : float
        On what a layer reads from the one below, 0 to below 1.

    Attributes
    ----------
    rnns : torch.nn.ModuleList of torch.nn.GRU or torch.nn.LSTM

    Notes
    -----
    Attention stays with the lowest layer, so that these wait for nothing: where all inputs are
    known each runs a whole sequence at once. The paper's layers have residual connections
    besides; these have none.

    References
    ----------
    .. [1] Wu et al., "Google's Neural Machine Translation System", 2016, section 3, where the
       bottom layer of the decoder attends and all layers read the context. arXiv:1609.08144
    """

    def __init__(
        self, cell: str, layers: int, d_s: int, d_h: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.rnns = nn.ModuleList(layers_of(cell, d_s + d_h, d_s) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, contexts: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run above the states (batch, T_dec, d_s) of the layer that attended.

        Parameters
        ----------
        states, contexts : (batch, T_dec, d_s), (batch, T_dec, d_h)
        state : (batch, d_state)
            Of these layers.

        Returns
        -------
        states, last
            As of :func:`run_layers`.
        """
        ends = []
        for rnn, own in zip(self.rnns, state.chunk(len(self.rnns), -1), strict=True):
            given = torch.cat([self.dropout(states), contexts], -1)
            states, last = run_layers(rnn, given, own)  # type: ignore[arg-type] # of a list
            ends.append(last)
        return states, torch.cat(ends, -1)

    def step(self, seen: Tensor, context: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run one step above h (batch, d_s) of the layer that attended.

        Parameters
        ----------
        seen, context : (batch, d_s), (batch, d_h)
        state : (batch, d_state)
            Of these layers.

        Returns
        -------
        h, after
            As of :func:`step_layers`.
        """
        ends = []
        for rnn, own in zip(self.rnns, state.chunk(len(self.rnns), -1), strict=True):
            given = torch.cat([self.dropout(seen), context], -1)
            seen, after = step_layers(rnn, given, own)  # type: ignore[arg-type] # of a list
            ends.append(after)
        return seen, torch.cat(ends, -1)
