"""The model: an encoder, a decoder with or without attention, and a readout."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.nn import functional

from regard.axes import checked
from regard.nn.memory import Memory
from regard.nn.paper import PaperBahdanauDecoder
from regard.nn.recurrence import state_size
from regard.seq2seq.architecture import ATTENTIONS, ModelConfig
from regard.seq2seq.decoder import decoder_of
from regard.seq2seq.dropout import Dropout
from regard.seq2seq.encoder import Encoder
from regard.seq2seq.sampling import require_share, run_sampled
from regard.seq2seq.vocab import PAD

__all__ = ["ATTENTIONS", "ModelConfig", "Scored", "Seq2Seq"]


class Scored(NamedTuple):
    """What a model returns.

    Attributes
    ----------
    symbol_scores : (batch, T_dec, target_symbols)
        Before softmax.
    weights : (batch, T_dec, T_enc) or None
        Attention weights; None without attention. Row t is what was read to answer the symbol
        that is scored at t, whichever state the paper asks with.
    """

    symbol_scores: Tensor
    weights: Tensor | None


class Seq2Seq(nn.Module):
    """Encoder, decoder and readout.

    The output layer reads the decoder's output and the embedding of the symbol before, as the
    deep output of [1]_ does (without its maxout, which ``bahdanau-paper`` has). In teacher
    forcing it runs once for all steps.

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
        paper = config.attention == "bahdanau-paper"
        self.encoder = Encoder(
            config.source_symbols,
            config.d_in,
            config.d_hidden,
            # The paper's decoder makes its first state itself.
            None if paper else state_size(config.cell, config.d_s, config.decoder_layers),
            bidirectional=config.bidirectional,
            layers=config.layers,
            dropout=config.dropout,
            cell=config.cell,
        )
        self.embedding = nn.Embedding(config.target_symbols, config.d_in, padding_idx=PAD)
        self.decoder = decoder_of(config)
        self.readout = _readout(config, self.decoder.d_out)
        self.bias = nn.Parameter(torch.zeros(config.target_symbols)) if config.tied else None
        self.dropout = Dropout(config.dropout)

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
        *,
        sampling: float = 0.0,
    ) -> Scored:
        """Score every next symbol of a known target (teacher forcing).

        Parameters
        ----------
        source : (batch, T_enc)
        inputs : (batch, T_dec)
            ``BOS`` and the target; position t is scored for what follows it.
        source_lengths : (batch,), optional
            None: no source is padded.
        sampling : float
            0 to 1. Above 0 each symbol but the first is, with this probability, replaced by
            one that the model draws itself (:mod:`regard.seq2seq.sampling`); slower, as each
            step then waits for the one before.

        Returns
        -------
        scored : Scored

        Raises
        ------
        InputError
            ``sampling`` is outside its range.
        """
        require_share(sampling)
        memory, initial = self._encode(source, source_lengths)
        if sampling:
            state = self.decoder.start(initial)
            return Scored(*run_sampled(self.step, inputs, memory, state, sampling))
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

        Raises
        ------
        ShapeError, BackendError
            An argument does not fit the others.
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

        Raises
        ------
        ShapeError, BackendError
            An argument does not fit the others.
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

        Raises
        ------
        ShapeError, BackendError
            An argument does not fit the others.
        """
        return memory if same_sources else memory.select(rows), state.select(rows)

    def _encode(self, source: Tensor, lengths: Tensor | None) -> tuple[Memory, Tensor]:
        states, initial = self.encoder(source, lengths)
        memory = self.decoder.prepare(states, key_lengths=lengths)
        if isinstance(self.decoder, PaperBahdanauDecoder):
            initial = self.decoder.first_state(memory)
        return memory, initial

    def _read(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        read = self.dropout(outputs)
        if not isinstance(self.decoder, PaperBahdanauDecoder):  # whose output has read it
            read = torch.cat([read, embedded], dim=-1)
        scores: Tensor = self.readout(read)
        if self.bias is not None:
            scores = functional.linear(scores, self.embedding.weight, self.bias)
        return scores


def _readout(config: ModelConfig, d_out: int) -> nn.Module:
    """Return what makes symbol scores of a decoder's output, the embedding beside it."""
    if config.attention == "bahdanau-paper":
        return nn.Linear(d_out, config.target_symbols, bias=False)
    d_out += config.d_in
    if not config.d_readout:
        return nn.Linear(d_out, config.target_symbols)
    layers = [nn.Linear(d_out, config.d_readout), nn.Tanh(), Dropout(config.dropout)]
    if not config.tied:
        layers.append(nn.Linear(config.d_readout, config.target_symbols))
    return nn.Sequential(*layers)
