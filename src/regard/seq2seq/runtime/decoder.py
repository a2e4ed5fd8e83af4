"""The decoders of :mod:`regard.nn`, a step at a time, in evaluation mode.

Equations and sources stand there. Each takes the symbol before, not its embedding: what depends
on it alone is a table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.attention.monotonic import hard_alignment
from regard.seq2seq.runtime.attention import Memory, additive, average, compared, softmax
from regard.seq2seq.runtime.cells import Cell, Floats, FromSymbol, Ids, Linear, layers_of

__all__ = [
    "Bahdanau",
    "Coverage",
    "Decoder",
    "Location",
    "Monotonic",
    "Paper",
    "Plain",
    "Stack",
    "State",
    "Turn",
    "may",
    "raised",
    "under",
]

Weights = Mapping[str, Floats]


@dataclass(frozen=True)
class State:
    """Where a decoder stands between two steps."""

    hidden: Floats
    """(rows, d_state)"""

    carried: Floats | None = None
    """(rows, n): what more the next step needs; None before the first."""

    def take(self, rows: Ids) -> "State":
        """Return the state of these rows, in this order, repeats allowed."""
        carried = None if self.carried is None else self.carried[rows]
        return State(self.hidden[rows], carried)


class Turn(NamedTuple):
    """What one step made."""

    output: Floats
    """(rows, d_out)"""

    state: State
    weights: Floats | None
    """(rows, T_enc)"""


class Decoder:
    """Projects keys, and goes one step; a subclass says how."""

    def project(self, states: Floats) -> Floats:
        """Return what queries are compared with, (sources, T_enc, n)."""
        return states

    def first(self, states: Floats) -> Floats:
        """Return the state before the first step, where it is not the encoder's affair."""
        raise NotImplementedError

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step, for (rows,) symbols before."""
        raise NotImplementedError


class Plain(Decoder):
    """Without attention."""

    def __init__(self, weights: Weights, embedding: Floats, cell: str) -> None:
        self._layers = Stack(layers_of(under(f"{cell}.", weights)), embedding)

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        seen, after = self._layers.step(previous, state.hidden)
        return Turn(seen, State(after), None)


class Stack:
    """Layers on top of each other, the lowest of which reads a symbol."""

    def __init__(self, cells: list[Cell], embedding: Floats) -> None:
        self._cells = cells
        self._first = FromSymbol(embedding, cells[0].weight_ih, cells[0].bias_ih)
        self._higher = [Linear(cell.weight_ih, cell.bias_ih) for cell in cells[1:]]

    def step(self, previous: Ids, hidden: Floats) -> tuple[Floats, Floats]:
        """Return h of the highest layer, and the state of all."""
        return raised(self._cells, self._first(previous), self._higher, hidden)


def raised(
    cells: list[Cell], gates: Floats, higher: list[Linear], hidden: Floats
) -> tuple[Floats, Floats]:
    """Run one step of layers, of which the lowest is given its gates."""
    found: list[Floats] = []
    for layer, (cell, before) in enumerate(
        zip(cells, np.split(hidden, len(cells), axis=-1), strict=True)
    ):
        if layer:
            gates = higher[layer - 1](cells[layer - 1].seen(found[-1]))
        found.append(cell.advance(gates, before))
    after = found[0] if len(found) == 1 else np.concatenate(found, -1)
    return cells[-1].seen(found[-1]), after


class Attending(Decoder):
    """What decoders share whose lowest layer attends and whose output is [s_t; c_t]."""

    def __init__(self, weights: Weights, embedding: Floats, *, reads: bool) -> None:
        self._cell = cell = Cell(under("cell.", weights))
        d_in = embedding.shape[1]
        self._from_symbol = FromSymbol(embedding, cell.weight_ih[:, :d_in], cell.bias_ih)
        self._from_context = Linear(cell.weight_ih[:, d_in:]) if reads else None
        names = {name.split(".")[2] for name in weights if name.startswith("upper.")}
        self._upper = [
            layers_of(under(f"upper.rnns.{name}.", weights))[0]
            for name in sorted(names, key=int)
        ]
        self._higher = [Linear(cell.weight_ih, cell.bias_ih) for cell in self._upper]

    def _own(self, state: State) -> Floats:
        return state.hidden[:, : self._cell.d_state]

    def _advance(self, previous: Ids, context: Floats | None, own: Floats) -> Floats:
        gates = self._from_symbol(previous)
        if self._from_context is not None and context is not None:
            gates += self._from_context(context)
        return self._cell.advance(gates, own)

    def _turn(
        self,
        own: Floats,
        context: Floats,
        state: State,
        *,
        weights: Floats,
        carried: Floats | None = None,
    ) -> Turn:
        """Run the layers above, and put the turn together."""
        seen, found, at = self._cell.seen(own), [own], self._cell.d_state
        for cell, linear in zip(self._upper, self._higher, strict=True):
            before = state.hidden[:, at : at + cell.d_state]
            after = cell.advance(linear(np.concatenate([seen, context], -1)), before)
            seen, at = cell.seen(after), at + cell.d_state
            found.append(after)
        hidden = own if len(found) == 1 else np.concatenate(found, -1)
        return Turn(np.concatenate([seen, context], -1), State(hidden, carried), weights)


class Bahdanau(Attending):
    """Additive attention that asks with the state before the step."""

    def __init__(self, weights: Weights, embedding: Floats) -> None:
        super().__init__(weights, embedding, reads=True)
        self._project = Linear(weights["attention.U_a"])
        self._score = additive(Linear(weights["attention.W_a"]), weights["attention.v_a"])

    def project(self, states: Floats) -> Floats:
        """Return what queries are compared with."""
        return self._project(states)

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        own = self._own(state)
        weights = softmax(self._score(self._cell.seen(own), memory), may(memory, len(own)))
        context = average(weights, memory)
        after = self._advance(previous, context, own)
        return self._turn(after, context, state, weights=weights)


class Coverage(Attending):
    """See et al.: attention sees what it has attended to already."""

    def __init__(self, weights: Weights, embedding: Floats) -> None:
        super().__init__(weights, embedding, reads=False)
        self._project = Linear(weights["W_h"], weights["b"])
        self._from_query = Linear(weights["W_s"])
        self._w_c, self._v = weights["w_c"], weights["v"]

    def project(self, states: Floats) -> Floats:
        """Return what queries are compared with."""
        return self._project(states)

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        own = self._advance(previous, None, self._own(state))
        coverage = carried(state, memory)
        query = self._from_query(self._cell.seen(own))
        pairs = compared(query, memory.key, coverage[..., None] * self._w_c)
        weights = softmax(pairs @ self._v, may(memory, len(own)))
        context = average(weights, memory)
        return self._turn(own, context, state, weights=weights, carried=coverage + weights)


class Location(Attending):
    """Chorowski et al.: attention knows where the step before looked."""

    def __init__(self, weights: Weights, embedding: Floats) -> None:
        super().__init__(weights, embedding, reads=True)
        self._project = Linear(weights["V"], weights["b"])
        self._from_query, self._w = Linear(weights["W"]), weights["w"]
        # conv1d correlates, a convolution runs the filters backwards: here both are windows.
        self._filters, self._from_features = weights["F"][:, ::-1], Linear(weights["U"])

    def project(self, states: Floats) -> Floats:
        """Return what queries are compared with."""
        return self._project(states)

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        before = carried(state, memory)
        own = self._advance(previous, average(before, memory), self._own(state))
        reach = self._filters.shape[1] // 2
        padded = np.pad(before, ((0, 0), (reach, reach)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=1)
        where = self._from_features(windows @ self._filters.T)
        pairs = compared(self._from_query(self._cell.seen(own)), memory.key, where)
        weights = softmax(pairs @ self._w, may(memory, len(own)))
        context = average(weights, memory)
        return self._turn(own, context, state, weights=weights, carried=weights)


class Monotonic(Attending):
    """Raffel et al.: each step takes one key, from where the last one stopped."""

    def __init__(self, weights: Weights, embedding: Floats) -> None:
        super().__init__(weights, embedding, reads=True)
        self._project = Linear(weights["V"], weights["b"])
        self._from_query = Linear(weights["W"])
        v = weights["v"]
        self._v = weights["g"] * v / np.linalg.norm(v)
        self._r = weights["r"]

    def project(self, states: Floats) -> Floats:
        """Return what queries are compared with."""
        return self._project(states)

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        own = self._own(state)
        query = self._from_query(self._cell.seen(own))
        energies = compared(query, memory.key) @ self._v + self._r
        before = carried(state, memory)
        if state.carried is None:
            before[:, 0] = 1.0
        weights = hard_alignment(energies, before, mask=may(memory, len(own)))
        context = average(weights, memory)
        after = self._advance(previous, context, own)
        return self._turn(after, context, state, weights=weights, carried=weights)


class Paper(Decoder):
    """Bahdanau et al. with the recurrence and the maxout layer of the paper's appendix."""

    def __init__(self, weights: Weights, embedding: Floats) -> None:
        self._project = Linear(weights["attention.U_a"])
        self._score = additive(Linear(weights["attention.W_a"]), weights["attention.v_a"])
        self._start = Linear(weights["W_s"], weights["b_s"])
        # z, r and the maxout layer read the state as it is, the candidate through r.
        self._from_symbol = FromSymbol(
            embedding,
            np.concatenate([weights[n] for n in ("W_z", "W_r", "V_o", "W")]),
            np.concatenate([weights[n] for n in ("b_z", "b_r", "b_o", "b")]),
        )
        self._from_context = Linear(
            np.concatenate([weights[n] for n in ("C_z", "C_r", "C_o", "C")])
        )
        self._from_state = Linear(np.concatenate([weights[n] for n in ("U_z", "U_r", "U_o")]))
        self._candidate = Linear(weights["U"])
        self._d_s = len(weights["W"])

    def project(self, states: Floats) -> Floats:
        """Return what queries are compared with."""
        return self._project(states)

    def first(self, states: Floats) -> Floats:
        """Return s_0, of the backward half of the first encoder state."""
        return np.tanh(self._start(states[:, 0, states.shape[-1] // 2 :]))

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        before, d_s = state.hidden, self._d_s
        weights = softmax(self._score(before, memory), may(memory, len(before)))
        context = average(weights, memory)
        sums = self._from_symbol(previous)
        sums += self._from_context(context)
        sums[:, :-d_s] += self._from_state(before)
        z, r = 0.5 + 0.5 * np.tanh(0.5 * sums[:, : 2 * d_s].reshape(-1, 2, d_s)).swapaxes(0, 1)
        candidate = np.tanh(sums[:, -d_s:] + self._candidate(r * before))
        after = (1 - z) * before + z * candidate
        output = sums[:, 2 * d_s : -d_s].reshape(len(before), -1, 2).max(-1)
        return Turn(output, State(after), weights)


def under(prefix: str, weights: Weights) -> dict[str, Floats]:
    """Return the weights whose names begin with a prefix, named without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }


def may(memory: Memory, rows: int) -> NDArray[np.bool_] | None:
    """Return where every row may look, (rows, T_enc); None for everywhere."""
    return None if memory.mask is None else memory.rows(memory.mask, rows)


def carried(state: State, memory: Memory) -> Floats:
    """Return the (rows, T_enc) numbers that a state carries; zeros before the first step."""
    if state.carried is not None:
        return state.carried
    return np.zeros((len(state.hidden), memory.key.shape[1]), np.float32)
