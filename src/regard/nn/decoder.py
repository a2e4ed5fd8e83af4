"""What all decoders share: their doors, the checks at them, and what comes out.

A decoder's state is opaque to its caller. Whether attention is asked with the state before a
step or after it is the decoder's own business; a caller who could pass the query could pass the
wrong one.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.errors import ConventionError, explain
from regard.nn.memory import Memory, key_mask_of, require_own
from regard.nn.recurrence import Layers, UpperLayers, require_cell, state_size, visible
from regard.nn.shapes import fit, positive

__all__ = ["Decoded", "Decoder", "DecoderState", "Stepped"]


class Decoded(NamedTuple):
    """What a decoder made of a whole sequence of inputs."""

    outputs: Tensor
    """(batch, T_dec, d_out): what a vocabulary's layer reads."""

    states: Tensor
    """(batch, T_dec, d_s): s_1 .. s_T, of an LSTM h alone, of several layers the highest."""

    contexts: Tensor | None
    """(batch, T_dec, d_h); None without attention."""

    weights: Tensor | None
    """(batch, T_dec, T_enc), one row a step; None without attention."""


@dataclass(frozen=True, eq=False)
class DecoderState:
    """Where a decoder stands between two steps; only the decoder that made it accepts it."""

    hidden: Tensor
    """(batch, d_state): s_t, laid out as :mod:`regard.nn.recurrence` says."""

    owner: nn.Module = field(repr=False)
    """The decoder that made it."""

    def select(self, indices: Tensor) -> "DecoderState":
        """Return the state of these examples, in this order, repeats allowed."""
        return replace(self, hidden=self.hidden[indices])


class Stepped(NamedTuple):
    """What one step made; unpacks as ``output, state, weights``."""

    output: Tensor
    """(batch, d_out)"""

    state: DecoderState
    """To be passed to the next step."""

    weights: Tensor | None
    """(batch, T_enc); None without attention."""


