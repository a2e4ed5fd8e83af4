"""The encoder: source symbols to encoder states, and to the decoder's first state."""

from typing import NamedTuple

import torch
from jaxtyping import Integer
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.axes import checked
from regard.errors import ShapeError, explain
from regard.kernels.gru_layer import run_gru
from regard.nn.recurrence import Layers
from regard.nn.shapes import recorded
from regard.seq2seq.dropout import Dropout
from regard.seq2seq.unpacked import run_unpacked
from regard.seq2seq.vocab import PAD, UNK

__all__ = ["Encoded", "Encoder"]


class Encoded(NamedTuple):
    """What an encoder returns.

    Attributes
    ----------
    states : (batch, T_enc, d_h)
        Zero on padding.
    initial : (batch, d_state) or None
        The decoder's state before its first step, within -1 and 1; None without a bridge.
    """

    states: Tensor
    initial: Tensor | None


class Encoder(nn.Module):
    r"""A GRU or LSTM over embedded symbols, in one or both directions.

    .. math:: s_0 = \tanh(W [\overrightarrow{h}_{T}; \overleftarrow{h}_1] + b)

    Parameters
    ----------
    symbols : int
        Size of the source vocabulary, reserved ids included.
    d_in, d_hidden : int
        Sizes of an embedding and of the states of one direction.
    d_state : int or None
        Size of the decoder's state (:mod:`regard.nn.recurrence`), which a layer, the bridge,
        makes of the last states; None for a decoder that makes its own.
    bidirectional : bool
        States are then ``[forward; backward]`` and ``d_h`` is ``2 * d_hidden``.
    layers : int
        On top of each other.
    dropout : float
        On embeddings, between layers and on states, 0 to below 1.
    cell : {"gru", "lstm"}

    Attributes
    ----------
    rnn : torch.nn.GRU or torch.nn.LSTM
        Under the name of its kind, ``gru`` or ``lstm``.

    Notes
    -----
    The paper's initial state reads the backward direction only; here both final states of the
    highest layer are read, of an LSTM h alone. An unknown symbol starts with a zero
    embedding and, as training never shows one, keeps it: it says "something stood here".

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align
       and Translate", ICLR 2015, section 3.2 and appendix A.2.2. arXiv:1409.0473
    """

    def __init__(
        self,
        symbols: int,
        d_in: int,
        d_hidden: int,
        d_state: int | None,
        *,
        bidirectional: bool = True,
        layers: int = 1,
        dropout: float = 0.0,
        cell: str = "gru",
    ) -> None:
        super().__init__()
        self.d_h = d_hidden * (2 if bidirectional else 1)
        self.embedding = nn.Embedding(symbols, d_in, padding_idx=PAD)
        with torch.no_grad():
            self.embedding.weight[UNK] = 0.0
        kind = nn.LSTM if cell == "lstm" else nn.GRU
        rnn = kind(
            d_in,
            d_hidden,
            num_layers=layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.cell_kind = cell
        self.add_module(cell, rnn)
        self.bridge = None if d_state is None else nn.Linear(self.d_h, d_state)
        self.dropout = Dropout(dropout)

    @property
    def rnn(self) -> Layers:
        """The recurrence, whichever it is."""
        found: Layers = getattr(self, self.cell_kind)
        return found

    @checked
    def forward(
        self,
        source: Integer[Tensor, "batch T_enc"],
        source_lengths: Integer[Tensor, " batch"] | None = None,
    ) -> Encoded:
        """Encode a batch.

        Parameters
        ----------
        source : (batch, T_enc)
            Ids; what stands behind a sequence's length is never read.
        source_lengths : (batch,), optional
            From 1 to T_enc. None: no sequence is padded.

        Returns
        -------
        encoded : Encoded
            A padded sequence has the states that it has alone, up to rounding.

        Raises
        ------
        ShapeError
            The two disagree on the batch, or a length is outside 1 to T_enc.
        """
        embedded = self.dropout(self.embedding(source))
        if source_lengths is None:
            states, last = self._run(embedded)
        elif recorded():
            states, last = run_unpacked(self.rnn, embedded, source_lengths)
        else:
            _check_lengths(source_lengths, source.shape[1])
            packed = pack_padded_sequence(
                embedded,
                source_lengths.cpu(),
                batch_first=True,
                enforce_sorted=False,
            )
            states, last = self.rnn(packed)
            # Back to the length that came in, even if every sequence is shorter.
            states, _ = pad_packed_sequence(
                states, batch_first=True, total_length=source.shape[1]
            )
        return Encoded(self.dropout(states), self._initial(last))

    def _run(self, embedded: Tensor) -> tuple[Tensor, Tensor | tuple[Tensor, Tensor]]:
        rnn = self.rnn
        if isinstance(rnn, nn.GRU):
            return run_gru(rnn, embedded)
        states, last = rnn(embedded)
        return states, last

    def _initial(self, last: Tensor | tuple[Tensor, Tensor]) -> Tensor | None:
        if self.bridge is None:
            return None
        ends = last[0] if isinstance(last, tuple) else last  # of an LSTM h
        places = (-2, -1) if self.rnn.bidirectional else (-1,)  # the highest layer's
        return torch.tanh(self.bridge(torch.cat([ends[place] for place in places], dim=-1)))


def _check_lengths(lengths: Tensor, t_enc: int) -> None:
    if lengths.numel() and (int(lengths.min()) < 1 or int(lengths.max()) > t_enc):
        raise ShapeError(
            explain(
                "Encoder(): `source_lengths` has a length outside the sequence",
                expected=f"from 1 to T_enc = {t_enc}",
                got=f"from {int(lengths.min())} to {int(lengths.max())}",
                because="an empty sequence has no state that a decoder could start from",
            )
        )
