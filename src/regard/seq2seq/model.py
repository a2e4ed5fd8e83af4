"""The model: an encoder, a decoder with or without attention, and a readout."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from regard.axes import checked
from regard.errors import InputError, ShapeError, explain
from regard.nn.decoders import BahdanauDecoder, LuongDecoder, PlainDecoder
from regard.seq2seq.encoder import Encoder
from regard.seq2seq.vocab import FIRST, PAD

__all__ = ["ATTENTIONS", "ModelConfig", "Scored", "Seq2Seq"]

ATTENTIONS = ("none", "bahdanau", "dot", "general", "concat")


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides a model's shape.

    Parameters
    ----------
    source_symbols, target_symbols : int
        Sizes of the vocabularies, the four reserved ids included.
    attention : {"none", "bahdanau", "dot", "general", "concat"}
        ``bahdanau`` scores with the state before a step, the three Luong scores with the one
        after it.
    d_in : int
        Size of the embeddings of both sides.
    d_hidden : int
        Encoder states of one direction.
    d_s : int
        Decoder state. ``dot`` needs it to equal :attr:`d_h`.
    d_attn : int
        Where ``bahdanau`` and ``concat`` compare; the others ignore it.
    d_readout : int
        Size of a tanh layer below the output layer; 0 leaves it out.
    bidirectional : bool
    layers : int
        Of the encoder.
    dropout : float
        0 to below 1.
    v_scale : float
        How much larger than usual the additive score's vector starts; above 1 the alignment
        forms earlier.

    Raises
    ------
    InputError
        A value is outside its range.
    ShapeError
        ``dot`` with ``d_s`` different from ``d_h``.
    """

    source_symbols: int
    target_symbols: int
    attention: str = "bahdanau"
    d_in: int = 64
    d_hidden: int = 96
    d_s: int = 192
    d_attn: int = 128
    d_readout: int = 0
    bidirectional: bool = True
    layers: int = 1
    dropout: float = 0.1
    v_scale: float = 4.0

    @property
    def d_h(self) -> int:
        """Size of an encoder state, both directions together."""
        return self.d_hidden * (2 if self.bidirectional else 1)

    def __post_init__(self) -> None:
        if self.attention not in ATTENTIONS:
            raise _refused("attention", f"one of {', '.join(ATTENTIONS)}", self.attention)
        for name in ("source_symbols", "target_symbols"):
            size = getattr(self, name)
            if size <= FIRST:
                raise _refused(name, f"at least {FIRST + 1}: the reserved ids and one", size)
        for name in ("d_in", "d_hidden", "d_s", "d_attn", "layers"):
            if getattr(self, name) < 1:
                raise _refused(name, "at least 1", getattr(self, name))
        if self.d_readout < 0:
            raise _refused("d_readout", "at least 0", self.d_readout)
        if not 0 <= self.dropout < 1:
            raise _refused("dropout", "from 0 to below 1", self.dropout)
        if not 0 < self.v_scale < float("inf"):
            raise _refused("v_scale", "a positive number", self.v_scale)
        if self.attention == "dot" and self.d_s != self.d_h:
            raise ShapeError(
                explain(
                    "ModelConfig(): `d_s` does not fit `d_h`, which dot attention needs",
                    expected=f"d_s = d_h = {self.d_h}",
                    got=f"d_s = {self.d_s}",
                    because=f"d_h = {self.d_h} comes from d_hidden = {self.d_hidden}"
                    + " in two directions" * self.bidirectional,
                    help=f'set d_s to {self.d_h}, or use attention="general"',
                )
            )

    def to_json(self) -> dict[str, Any]:
        """Return a form that :meth:`from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, form: Any) -> "ModelConfig":
        """Rebuild a configuration.

        Raises
        ------
        InputError
            ``form`` has other entries, or a value of another type.
        """
        kinds = {field.name: field.type for field in fields(cls)}
        if not isinstance(form, Mapping) or set(form) != set(kinds):
            raise _refused("form", f"entries {', '.join(kinds)}", form)
        for name, kind in kinds.items():
            value = form[name]
            number = kind is float and type(value) is int
            if not number and type(value) is not kind:
                raise _refused(name, f"a value of type {kind.__name__}", value)  # type: ignore[union-attr]  # real types here
        return cls(**form)


class Scored(NamedTuple):
    """What a model returns.

    Attributes
    ----------
    symbol_scores : (batch, T_dec, target_symbols)
        Before softmax.
    weights : (batch, T_dec, T_enc) or None
        Attention weights; None without attention.
    """

    symbol_scores: Tensor
    weights: Tensor | None


class Seq2Seq(nn.Module):
    """Encoder, decoder and readout.

    The output layer reads the decoder's output and the embedding of the symbol before, as the
    deep output of [1]_ does (without its maxout). In teacher forcing it runs once for all
    steps.

    Parameters
    ----------
    config : ModelConfig

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align
       and Translate", ICLR 2015, appendix A.2.2. arXiv:1409.0473
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(
            config.source_symbols,
            config.d_in,
            config.d_hidden,
            config.d_s,
            bidirectional=config.bidirectional,
            layers=config.layers,
            dropout=config.dropout,
        )
        self.embedding = nn.Embedding(config.target_symbols, config.d_in, padding_idx=PAD)
        self.decoder = _decoder(config)
        d_out = self.decoder.d_out + config.d_in
        if config.d_readout:
            self.readout: nn.Module = nn.Sequential(
                nn.Linear(d_out, config.d_readout),
                nn.Tanh(),
                nn.Dropout(config.dropout),
                nn.Linear(config.d_readout, config.target_symbols),
            )
        else:
            self.readout = nn.Linear(d_out, config.target_symbols)
        self.dropout = nn.Dropout(config.dropout)

    @property
    def attends(self) -> bool:
        """Whether there are attention weights to look at."""
        return self.config.attention != "none"

    @checked
    def forward(
        self,
        source: Integer[Tensor, "batch T_enc"],
        inputs: Integer[Tensor, "batch T_dec"],
        source_lengths: Integer[Tensor, " batch"] | None = None,
    ) -> Scored:
        """Score every next symbol of a known target (teacher forcing).

        Parameters
        ----------
        source : (batch, T_enc)
        inputs : (batch, T_dec)
            ``BOS`` and the target; position t is scored for what follows it.
        source_lengths : (batch,), optional
            None: no source is padded.

        Returns
        -------
        scored : Scored
        """
        memory, initial = self._encode(source, source_lengths)
        embedded = self.dropout(self.embedding(inputs))
        decoded = self.decoder(embedded, memory, initial)
        return Scored(self._read(decoded.outputs, embedded), decoded.weights)

    @checked
    def start(
        self,
        source: Integer[Tensor, "batch T_enc"],
        source_lengths: Integer[Tensor, " batch"] | None = None,
    ) -> tuple[Any, Any]:
        """Encode a batch for free running.

        Returns
        -------
        memory, state
            For :meth:`step`; :meth:`take` picks and repeats examples of both.
        """
        memory, initial = self._encode(source, source_lengths)
        return memory, self.decoder.start(initial)

    @checked
    def step(
        self, previous: Integer[Tensor, " batch"], memory: Any, state: Any
    ) -> tuple[Float[Tensor, "batch symbols"], Any, Tensor | None]:
        """Take one step.

        Parameters
        ----------
        previous : (batch,)
            The symbol before; ``BOS`` at first.
        memory, state
            From :meth:`start`, or from the step before.

        Returns
        -------
        symbol_scores : (batch, target_symbols)
        state
            After the step.
        weights : (batch, T_enc) or None
        """
        embedded = self.dropout(self.embedding(previous))
        output, state, weights = self.decoder.step(embedded, memory, state)
        return self._read(output, embedded), state, weights

    @checked
    def take(
        self,
        memory: Any,
        state: Any,
        rows: Integer[Tensor, " chosen"],
        *,
        same_sources: bool = False,
    ) -> tuple[Any, Any]:
        """Go on with these rows of a batch, in this order, repeats allowed.

        Parameters
        ----------
        memory, state
            From :meth:`start`, or from the step before.
        rows : (chosen,)
            A beam search repeats and drops hypotheses so.
        same_sources : bool
            Promises that every row keeps the source that stood in its place, as it does where
            hypotheses of one source change places. The memory is then left as it is, which
            saves copying it.

        Returns
        -------
        memory, state
            For :meth:`step`, with a batch of `chosen`.
        """
        return memory if same_sources else memory.select(rows), state.select(rows)

    def _encode(self, source: Tensor, lengths: Tensor | None) -> tuple[Any, Tensor]:
        encoded = self.encoder(source, lengths)
        return self.decoder.prepare(encoded.states, key_lengths=lengths), encoded.initial

    def _read(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        scores: Tensor = self.readout(torch.cat([self.dropout(outputs), embedded], dim=-1))
        return scores


def _decoder(config: ModelConfig) -> Any:
    sizes = (config.d_in, config.d_s)
    if config.attention == "none":
        return PlainDecoder(*sizes)
    if config.attention == "bahdanau":
        return BahdanauDecoder(*sizes, config.d_h, config.d_attn, v_scale=config.v_scale)
    # Only concat has a space of its own to compare in.
    d_attn = config.d_attn if config.attention == "concat" else None
    return LuongDecoder(*sizes, config.d_h, score=config.attention, d_attn=d_attn)


def _refused(name: str, expected: str, got: object) -> InputError:
    return InputError(
        explain(f"ModelConfig(): `{name}` is refused", expected=expected, got=repr(got)[:80])
    )
