"""The greedy search for one source, of the usual model: as few and as large calls as can be.

A word that comes alone gives NumPy arrays so small that calls cost more than arithmetic. The
equations are those of :mod:`regard.seq2seq.runtime.decoder`; what is linear in one thing is put
together, once for a model or once for a source:

- a symbol's share in the gates and in the readout is a row of one table;
- a state is multiplied once, for its readout, for the next query and for the next gates;
- contexts are never computed: their share in gates and readout is the weighted mean of what the
  encoder states contribute;
- a bias is the row that belongs to a 1 behind the state;
- the rows of gates that go through a sigmoid are halved, which is exact, since it is computed
  as (1 + tanh(x / 2)) / 2.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.runtime.cells import Floats
from regard.seq2seq.runtime.decoder import under
from regard.seq2seq.vocab import BOS, EOS, PAD, UNK

__all__ = ["Alone", "Followed"]

_TABLE = 4096  # symbols of a side: tables of more cost more memory than the time is worth
_HIGHEST = 80.0  # of which float32 has the exponential, and that of its negative

_HALF = np.array(0.5, np.float32)


class Followed(NamedTuple):
    """What the search found."""

    ids: list[int]
    """With the end, if it came."""

    log_probs: list[float]
    """One for each of ``ids``."""

    weights: Floats | None
    """(len(ids), T_enc), if they were asked for."""


class Alone:
    """A trained model with a GRU and Bahdanau's attention, for one source at a time.

    Parameters
    ----------
    config : ModelConfig
        One that :meth:`suits` says yes to.
    weights : mapping
        As :class:`~regard.seq2seq.runtime.model.Model` takes them.
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Floats]) -> None:
        self._layers = _layers_of(config, under("encoder.gru.", weights))
        first = self._layers[0]
        embedded = weights["encoder.embedding.weight"] @ first.from_input + first.bias
        self._of_source = embedded.reshape(len(embedded), len(first.from_state), -1)
        self._bridge = _with_bias(
            weights["encoder.bridge.weight"], weights["encoder.bridge.bias"]
        )
        self._d_attn, self._d_s = config.d_attn, config.d_s
        decoder = under("decoder.", weights)
        self._from_key = np.ascontiguousarray(decoder["attention.U_a"].T)
        self._v = decoder["attention.v_a"]
        self._is_tame = float(np.abs(self._v).sum()) < _HIGHEST
        readout = _readout_of(config, weights)
        of_state, of_context, of_symbol = np.split(
            readout.weight, [config.d_s, config.d_s + config.d_h], axis=1
        )
        cell = {
            name: _halved(value, config.d_s) for name, value in under("cell.", decoder).items()
        }
        d_in = weights["embedding.weight"].shape[1]
        from_symbol, from_context = np.split(cell["weight_ih"], [d_in], axis=1)
        self._of_symbol = weights["embedding.weight"] @ np.concatenate(
            [from_symbol, of_symbol]
        ).T + np.concatenate([cell["bias_ih"], readout.bias])
        self._from_states = np.ascontiguousarray(np.concatenate([from_context, of_context]).T)
        nothing = np.zeros(config.d_attn, np.float32), np.zeros(len(of_state), np.float32)
        self._from_state = _with_bias(
            np.concatenate([decoder["attention.W_a"], cell["weight_hh"], of_state]),
            np.concatenate([nothing[0], cell["bias_hh"], nothing[1]]),
        )
        self._last = readout.last
        never = (
            self._last[-1] if self._last is not None else self._of_symbol[:, 3 * config.d_s :]
        )
        never[..., [PAD, BOS, UNK]] = -np.inf  # no search answers them

    @staticmethod
    def suits(config: ModelConfig) -> bool:
        """Return whether a model is of the kind that this runs."""
        return (
            config.attention == "bahdanau"
            and config.cell == "gru"
            and config.decoder_layers == 1
            and max(config.source_symbols, config.target_symbols) <= _TABLE
        )

    def follow(  # noqa: PLR0915 - one loop, in which a call of a function would cost as much
        self, source: list[int], limit: int, *, need_weights: bool
    ) -> Followed:
        """Take the likeliest symbol at every step, to the end or one step beyond the limit."""
        states, state = self._encoded(source)
        key, read = states @ self._from_key, states @ self._from_states
        d_attn, d_s = self._d_attn, self._d_s
        of_symbol, from_state, last, v = self._of_symbol, self._from_state, self._last, self._v
        add, tanh, multiply, subtract = np.add, np.tanh, np.multiply, np.subtract
        seen = state[:d_s]  # without the 1 behind it
        made = state.dot(from_state)
        query, of_state = made[:d_attn], made[d_attn + 3 * d_s :]
        both, new = made[d_attn : d_attn + 2 * d_s], made[d_attn + 2 * d_s : d_attn + 3 * d_s]
        r, z = both[:d_s], both[d_s:]
        given = np.empty(read.shape[1], np.float32)
        given_both, given_new = given[: 2 * d_s], given[2 * d_s : 3 * d_s]
        given_read = given[3 * d_s :]
        exp, is_tame = np.exp, self._is_tame
        pairs, ones = np.empty_like(key), np.ones(len(key), np.float32)
        symbol, ids = BOS, []
        scores: list[Floats] = []
        looked: list[Floats] = []
        for _ in range(limit + 1):
            add(key, query, pairs)
            tanh(pairs, pairs)
            weights = pairs.dot(v)
            if not is_tame:
                weights -= weights.max()
            exp(weights, weights)
            weights /= weights.dot(ones)
            if need_weights:
                looked.append(weights)
            weights.dot(read, given)
            add(given, of_symbol[symbol], given)
            add(both, given_both, both)
            tanh(both, both)
            multiply(both, _HALF, both)
            add(both, _HALF, both)
            multiply(new, r, new)
            add(new, given_new, new)
            tanh(new, new)
            subtract(seen, new, seen)
            multiply(seen, z, seen)
            add(seen, new, seen)
            state.dot(from_state, made)
            score = of_state + given_read
            if last is not None:
                tanh(score, score)
                score = score.dot(last[:-1])
                score += last[-1]
            symbol = int(score.argmax())
            scores.append(score)
            ids.append(symbol)
            if symbol == EOS:
                break
        table = np.array(scores)
        table -= table.max(-1, keepdims=True)
        table -= np.log(np.exp(table).sum(-1, keepdims=True))
        log_probs = table[np.arange(len(ids)), ids].tolist()
        return Followed(ids, log_probs, np.array(looked) if need_weights else None)

    def _encoded(self, source: list[int]) -> tuple[Floats, Floats]:
        """Return the encoder states (T_enc, d_h), and the first state with a 1 behind it."""
        gates: Floats = self._of_source[source]
        states: Floats = gates  # for the type checker: there is a first layer
        for number, layer in enumerate(self._layers):
            if number:
                gates = (states @ layer.from_input + layer.bias).reshape(gates.shape)
            if gates.shape[1] == 2:
                gates[:, 1] = gates[::-1, 1].copy()  # the way back is read from its start
            states, ends = _run(layer, gates)
        first = np.empty(self._d_s + 1, np.float32)
        first[-1] = 1.0
        np.tanh(ends.dot(self._bridge), out=first[:-1])
        return states, first


