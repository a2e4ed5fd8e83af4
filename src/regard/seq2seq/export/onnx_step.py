"""One decoder step as an ONNX graph, with the equations of :mod:`regard.seq2seq.runtime`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import InputError, explain
from regard.seq2seq.architecture import LUONG, ModelConfig
from regard.seq2seq.export.graph import Graph, Value
from regard.seq2seq.runtime.cells import Floats
from regard.seq2seq.runtime.decoder import under

__all__ = ["CARRIES", "Made", "OnnxStep", "require_exportable"]

CARRIES = ("coverage", "location")
"""Attentions whose state carries weights over the source; input feeding carries a state."""

_REFUSED = ("local-m", "local-p", "monotonic")


@dataclass(frozen=True)
class Made:
    """The values that one step makes."""

    scores: Value
    state: Value
    carried: Value | None
    weights: Value | None


def require_exportable(config: ModelConfig, name: str) -> None:
    """Refuse what no ONNX graph is written for.

    Raises
    ------
    InputError
        The model has such an attention.
    """
    if config.attention in _REFUSED:
        raise InputError(
            explain(
                f"{name}: attention {config.attention!r} is not exported to ONNX",
                expected="any attention but " + ", ".join(_REFUSED),
                got=config.attention,
                help="--to numpy exports every model",
            )
        )


class OnnxStep:
    """Adds keys, first states and steps to graphs.

    Parameters
    ----------
    config : ModelConfig
    weights : mapping
        Of the whole model.
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Floats]) -> None:
        self._config, self._all = config, weights
        self._w = under("decoder.", weights)
        self._d_s, self._d_in = config.d_s, config.d_in

    @property
    def attends(self) -> bool:
        """Whether steps make weights."""
        return self._config.attention != "none"

    @property
    def carries(self) -> str:
        """What the state carries: nothing, "weights" or "output"."""
        if self._config.attention in CARRIES:
            return "weights"
        return "output" if self._config.input_feeding else ""

    @property
    def d_key(self) -> int:
        """Size of a projected key."""
        kind = self._config.attention
        if kind in ("none", "dot"):
            return self._config.d_h
        return self._d_s if kind == "general" else self._config.d_attn

    @property
    def d_state(self) -> int:
        """Numbers in a state."""
        config = self._config
        lstm = config.cell == "lstm"
        return config.decoder_layers * self._d_s * (2 if lstm else 1)

    def keys(self, g: Graph, states: Value) -> Value:
        """Add the projection of encoder states."""
        w, kind = self._w, self._config.attention
        if kind in ("none", "dot"):
            return g("Identity", states)
        if kind == "general":
            return g.linear(states, w["attention.W"])
        if kind == "concat":
            return g.linear(states, w["attention.W_c"][:, self._d_s :])
        if kind == "coverage":
            return g.linear(states, w["W_h"], w["b"])
        if kind == "location":
            return g.linear(states, w["V"], w["b"])
        return g.linear(states, w["attention.U_a"])

    def paper_state(self, g: Graph, states: Value) -> Value:
        """Add the first state of ``bahdanau-paper``, of the encoder states."""
        first = g("Gather", states, g.constant(np.int64(0)), axis=1)
        d_h = self._config.d_h
        backward = g.part(first, d_h // 2, d_h)
        return g("Tanh", g.linear(backward, self._w["W_s"], self._w["b_s"]))

    def step(
        self, g: Graph, previous: Value, memory: Mapping[str, Value], state: Value, carried: Any
    ) -> Made:
        """Add one step; ``memory`` names ``keys``, ``values`` and ``mask``."""
        embedded = g("Gather", g.constant(self._all["embedding.weight"]), previous, axis=0)
        kind = self._config.attention
        w = self._w
        if kind == "bahdanau-paper":
            return self._paper(g, embedded, memory, state)
        if kind in LUONG or kind == "none":
            return self._asking(g, embedded, memory, state, carried)
        own = self._parts(g, state)
        if kind == "bahdanau":
            query = g.linear(own[0][0], w["attention.W_a"])
            weights = self._additive(g, query, memory, w["attention.v_a"])
            context = _average(g, weights, memory)
            lowest = self._cell(g, g("Concat", embedded, context, axis=-1), own[0], "cell.")
            after = None
        elif kind == "coverage":
            lowest = self._cell(g, embedded, own[0], "cell.")
            more = g("Mul", g.unsqueeze(carried, -1), g.constant(w["w_c"]))
            query = g.linear(lowest[0], w["W_s"])
            weights = self._additive(g, query, memory, w["v"], more)
            context = _average(g, weights, memory)
            after = g("Add", carried, weights)
        else:
            glimpse = _average(g, carried, memory)
            lowest = self._cell(g, g("Concat", embedded, glimpse, axis=-1), own[0], "cell.")
            reach = w["F"].shape[1] // 2
            filters = g.constant(w["F"][:, None, ::-1])
            features = g("Conv", g.unsqueeze(carried, 1), filters, pads=[reach, reach])
            where = g.linear(g("Transpose", features, perm=[0, 2, 1]), w["U"])
            query = g.linear(lowest[0], w["W"])
            after = weights = self._additive(g, query, memory, w["w"], where)
            context = _average(g, weights, memory)
        made, seen = list(lowest), lowest[0]
        for layer, before in enumerate(own[1:]):
            given = g("Concat", seen, context, axis=-1)
            upper = self._cell(g, given, before, f"upper.rnns.{layer}.", "_l0")
            made += upper
            seen = upper[0]
        output = g("Concat", seen, context, axis=-1)
        return Made(self._read(g, output, embedded), _joined(g, made), after, weights)

    def _asking(
        self, g: Graph, embedded: Value, memory: Mapping[str, Value], state: Value, carried: Any
    ) -> Made:
        """Add a step that asks with the state after it, or does not ask."""
        fed = bool(self._config.input_feeding)
        given = g("Concat", embedded, carried, axis=-1) if fed else embedded
        made = []
        for layer, before in enumerate(self._parts(g, state)):
            if not fed:
                place = (f"{self._config.cell}.", f"_l{layer}")
            else:
                place = (f"higher.{layer - 1}." if layer else "cell.", "")
            found = self._cell(g, given, before, *place)
            made += found
            given = found[0]
        if not self.attends:
            return Made(self._read(g, given, embedded), _joined(g, made), None, None)
        w = self._w
        if self._config.attention == "concat":
            query = g.linear(given, w["attention.W_c"][:, : self._d_s])
            weights = self._additive(g, query, memory, w["attention.v_c"])
        else:
            keys = g("Transpose", memory["keys"], perm=[0, 2, 1])
            scores = g.squeeze(g("MatMul", g.unsqueeze(given, 1), keys), 1)
            weights = _softmax(g, scores, memory)
        joined = g("Concat", _average(g, weights, memory), given, axis=-1)
        output = g("Tanh", g.linear(joined, w["W_c"]))
        scores = self._read(g, output, embedded)
        return Made(scores, _joined(g, made), output if fed else None, weights)

    def _paper(
        self, g: Graph, embedded: Value, memory: Mapping[str, Value], state: Value
    ) -> Made:
        w = self._w
        query = g.linear(state, w["attention.W_a"])
        weights = self._additive(g, query, memory, w["attention.v_a"])
        context = _average(g, weights, memory)

        def summed(end: str, below: Value, x: str = "W", u: str = "U", c: str = "C") -> Value:
            found = g(
                "Add", g.linear(embedded, w[x + end], w["b" + end]), g.linear(below, w[u + end])
            )
            return g("Add", found, g.linear(context, w[c + end]))

        z, r = g("Sigmoid", summed("_z", state)), g("Sigmoid", summed("_r", state))
        candidate = g("Tanh", summed("", g("Mul", r, state)))
        pairs = summed("_o", state, "V", "U", "C")
        paired = g("Reshape", pairs, g.constant([0, -1, 2]))
        output = g("ReduceMax", paired, axes=[-1], keepdims=0)
        after = g("Add", state, g("Mul", z, g("Sub", candidate, state)))
        scores = g.linear(output, self._all["readout.weight"])
        return Made(scores, after, None, weights)

    def _additive(
        self,
        g: Graph,
        query: Value,
        memory: Mapping[str, Value],
        v: Floats,
        more: Value | None = None,
    ) -> Value:
        pairs = g("Add", memory["keys"], g.unsqueeze(query, 1))
        if more is not None:
            pairs = g("Add", pairs, more)
        scores = g("MatMul", g("Tanh", pairs), g.constant(v[:, None]))
        return _softmax(g, g.squeeze(scores, -1), memory)

    def _parts(self, g: Graph, state: Value) -> list[list[Value]]:
        """Return h, or h and c, of every layer."""
        each = 2 if self._config.cell == "lstm" else 1
        size = self._d_s
        parts = [
            g.part(state, at * size, (at + 1) * size)
            for at in range(each * self._config.decoder_layers)
        ]
        return [parts[at : at + each] for at in range(0, len(parts), each)]

    def _cell(
        self, g: Graph, given: Value, before: list[Value], place: str, suffix: str = ""
    ) -> list[Value]:
        """Add one layer's step; return h, or h and c."""
        w, d_s = under(place, self._w), self._d_s
        gates = g.linear(given, w["weight_ih" + suffix], w["bias_ih" + suffix])
        hidden = g.linear(before[0], w["weight_hh" + suffix], w["bias_hh" + suffix])
        if len(before) == 2:
            sums = g("Add", gates, hidden)
            i, f, new, o = (g.part(sums, k * d_s, (k + 1) * d_s) for k in range(4))
            kept = g("Mul", g("Sigmoid", f), before[1])
            cell = g("Add", kept, g("Mul", g("Sigmoid", i), g("Tanh", new)))
            return [g("Mul", g("Sigmoid", o), g("Tanh", cell)), cell]
        both = g("Add", g.part(gates, 0, 2 * d_s), g.part(hidden, 0, 2 * d_s))
        both = g("Sigmoid", both)
        r, z = g.part(both, 0, d_s), g.part(both, d_s, 2 * d_s)
        through = g("Mul", r, g.part(hidden, 2 * d_s, 3 * d_s))
        new = g("Tanh", g("Add", g.part(gates, 2 * d_s, 3 * d_s), through))
        return [g("Add", new, g("Mul", z, g("Sub", before[0], new)))]

    def _read(self, g: Graph, output: Value, embedded: Value) -> Value:
        """Add the readout."""
        w, joined = self._all, g("Concat", output, embedded, axis=-1)
        if "readout.weight" in w:
            return g.linear(joined, w["readout.weight"], w["readout.bias"])
        found = g("Tanh", g.linear(joined, w["readout.0.weight"], w["readout.0.bias"]))
        if self._config.tied:
            return g.linear(found, w["embedding.weight"], w["bias"])
        return g.linear(found, w["readout.3.weight"], w["readout.3.bias"])


def _softmax(g: Graph, scores: Value, memory: Mapping[str, Value]) -> Value:
    """Add weights that are 0 on padding."""
    lowest = g.constant(np.float32(np.finfo(np.float32).min))
    return g("Softmax", g("Where", memory["mask"], scores, lowest), axis=-1)


def _average(g: Graph, weights: Value, memory: Mapping[str, Value]) -> Value:
    return g.squeeze(g("MatMul", g.unsqueeze(weights, 1), memory["values"]), 1)


def _joined(g: Graph, parts: list[Value]) -> Value:
    return parts[0] if len(parts) == 1 else g("Concat", *parts, axis=-1)
