r"""The same model, made ready for many steps: what depends on a symbol alone is tabulated.

A step of the usual model, a GRU or LSTM of one layer with Bahdanau's attention, reads the
embedding of the symbol before in two places, the gates and the readout. Both products are
computed once for every symbol, and the two products with the state are one. The rest are the
operations that are left, without the checks at every door: those were passed when the search
began. Numbers are the model's own to rounding.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.prepared import PreparedKeys, prepare
from regard.kernels.softmax import masked_softmax
from regard.kernels.steps import attend
from regard.nn.decoders import BahdanauDecoder
from regard.seq2seq.ensemble import Ensemble, Together
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.search import Stepper

__all__ = ["swift"]

# Tables of large vocabularies cost more to make than they save, and much memory.
_SYMBOLS = 2048
# Pairs of features below which a few plain operations are done before a kernel is chosen.
_PLAIN = 1 << 15


def swift(model: Seq2Seq | Ensemble) -> Stepper:
    """Return a form of a model that steps faster, or the model itself where there is none.

    Parameters
    ----------
    model : Seq2Seq or Ensemble

    Returns
    -------
    stepper : Stepper
        Holds what the weights were when it was made; not to be kept while they are trained.
    """
    if isinstance(model, Ensemble):
        return Together([swift(member) for member in model.members])
    fits = (
        type(model.decoder) is BahdanauDecoder
        and model.decoder.layers == 1
        and model.config.target_symbols <= _SYMBOLS
        and model.embedding.weight.dtype == torch.float32
        and model.embedding.weight.device.type == "cpu"
    )
    return _Swift(model) if fits else model


class _Swift:
    """A step of a decoder with Bahdanau's attention and one recurrent layer."""

    def __init__(self, model: Seq2Seq) -> None:
        self._model = model
        decoder = cast(BahdanauDecoder, model.decoder)
        cell, attention, d_in = decoder.cell, decoder.attention, decoder.d_in
        readout = model.readout if isinstance(model.readout, nn.Linear) else model.readout[0]  # type: ignore[index]  # a Sequential otherwise
        with torch.inference_mode():
            embedding = model.embedding.weight.detach()
            self._d_s = decoder.d_s
            self._lstm = decoder.cell_kind == "lstm"
            self._gates = functional.linear(embedding, cell.weight_ih[:, :d_in], cell.bias_ih)
            self._from_context = cell.weight_ih[:, d_in:].detach().t()
            none = cell.bias_hh.new_zeros(decoder.d_attn)
            self._from_state = (
                torch.cat([cell.weight_hh, attention.W_a]).detach().t().contiguous()
            )
            self._state_bias = torch.cat([cell.bias_hh, none]).detach()
            self._v_a = attention.v_a.detach()
            d_out = readout.weight.shape[1] - d_in
            self._from_symbol = functional.linear(
                embedding, readout.weight[:, d_out:], readout.bias
            )
            self._from_output = readout.weight[:, :d_out].detach().t()

    @property
    def training(self) -> bool:
        return self._model.training

    @property
    def attends(self) -> bool:
        return True

    def eval(self) -> Any:
        self._model.eval()
        return self

    def train(self, mode: bool = True) -> Any:
        self._model.train(mode)
        return self

    def start(self, source: Tensor, source_lengths: Tensor | None = None) -> tuple[Any, Any]:
        memory, state = self._model.start(source, source_lengths)
        return _Held.of(memory), state.hidden

    def step(
        self, previous: Tensor, memory: "_Held", state: Tensor
    ) -> tuple[Tensor, Any, Tensor | None]:
        d_s = self._d_s
        before = state[:, :d_s] if self._lstm else state
        both = torch.addmm(self._state_bias, before, self._from_state)
        hidden, query = both[:, : -self._v_a.shape[0]], both[:, -self._v_a.shape[0] :]
        context, weights = memory.read(query.unsqueeze(1), self._v_a)
        context = context.squeeze(1)
        given = self._gates.index_select(0, previous).addmm_(context, self._from_context)
        if self._lstm:
            i, f, g, o = (given + hidden).chunk(4, -1)
            cell = f.sigmoid() * state[:, d_s:] + i.sigmoid() * g.tanh()
            after = o.sigmoid() * cell.tanh()
            state = torch.cat([after, cell], -1)
        else:
            r, z = (given[:, : 2 * d_s] + hidden[:, : 2 * d_s]).sigmoid_().chunk(2, -1)
            new = torch.addcmul(given[:, 2 * d_s :], r, hidden[:, 2 * d_s :]).tanh_()
            state = after = torch.lerp(new, before, z)
        output = torch.cat([after, context], -1)
        scores = self._from_symbol.index_select(0, previous).addmm_(output, self._from_output)
        return self._rest(scores), state, weights.squeeze(1)

    def take(
        self, memory: "_Held", state: Tensor, rows: Tensor, *, same_sources: bool = False
    ) -> tuple[Any, Any]:
        return memory if same_sources else memory.select(rows), state.index_select(0, rows)

    def _rest(self, scores: Tensor) -> Tensor:
        """Return what the readout makes of its first layer's output."""
        model = self._model
        if isinstance(model.readout, nn.Sequential):
            scores = model.readout[1:](scores)
        if model.bias is not None:
            scores = functional.linear(scores, model.embedding.weight, model.bias)
        return scores


class _Held:
    """A memory's arrays, with nothing to be checked."""

    def __init__(self, key: Tensor, value: Tensor, mask: Tensor | None, keys: PreparedKeys):
        self._key, self._value, self._mask, self._keys = key, value, mask, keys

    @classmethod
    def of(cls, memory: Any) -> "_Held":
        key, mask = memory.projected, memory.key_mask
        keys = memory.prepared if memory.prepared is not None else prepare(key, mask)
        return cls(key, memory.value, mask, keys)

    def read(self, query: Tensor, v_a: Tensor) -> tuple[Tensor, Tensor]:
        if self._key.numel() >= _PLAIN:
            return attend(query, self._keys, v_a, self._value)
        scores = torch.matmul((self._key + query).tanh_(), v_a).unsqueeze(1)
        may = None if self._mask is None else self._mask.unsqueeze(1)
        weights = scores.softmax(-1) if may is None else masked_softmax(scores, may)
        return torch.bmm(weights, self._value), weights

    def select(self, rows: Tensor) -> "_Held":
        mask = None if self._mask is None else self._mask[rows]
        keys = self._keys.select(rows)
        return _Held(keys.key, self._value.index_select(0, rows), mask, keys)