class _Layer(NamedTuple):
    """One layer of the encoder, all directions."""

    from_input: Floats
    """(d_in, directions * gates)"""

    bias: Floats
    from_state: list[Floats]
    """For each direction (d_hidden + 1, gates)."""


class _Readout(NamedTuple):
    weight: Floats
    """(n, d_s + d_h + d_in): what is linear in state, context and symbol."""

    bias: Floats
    last: Floats | None
    """(n + 1, symbols), behind a tanh; None where there is none."""


def _run(layer: _Layer, gates: Floats) -> tuple[Floats, Floats]:
    """Run a layer over (T_enc, directions, gates), the backward one's turned round.

    Returns states (T_enc, d_h), and the last ones of the directions with a 1 behind them.
    """
    t_enc, directions, width = gates.shape
    d = width // 3
    state = np.zeros((directions, d + 1), np.float32)
    state[:, -1] = 1.0
    hidden = np.empty((directions, width), np.float32)
    both, new, seen = hidden[:, : 2 * d], hidden[:, 2 * d :], state[:, :-1]
    r, z = both[:, :d], both[:, d:]
    found = np.empty((t_enc, directions, d), np.float32)
    add, tanh, multiply, subtract = np.add, np.tanh, np.multiply, np.subtract
    products = [(state[i].dot, layer.from_state[i], hidden[i]) for i in range(directions)]
    for given_both, given_new, after in zip(
        gates[:, :, : 2 * d], gates[:, :, 2 * d :], found, strict=True
    ):
        for dot, matrix, out in products:
            dot(matrix, out)
        add(both, given_both, both)
        tanh(both, both)
        multiply(both, _HALF, both)
        add(both, _HALF, both)
        multiply(new, r, new)
        add(new, given_new, new)
        tanh(new, new)
        subtract(seen, new, seen)
        multiply(seen, z, seen)
        add(seen, new, seen)
        after[...] = seen
    states = found.reshape(t_enc, -1)
    if directions == 2:
        states = np.concatenate([found[:, 0], found[::-1, 1]], 1)
    ends = np.ones(directions * d + 1, np.float32)
    ends[:-1] = seen.reshape(-1)
    return states, ends


def _layers_of(config: ModelConfig, weights: Mapping[str, Floats]) -> list[_Layer]:
    ends = ("", "_reverse") if config.bidirectional else ("",)

    def of(name: str, layer: int) -> list[Floats]:
        return [_halved(weights[f"{name}_l{layer}{end}"], config.d_hidden) for end in ends]

    return [
        _Layer(
            np.ascontiguousarray(np.concatenate(of("weight_ih", layer)).T),
            np.concatenate(of("bias_ih", layer)),
            [
                _with_bias(weight, bias)
                for weight, bias in zip(
                    of("weight_hh", layer), of("bias_hh", layer), strict=True
                )
            ],
        )
        for layer in range(config.layers)
    ]


def _readout_of(config: ModelConfig, weights: Mapping[str, Floats]) -> _Readout:
    if "readout.0.weight" not in weights:
        return _Readout(weights["readout.weight"], weights["readout.bias"], None)
    if config.tied:
        last = _with_bias(weights["embedding.weight"], weights["bias"])
    else:
        last = _with_bias(weights["readout.3.weight"], weights["readout.3.bias"])
    return _Readout(weights["readout.0.weight"], weights["readout.0.bias"], last)


def _halved(gates: Floats, size: int) -> Floats:
    """Return gates whose first two parts, r and z, are halved."""
    found = gates.copy()
    found[: 2 * size] *= _HALF
    return found


def _with_bias(weight: Floats, bias: Floats) -> Floats:
    """Return (d_in + 1, d_out): what a vector with a 1 behind it is multiplied with."""
    return np.ascontiguousarray(np.concatenate([weight, bias[:, None]], 1).T)
