"""The whole model: encoder, decoder and readout, as searches ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from regard.seq2seq.architecture import LOCAL, LUONG, ModelConfig
from regard.seq2seq.runtime.alone import Alone
from regard.seq2seq.runtime.attention import Memory
from regard.seq2seq.runtime.cells import Floats, FromSymbol, Ids, Linear
from regard.seq2seq.runtime.decoder import (
    Bahdanau,
    Coverage,
    Decoder,
    Location,
    Monotonic,
    Paper,
    Plain,
    State,
    under,
)
from regard.seq2seq.runtime.encoder import Encoder
from regard.seq2seq.runtime.luong import Fed, Local, Luong

__all__ = ["Model", "Steps", "log_softmax", "model_of"]


class Steps(Protocol):
    """A model that can be run freely, and what it is asked for."""

    @property
    def attends(self) -> bool:
        """Whether steps return attention weights."""
        ...

    def start(self, source: Ids, lengths: Ids) -> tuple[Any, Any]:
        """Encode a batch; memory and state have a method ``take``."""
        ...

    def step(self, previous: Ids, memory: Any, state: Any) -> tuple[Floats, Any, Floats | None]:
        """Return symbol scores, which the caller may write to, the next state, and weights."""
        ...


class Model:
    """A trained :class:`regard.seq2seq.model.Seq2Seq` in evaluation mode.

    Parameters
    ----------
    config : ModelConfig
    weights : mapping
        float32, under the names of that model's ``state_dict()``.
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Floats]) -> None:
        self.config = config
        self._weights = weights
        self._encoder = Encoder(
            under("encoder.", weights),
            cell=config.cell,
            layers=config.layers,
            bidirectional=config.bidirectional,
        )
        embedding = weights["embedding.weight"]
        self._decoder = _decoder_of(config, under("decoder.", weights), embedding)
        self._read_out = _Readout(config, weights)

    @property
    def attends(self) -> bool:
        """Whether there are attention weights to look at."""
        return self.config.attention != "none"

    def alone(self) -> Alone | None:
        """Return what searches one source faster; None where there is no such thing."""
        return Alone(self.config, self._weights) if Alone.suits(self.config) else None

    def start(self, source: Ids, lengths: Ids) -> tuple[Memory, State]:
        """Encode a batch for free running.

        Parameters
        ----------
        source : (sources, T_enc)
        lengths : (sources,)
            From 1 to T_enc.
        """
        states, initial = self._encoder(source, lengths)
        t_enc = source.shape[1]
        mask = None
        if (lengths < t_enc).any():
            mask = np.arange(t_enc) < lengths[:, None]
        memory = Memory(self._decoder.project(states), states, mask, lengths)
        return memory, State(self._decoder.first(states) if initial is None else initial)

    def step(
        self, previous: Ids, memory: Memory, state: State
    ) -> tuple[Floats, State, Floats | None]:
        """Take one step.

        Parameters
        ----------
        previous : (rows,)
            The symbol before; rows are the memory's sources, or several for each.
        memory, state
            From :meth:`start`, or from the step before.

        Returns
        -------
        symbol_scores : (rows, target_symbols)
        state
        weights : (rows, T_enc) or None
        """
        turn = self._decoder.step(previous, memory, state)
        return self._read_out(turn.output, previous), turn.state, turn.weights


class _Together:
    """Models side by side, as one: the mean of their probabilities."""

    def __init__(self, members: Sequence[Steps]) -> None:
        self._members = members

    @property
    def attends(self) -> bool:
        return any(member.attends for member in self._members)

    def start(self, source: Ids, lengths: Ids) -> tuple["_Several", "_Several"]:
        begun = [member.start(source, lengths) for member in self._members]
        return _Several([memory for memory, _ in begun]), _Several(
            [state for _, state in begun]
        )

    def step(
        self, previous: Ids, memory: "_Several", state: "_Several"
    ) -> tuple[Floats, "_Several", Floats | None]:
        steps = [
            member.step(previous, mine, at)
            for member, mine, at in zip(self._members, memory.parts, state.parts, strict=True)
        ]
        each = [log_softmax(scores) for scores, _, _ in steps]
        scores = np.logaddexp.reduce(each) - np.float32(np.log(len(steps)))
        looked = [weights for _, _, weights in steps if weights is not None]
        weights = np.mean(looked, axis=0) if looked else None
        return scores, _Several([after for _, after, _ in steps]), weights


@dataclass(frozen=True)
class _Several:
    """The memories or the states of all members."""

    parts: list[Any]

    def take(self, places: Ids) -> "_Several":
        return _Several([part.take(places) for part in self.parts])


def model_of(configs: Sequence[ModelConfig], weights: Mapping[str, Floats]) -> Steps:
    """Return what runs exported weights.

    Parameters
    ----------
    configs : sequence of ModelConfig
        One, or one for each member of an ensemble.
    weights : mapping
        Of an ensemble under names with the member's number and ``/`` before.
    """
    if len(configs) == 1:
        return Model(configs[0], weights)
    return _Together(
        [Model(config, under(f"{number}/", weights)) for number, config in enumerate(configs)]
    )


def log_softmax(scores: Floats) -> Floats:
    """Return log-probabilities, computed in place."""
    scores -= scores.max(-1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(-1, keepdims=True))
    return scores


class _Readout:
    def __init__(self, config: ModelConfig, weights: Mapping[str, Floats]) -> None:
        embedding = weights["embedding.weight"]
        self._from_symbol: FromSymbol | None = None
        self._last: Linear | None = None
        if config.attention == "bahdanau-paper":
            self._from_output = Linear(weights["readout.weight"])
            return
        deep = "readout.0.weight" in weights
        weight = weights["readout.0.weight" if deep else "readout.weight"]
        bias = weights["readout.0.bias" if deep else "readout.bias"]
        d_out = weight.shape[1] - embedding.shape[1]
        self._from_output = Linear(weight[:, :d_out])
        self._from_symbol = FromSymbol(embedding, weight[:, d_out:], bias)
        if config.tied:
            self._last = Linear(embedding, weights["bias"])
        elif deep:
            self._last = Linear(weights["readout.3.weight"], weights["readout.3.bias"])

    def __call__(self, output: Floats, previous: Ids) -> Floats:
        scores = self._from_output(output)
        if self._from_symbol is not None:
            scores += self._from_symbol(previous)
        if self._last is not None:
            scores = self._last(np.tanh(scores, out=scores))
        return scores


def _decoder_of(
    config: ModelConfig, weights: Mapping[str, Floats], embedding: Floats
) -> Decoder:
    kind = config.attention
    if kind in LUONG:
        if config.input_feeding:
            return Fed(weights, embedding, score=kind)
        return Luong(weights, embedding, cell=config.cell, score=kind)
    if kind in LOCAL:
        assert config.reach is not None  # the configuration has settled both
        assert config.score is not None
        return Local(
            weights, embedding, cell=config.cell, score=config.score, reach=config.reach
        )
    if kind == "none":
        return Plain(weights, embedding, config.cell)
    kinds = {
        "bahdanau": Bahdanau,
        "coverage": Coverage,
        "location": Location,
        "monotonic": Monotonic,
        "bahdanau-paper": Paper,
    }
    return kinds[kind](weights, embedding)
