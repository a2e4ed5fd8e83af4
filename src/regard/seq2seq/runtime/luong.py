"""Luong's decoders, which ask with the state after the step: global, fed, local."""

from collections.abc import Mapping

import numpy as np

from regard.attention.local import gaussian, predicted_positions, within
from regard.seq2seq.runtime.attention import Memory, Score, additive, average, dot, softmax
from regard.seq2seq.runtime.cells import Cell, Floats, FromSymbol, Ids, Linear, layers_of
from regard.seq2seq.runtime.decoder import Decoder, Stack, State, Turn, may, raised, under

__all__ = ["Fed", "Local", "Luong"]

Weights = Mapping[str, Floats]


class Asking(Decoder):
    """The score of Luong et al., and the attentional state."""

    def __init__(self, weights: Weights, score: str) -> None:
        self._readout = Linear(weights["W_c"])
        d_s = len(weights["W_c"])
        self._score: Score = dot
        self._project: Linear | None = None
        if score == "general":
            self._project = Linear(weights["attention.W"])
        elif score == "concat":
            both = weights["attention.W_c"]
            self._project = Linear(both[:, d_s:])
            self._score = additive(Linear(both[:, :d_s]), weights["attention.v_c"])

    def project(self, states: Floats) -> Floats:
        """Return what queries are compared with."""
        return states if self._project is None else self._project(states)

    def _attentional(self, weights: Floats, seen: Floats, memory: Memory) -> Floats:
        joined = np.concatenate([average(weights, memory), seen], -1)
        return np.tanh(self._readout(joined))


class Luong(Asking):
    """Global attention."""

    def __init__(self, weights: Weights, embedding: Floats, *, cell: str, score: str) -> None:
        super().__init__(weights, score)
        self._layers = Stack(layers_of(under(f"{cell}.", weights)), embedding)

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        seen, after = self._layers.step(previous, state.hidden)
        weights = softmax(self._score(seen, memory), may(memory, len(seen)))
        return Turn(self._attentional(weights, seen, memory), State(after), weights)


class Fed(Asking):
    """Global attention with input feeding."""

    def __init__(self, weights: Weights, embedding: Floats, *, score: str) -> None:
        super().__init__(weights, score)
        cell = Cell(under("cell.", weights))
        names = {name.split(".")[1] for name in weights if name.startswith("higher.")}
        self._cells = [cell] + [
            Cell(under(f"higher.{name}.", weights)) for name in sorted(names, key=int)
        ]
        d_in = embedding.shape[1]
        self._from_symbol = FromSymbol(embedding, cell.weight_ih[:, :d_in], cell.bias_ih)
        self._from_fed = Linear(cell.weight_ih[:, d_in:])
        self._higher = [Linear(each.weight_ih, each.bias_ih) for each in self._cells[1:]]

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        gates = self._from_symbol(previous)
        if state.carried is not None:
            gates += self._from_fed(state.carried)
        seen, after = raised(self._cells, gates, self._higher, state.hidden)
        weights = softmax(self._score(seen, memory), may(memory, len(seen)))
        output = self._attentional(weights, seen, memory)
        return Turn(output, State(after, output), weights)


class Local(Asking):
    """Local attention; the state carries the number of the step, (rows, 1)."""

    def __init__(
        self, weights: Weights, embedding: Floats, *, cell: str, score: str, reach: float
    ) -> None:
        super().__init__(weights, score)
        self._layers = Stack(layers_of(under(f"{cell}.", weights)), embedding)
        self._reach = reach
        self._predictor = (weights["W_p"], weights["v_p"]) if "W_p" in weights else None

    def step(self, previous: Ids, memory: Memory, state: State) -> Turn:
        """Go one step."""
        seen, after = self._layers.step(previous, state.hidden)
        rows, t_enc = len(seen), memory.key.shape[1]
        steps = np.zeros((rows, 1), np.float32) if state.carried is None else state.carried
        positions = steps
        if self._predictor is not None:
            W_p, v_p = self._predictor
            ends = np.repeat(memory.lengths, rows // len(memory.lengths))
            positions = predicted_positions(seen[:, None], ends, W_p=W_p, v_p=v_p)
        window = within(positions, D=self._reach, T_enc=t_enc)[:, 0]
        real = may(memory, rows)
        weights = softmax(self._score(seen, memory), window if real is None else window & real)
        if self._predictor is not None:
            weights = weights * gaussian(positions, D=self._reach, T_enc=t_enc)[:, 0]
        output = self._attentional(weights, seen, memory)
        return Turn(output, State(after, steps + 1), weights)
