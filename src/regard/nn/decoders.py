r"""Decoders that form their own query, so that the wrong state cannot be passed.

Bahdanau's decoder asks with the state *before* the step, s_{t-1}, and the context helps to make
s_t. Luong's asks with the state *after* it, s_t, and the context only shapes the output. Which
of the two a model computes shows in no shape, so here no caller hands over a query. All three
decoders share one interface::

    memory = decoder.prepare(encoder_states, key_lengths)
    decoded = decoder(inputs, memory, initial_state)            # all inputs known: training
    state = decoder.start(initial_state)
    output, state, weights = decoder.step(input, memory, state)  # one at a time: search
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels.gru_loop import LoopInputs, LoopOutputs, bahdanau_loop
from regard.kernels.lstm_loop import LstmInputs, bahdanau_lstm_loop
from regard.nn.decoder import Decoded, Decoder, DecoderState, Stepped
from regard.nn.memory import Memory, clear
from regard.nn.modules import AdditiveAttention, LuongAttention
from regard.nn.recurrence import advance, cell_of, layers_of, run_layers, step_layers, visible
from regard.nn.shapes import positive

__all__ = [
    "BahdanauDecoder",
    "Decoded",
    "DecoderState",
    "LuongDecoder",
    "PlainDecoder",
    "Stepped",
]


class BahdanauDecoder(Decoder):
    r"""Decoder with additive attention, queried with the state before the step [1]_.

    .. math::
       c_t &= \mathrm{attend}(s_{t-1}, H), \quad
       e_{t,i} = v_a^\top \tanh(W_a s_{t-1} + U_a h_i) \\
       s_t &= \mathrm{RNN}([x_t; c_t],\; s_{t-1})

    Parameters
    ----------
    d_in, d_s, d_h, d_attn : int
        Sizes of an input, a state, an encoder state, and the space of comparison.
    v_scale : float
        As of :class:`~regard.nn.modules.AdditiveAttention`.
    cell : {"gru", "lstm"}
        The paper's is a GRU.
    layers : int
        The lowest attends, with its own state before the step, and the others read its context
        (:class:`~regard.nn.recurrence.UpperLayers`). The paper has one.
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s + d_h: an output is [s_t; c_t].
    attention : regard.nn.AdditiveAttention
    cell : torch.nn.GRUCell or torch.nn.LSTMCell
        Reads [x_t; c_t]: the context acts on all gates.

    Raises
    ------
    ShapeError
        A size is not a positive integer.
    ConventionError
        Unknown cell.

    Notes
    -----
    Two deviations from the paper's appendix A.1.1 and A.2.2. The reset gate is PyTorch's: it
    multiplies ``W_hn s + b_hn``, where the paper multiplies s before the product; and the
    update gate z keeps the old state where the paper's lets the new one in. The output is left
    as [s_t; c_t] for a layer of the caller's, where the paper ends in a maxout layer that reads
    s_{t-1}.

    Keys and the inputs' part of the gates are projected once a sequence. With gradients the
    whole loop is one node with its own backward pass (:mod:`regard.kernels.gru_loop`,
    :mod:`regard.kernels.lstm_loop`); under autocast it runs in the parameters' type.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio 2015, section 3.1 and appendix A. arXiv:1409.0473

    Examples
    --------
    >>> decoder = BahdanauDecoder(d_in=3, d_s=5, d_h=7, d_attn=11)
    >>> memory = decoder.prepare(torch.randn(2, 13, 7), torch.tensor([13, 4]))
    >>> decoded = decoder(torch.randn(2, 17, 3), memory, torch.zeros(2, 5))
    >>> decoded.outputs.shape, decoded.weights.shape
    (torch.Size([2, 17, 12]), torch.Size([2, 17, 13]))
    """

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_h: int,
        d_attn: int,
        *,
        v_scale: float = 4.0,
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        positive("BahdanauDecoder", d_in=d_in, d_s=d_s, d_h=d_h, d_attn=d_attn)
        super().__init__(d_in, d_s, d_s + d_h, d_h=d_h, cell=cell, layers=layers)
        self.d_attn = d_attn
        self.attention = AdditiveAttention(d_s, d_h, d_attn, v_scale=v_scale)
        self.cell = cell_of(cell, d_in + d_h, d_s)
        self._raise_layers(dropout)

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        return _owned(self.attention.prepare(encoder_states, key_mask=key_mask), self)

    def _run(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        with torch.autocast(inputs.device.type, enabled=False):
            states, contexts, weights = self._loop(inputs, memory, initial_state)
        return Decoded(torch.cat([states, contexts], -1), states, contexts, weights)

    def _loop(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> LoopOutputs:
        attention, cell, dtype = self.attention, self.cell, self._dtype()
        from_input, from_context = (
            cell.weight_ih[:, : self.d_in],
            cell.weight_ih[:, self.d_in :],
        )
        shared = {
            "key": memory.projected.to(dtype),
            "value": memory.value.to(dtype),
            "state": initial_state.to(dtype),
            "W_a": attention.W_a,
            "v_a": attention.v_a,
            "W_hh": cell.weight_hh,
            "W_c": from_context,
        }
        inputs = inputs.to(dtype)
        if self.cell_kind == "lstm":
            gates = functional.linear(inputs, from_input, cell.bias_ih + cell.bias_hh)
            given = LstmInputs(gates=gates, **shared)
            return bahdanau_lstm_loop(given, memory.key_mask, keys=memory.prepared)
        gates = functional.linear(inputs, from_input, cell.bias_ih)
        return bahdanau_loop(
            LoopInputs(gates=gates, b_hh=cell.bias_hh, **shared),
            memory.key_mask,
            keys=memory.prepared,
        )

    def _step(self, given: Tensor, memory: Memory, hidden: Tensor) -> Stepped:
        own = _owned(memory, self.attention)
        before = visible(hidden, self.d_s)
        context, weights = self.attention(before.unsqueeze(1), own)
        context = context.squeeze(1)
        after = advance(self.cell, torch.cat([given, context], -1), hidden)
        output = torch.cat([visible(after, self.d_s), context], -1)
        return Stepped(output, DecoderState(after, self), weights.squeeze(1))


class LuongDecoder(Decoder):
    r"""Decoder with Luong attention, queried with the state after the step [1]_.

    .. math::
       s_t &= \mathrm{RNN}(x_t, s_{t-1}), \quad c_t = \mathrm{attend}(s_t, H) \\
       \tilde h_t &= \tanh(W_c [c_t; s_t])

    Parameters
    ----------
    d_in, d_s, d_h : int
        Sizes of an input, a state and an encoder state.
    score : {"dot", "general", "concat"}
        As of :class:`~regard.nn.modules.LuongAttention`; ``dot`` needs d_s = d_h.
    d_attn : int, optional
        For ``concat`` only.
    cell : {"gru", "lstm"}
        The paper's is an LSTM.
    layers : int
        On top of each other; the highest asks. The paper has four.
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s: an output is the attentional state of equation 5.
    attention : LuongAttention
    rnn : torch.nn.GRU or torch.nn.LSTM
        Under the name of its kind, ``gru`` or ``lstm``.
    W_c : (d_s, d_h + d_s)
        The context's columns first; no bias, as in the paper.

    Raises
    ------
    ShapeError
        A size is not a positive integer, or ``dot`` with d_s different from d_h; no projection
        is slipped in between.
    ConventionError
        Unknown score or cell, or `d_attn` missing for ``concat`` or given to another.

    Notes
    -----
    Without input feeding (section 3.3) no step needs the context before it, so a whole sequence
    is one call of the recurrence and one of the attention.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, sections 3 and 3.1, equations 5 and 8.
       arXiv:1508.04025

    Examples
    --------
    >>> decoder = LuongDecoder(d_in=3, d_s=5, d_h=7, score="general")
    >>> memory = decoder.prepare(torch.randn(2, 13, 7))
    >>> output, state, weights = decoder.step(
    ...     torch.randn(2, 3), memory, decoder.start(torch.zeros(2, 5))
    ... )
    >>> output.shape, weights.shape
    (torch.Size([2, 5]), torch.Size([2, 13]))
    """

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_h: int,
        *,
        score: str = "dot",
        d_attn: int | None = None,
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        positive("LuongDecoder", d_in=d_in, d_s=d_s, d_h=d_h)
        super().__init__(d_in, d_s, d_s, d_h=d_h, cell=cell, layers=layers)
        self.attention = LuongAttention(d_s, d_h, score, d_attn)
        self.add_module(cell, layers_of(cell, d_in, d_s, layers, dropout=dropout))
        self.W_c = nn.Parameter(torch.empty(d_s, d_h + d_s))
        nn.init.uniform_(self.W_c, -((d_h + d_s) ** -0.5), (d_h + d_s) ** -0.5)

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        return _owned(self.attention.prepare(encoder_states, key_mask=key_mask), self)

    def _run(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        return self._ask(run_layers(self.rnn, inputs, initial_state)[0], memory)

    def _step(self, given: Tensor, memory: Memory, hidden: Tensor) -> Stepped:
        seen, last = step_layers(self.rnn, given, hidden)
        decoded = self._ask(seen.unsqueeze(1), memory)
        assert decoded.weights is not None  # this decoder always attends
        state = DecoderState(last, self)
        return Stepped(decoded.outputs.squeeze(1), state, decoded.weights.squeeze(1))

    def _ask(self, states: Tensor, memory: Memory) -> Decoded:
        contexts, weights = self.attention(states, _owned(memory, self.attention))
        outputs = torch.tanh(functional.linear(torch.cat([contexts, states], -1), self.W_c))
        return Decoded(outputs, states, contexts, weights)


class PlainDecoder(Decoder):
    r"""Decoder without attention: the baseline that sees the source through s_0 alone.

    .. math:: s_t = \mathrm{RNN}(x_t, s_{t-1})

    Parameters
    ----------
    d_in, d_s : int
        Sizes of an input and a state.
    cell : {"gru", "lstm"}
    layers : int
        On top of each other.
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s: an output is s_t.
    rnn : torch.nn.GRU or torch.nn.LSTM
        Under the name of its kind, ``gru`` or ``lstm``.

    Raises
    ------
    ShapeError
        A size is not a positive integer.
    ConventionError
        Unknown cell.

    Notes
    -----
    It takes a memory like the others, so that one training loop serves all three, and reads
    nothing of it but the batch size.

    Examples
    --------
    >>> decoder = PlainDecoder(d_in=3, d_s=5)
    >>> memory = decoder.prepare(torch.randn(2, 13, 7))
    >>> decoded = decoder(torch.randn(2, 17, 3), memory, torch.zeros(2, 5))
    >>> decoded.outputs.shape, decoded.weights
    (torch.Size([2, 17, 5]), None)
    """

    def __init__(
        self, d_in: int, d_s: int, *, cell: str = "gru", layers: int = 1, dropout: float = 0.0
    ) -> None:
        positive("PlainDecoder", d_in=d_in, d_s=d_s)
        super().__init__(d_in, d_s, d_s, cell=cell, layers=layers)
        self.add_module(cell, layers_of(cell, d_in, d_s, layers, dropout=dropout))

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        states = encoder_states if key_mask is None else clear(encoder_states, key_mask)
        return Memory(states, states, key_mask, states, self)

    def _run(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        del memory
        states, _ = run_layers(self.rnn, inputs, initial_state)
        return Decoded(states, states, None, None)

    def _step(self, given: Tensor, memory: Memory, hidden: Tensor) -> Stepped:
        del memory
        seen, last = step_layers(self.rnn, given, hidden)
        return Stepped(seen, DecoderState(last, self), None)


def _owned(memory: Memory, owner: nn.Module) -> Memory:
    # A decoder's memory is its attention's; each accepts only what bears its own name.
    return replace(memory, owner=owner)