class Decoder(nn.Module):
    """The doors and their checks; a subclass runs one step or all.

    A subclass whose attention stays with the lowest layer makes the others by ``_raise_layers``
    and sees nothing of them: they run here, above what it returns.

    Parameters
    ----------
    d_in, d_s, d_out : int
        Sizes of an input, a state, and an output.
    d_h : int, optional
        Size of an encoder state; None for a decoder that looks at none.
    cell : {"gru", "lstm"}
    layers : int

    Raises
    ------
    ConventionError
        Unknown cell.
    ShapeError
        `layers` is not a positive integer.
    """

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_out: int,
        *,
        d_h: int | None = None,
        cell: str = "gru",
        layers: int = 1,
    ) -> None:
        call = type(self).__name__
        require_cell(call, cell)
        positive(call, layers=layers)
        super().__init__()
        self.d_in = d_in
        self.d_s = d_s
        self.d_h = d_h
        self.d_out = d_out
        self.cell_kind = cell
        self.layers = layers
        self.d_state = state_size(cell, d_s, layers)
        self._d_own = self.d_state  # of which the subclass's own layers have the first
        self.upper: UpperLayers | None = None

    def prepare(
        self,
        encoder_states: Tensor,
        key_lengths: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
    ) -> Memory:
        """Make the source ready for any number of steps; keys are projected here, once.

        Parameters
        ----------
        encoder_states : (batch, T_enc, d_h)
        key_lengths : (batch,), integers, optional
            Number of real states of each example, 0 to T_enc; the rest is padding, whose
            content has no influence.
        key_mask : (batch, T_enc), bool, optional
            True = may be attended; holds together with `key_lengths`.

        Returns
        -------
        memory : Memory

        Raises
        ------
        ShapeError, MaskError, BackendError
            An argument does not fit the decoder or the others.
        """
        call = f"{type(self).__name__}.prepare"
        fit(
            call,
            {} if self.d_h is None else {"d_h": self.d_h},
            self._dtype(),
            encoder_states=(encoder_states, "float batch T_enc d_h"),
        )
        may = key_mask_of(call, encoder_states, key_lengths, key_mask, name="encoder_states")
        return self._prepare(encoder_states, may)

    def start(self, initial_state: Tensor) -> DecoderState:
        """Return where decoding begins.

        Parameters
        ----------
        initial_state : (batch, d_state)
            s_0, often a projection of the encoder's last state.

        Raises
        ------
        ShapeError, BackendError
            It does not fit the decoder.
        """
        fit(
            f"{type(self).__name__}.start",
            self._sizes(),
            self._dtype(),
            initial_state=(initial_state, self._state()),
        )
        return DecoderState(initial_state, self)

    def forward(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        """Decode a sequence whose inputs are all known, as teacher forcing does.

        Parameters
        ----------
        inputs : (batch, T_dec, d_in)
            What each step reads, usually the embedding of the previous token.
        memory : Memory
            What this decoder's :meth:`prepare` returned.
        initial_state : (batch, d_state)
            s_0.

        Returns
        -------
        decoded : Decoded
            The same numbers, to rounding, as :meth:`step` gives one at a time.

        Raises
        ------
        ShapeError, BackendError
            An argument does not fit the decoder or the others.
        ConventionError
            A memory that another decoder prepared.
        """
        call = type(self).__name__
        require_own(call, memory, self)
        fit(
            call,
            self._sizes(),
            self._dtype(),
            memory=(memory.key, "float batch T_enc d_h"),
            inputs=(inputs, "float batch T_dec d_in"),
            initial_state=(initial_state, self._state()),
        )
        if self.upper is None:
            return self._run(inputs, memory, initial_state)
        own, above = self._parted(initial_state)
        decoded = self._run(inputs, memory, own)
        contexts = decoded.contexts
        assert contexts is not None  # upper layers stand above attention only
        states, _ = self.upper(decoded.states, contexts, above)
        outputs = torch.cat([states, contexts], -1)
        return Decoded(outputs, states, contexts, decoded.weights)

    def step(self, input: Tensor, memory: Memory, state: DecoderState) -> Stepped:  # noqa: A002 - the singular of forward's name
        """Decode one step, as greedy and beam search do.

        Parameters
        ----------
        input : (batch, d_in)
            What this step reads.
        memory : Memory
            What this decoder's :meth:`prepare` returned.
        state : DecoderState
            From :meth:`start`, or from the step before.

        Returns
        -------
        stepped : Stepped
            ``(output, state, weights)``.

        Raises
        ------
        ShapeError, BackendError
            An argument does not fit the decoder or the others.
        ConventionError
            `state` is a bare tensor or another decoder's, or the memory is another decoder's.
        """
        call = f"{type(self).__name__}.step"
        require_own(call, memory, self)
        if not isinstance(state, DecoderState) or state.owner is not self:
            raise ConventionError(
                explain(
                    f"{call}(): `state` is not this decoder's",
                    expected="what start(initial_state) or the step before returned",
                    got=f"the state of another {type(state.owner).__name__}"
                    if isinstance(state, DecoderState)
                    else type(state).__name__,
                    because="the decoder forms its query itself, from the right moment in time",
                )
            )
        fit(
            call,
            self._sizes(),
            self._dtype(),
            memory=(memory.key, "float batch T_enc d_h"),
            input=(input, "float batch d_in"),
            state=(state.hidden, self._state()),
        )
        if self.upper is None:
            return self._advance(input, memory, state)
        own, above = self._parted(state.hidden)
        stepped = self._advance(input, memory, replace(state, hidden=own))
        context = stepped.output[:, self.d_s :]
        below = visible(stepped.state.hidden, self.d_s)
        seen, last = self.upper.step(below, context, above)
        return Stepped(
            torch.cat([seen, context], -1),
            replace(stepped.state, hidden=torch.cat([stepped.state.hidden, last], -1)),
            stepped.weights,
        )

    @property
    def rnn(self) -> Layers:
        """The layers that run a sequence at a time, in decoders that have such.

        They are registered under the name of their kind, ``gru`` or ``lstm``.
        """
        found: Layers = getattr(self, self.cell_kind)
        return found

    def _raise_layers(self, dropout: float) -> None:
        """Make the layers above the lowest; the output must be [s_t; c_t]."""
        if self.layers > 1:
            assert self.d_h is not None  # upper layers stand above attention only
            self._d_own = state_size(self.cell_kind, self.d_s)
            self.upper = UpperLayers(
                self.cell_kind, self.layers - 1, self.d_s, self.d_h, dropout=dropout
            )

    def _parted(self, state: Tensor) -> tuple[Tensor, Tensor]:
        return state[:, : self._d_own], state[:, self._d_own :]

    def _sizes(self) -> dict[str, int]:
        return {"d_in": self.d_in, "d_s": self.d_s, "d_state": self.d_state}

    def _state(self) -> str:
        return "float batch d_s" if self.d_state == self.d_s else "float batch d_state"

    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        raise NotImplementedError

    def _run(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        raise NotImplementedError

    def _advance(self, given: Tensor, memory: Memory, state: DecoderState) -> Stepped:
        # For a decoder whose state is more than s_t; all others see s_{t-1} alone.
        return self._step(given, memory, state.hidden)

    def _step(self, given: Tensor, memory: Memory, hidden: Tensor) -> Stepped:
        raise NotImplementedError
