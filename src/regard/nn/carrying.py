"""Decoders whose next step needs more of the last one than its state.

Input feeding needs the attentional state, coverage the weights so far, location-aware and
monotonic attention the weights before. What a decoder carries travels in its state, which
``step`` returns and accepts back; a caller can neither forget it nor mix it up. Since each step
waits for the one before, ``forward`` runs the same step in a loop.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from regard.nn.decoder import Decoded, Decoder, DecoderState, Stepped
from regard.nn.memory import Memory, clear
from regard.nn.recurrence import visible
from regard.nn.shapes import fit

__all__ = ["CarryingDecoder", "CarryingState", "Turn", "average"]


@dataclass(frozen=True, eq=False)
class CarryingState(DecoderState):
    """A decoder's state together with what it carries from one step to the next."""

    carried: Tensor | None
    """(batch, n): what, the decoder says; None before the first step."""

    def select(self, indices: Tensor) -> "CarryingState":
        """Return the state of these examples, in this order, repeats allowed."""
        carried = None if self.carried is None else self.carried[indices]
        return replace(self, hidden=self.hidden[indices], carried=carried)


class Turn(NamedTuple):
    """Everything one step of a carrying decoder makes."""

    output: Tensor
    """(batch, d_out)"""

    hidden: Tensor
    """(batch, d_state): s_t; of an LSTM h and c."""

    context: Tensor
    """(batch, d_h)"""

    weights: Tensor
    """(batch, T_enc)"""

    carried: Tensor
    """(batch, n): for the next step."""


class CarryingDecoder(Decoder):
    """A decoder that runs step by step; a subclass says how keys are projected and one step."""

    d_h: int  # these all attend

    def start(self, initial_state: Tensor) -> CarryingState:
        """Return where decoding begins; nothing is carried yet.

        Parameters
        ----------
        initial_state : (batch, d_state)
            s_0, often a projection of the encoder's last state.

        Raises
        ------
        ShapeError, BackendError
            It does not fit the decoder.
        """
        state = super().start(initial_state)
        return CarryingState(state.hidden, self, None)

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        key = encoder_states if key_mask is None else clear(encoder_states, key_mask)
        return Memory(key, key, key_mask, self._project(key), self)

    def _run(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        hidden, carried, turns = initial_state, None, []
        for given in inputs.unbind(1):
            turn = self._turn(given, memory, hidden, carried)
            hidden, carried = turn.hidden, turn.carried
            turns.append((turn.output, self._seen(hidden), turn.context, turn.weights))
        if turns:
            return Decoded(*(torch.stack(each, 1) for each in zip(*turns, strict=True)))
        sizes = (self.d_out, self.d_s, memory.value.shape[-1], memory.key.shape[1])
        return Decoded(*(inputs.new_zeros(inputs.shape[0], 0, size) for size in sizes))

    def _advance(self, given: Tensor, memory: Memory, state: DecoderState) -> Stepped:
        assert isinstance(state, CarryingState)  # start() and this method make no others
        self._require_carried(memory, state)
        turn = self._turn(given, memory, state.hidden, state.carried)
        return Stepped(
            turn.output, CarryingState(turn.hidden, self, turn.carried), turn.weights
        )

    def _require_carried(self, memory: Memory, state: CarryingState) -> None:
        """Refuse a state whose carried weights belong to another source."""
        fit(
            f"{type(self).__name__}.step",
            {},
            memory=(memory.key, "float batch T_enc d_h"),
            carried=(state.carried, "float batch T_enc | None"),
        )

    def _seen(self, hidden: Tensor) -> Tensor:
        """Return s_t (batch, d_s) of a state."""
        return visible(hidden, self.d_s)

    def _project(self, key: Tensor) -> Tensor:
        raise NotImplementedError

    def _turn(
        self, given: Tensor, memory: Memory, hidden: Tensor, carried: Tensor | None
    ) -> Turn:
        raise NotImplementedError


def average(weights: Tensor, memory: Memory) -> Tensor:
    """Return the context (batch, d_h) of weights (batch, T_enc)."""
    value = memory.value
    return torch.bmm(weights.to(value.dtype).unsqueeze(1), value).squeeze(1)
