"""Luong's decoder with input feeding: each step also reads the attentional state before it."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.normalizers import Normalizer
from regard.nn.carrying import CarryingDecoder, CarryingState, Turn
from regard.nn.memory import Memory
from regard.nn.modules import LuongAttention
from regard.nn.recurrence import advance, cell_of, visible
from regard.nn.shapes import positive

__all__ = ["InputFeedingDecoder"]


class InputFeedingDecoder(CarryingDecoder):
    r"""Decoder with Luong attention that is told what it attended to before [1]_.

    .. math::
       s_t &= \mathrm{RNN}([x_t; \tilde h_{t-1}],\; s_{t-1}), \quad \tilde h_0 = 0 \\
       c_t &= \mathrm{attend}(s_t, H), \quad \tilde h_t = \tanh(W_c [c_t; s_t])

    Parameters
    ----------
    d_in, d_s, d_h : int
        Sizes of an input, a state and an encoder state.
    score : {"dot", "general", "concat"}
        As of :class:`~regard.nn.modules.LuongAttention`; ``dot`` needs d_s = d_h.
    d_attn : int, optional
        For ``concat`` only.
    normalizer : str or callable
        As of :class:`~regard.nn.modules.LuongAttention`.
    cell : {"gru", "lstm"}
    layers : int
        On top of each other; the lowest is fed, the highest asks.
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s: an output is the attentional state, equation 5.
    attention : LuongAttention
        Queried with s_t, the state *after* the step.
    cell : torch.nn.GRUCell or torch.nn.LSTMCell
        Reads [x_t; the attentional state before]; its first d_in columns are the input's.
    higher : torch.nn.ModuleList
        The cells of the layers above.
    W_c : (d_s, d_h + d_s)
        The context's columns first; no bias, as in the paper.

    Raises
    ------
    ShapeError
        A size is not a positive integer, or ``dot`` with d_s different from d_h.
    ConventionError
        Unknown score, normaliser or cell, or `d_attn` missing for ``concat`` or given to
        another.

    Notes
    -----
    The state carries the attentional state (batch, d_s), so that the wrong one cannot be
    passed. The paper's recurrence is an LSTM of four layers, whose first reads it. Without
    input feeding, :class:`~regard.nn.decoders.LuongDecoder` needs no loop.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, section 3.3; equations 5 and 8. arXiv:1508.04025

    Examples
    --------
    >>> decoder = InputFeedingDecoder(d_in=3, d_s=5, d_h=7, score="general")
    >>> memory = decoder.prepare(torch.randn(2, 13, 7), torch.tensor([13, 4]))
    >>> decoded = decoder(torch.randn(2, 17, 3), memory, torch.zeros(2, 5))
    >>> decoded.outputs.shape, decoded.weights.shape
    (torch.Size([2, 17, 5]), torch.Size([2, 17, 13]))
    """

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_h: int,
        *,
        score: str = "dot",
        d_attn: int | None = None,
        normalizer: str | Normalizer = "softmax",
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        positive("InputFeedingDecoder", d_in=d_in, d_s=d_s, d_h=d_h)
        super().__init__(d_in, d_s, d_s, d_h=d_h, cell=cell, layers=layers)
        self.attention = LuongAttention(d_s, d_h, score, d_attn, normalizer=normalizer)
        self.cell = cell_of(cell, d_in + d_s, d_s)
        self.higher = nn.ModuleList(cell_of(cell, d_s, d_s) for _ in range(layers - 1))
        self.dropout = nn.Dropout(dropout)
        self.W_c = nn.Parameter(torch.empty(d_s, d_h + d_s))
        nn.init.uniform_(self.W_c, -((d_h + d_s) ** -0.5), (d_h + d_s) ** -0.5)

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        return replace(self.attention.prepare(encoder_states, key_mask=key_mask), owner=self)

    def _require_carried(self, memory: Memory, state: CarryingState) -> None:
        """Accept any source: an attentional state has no axis of keys."""

    def _turn(
        self, given: Tensor, memory: Memory, hidden: Tensor, carried: Tensor | None
    ) -> Turn:
        fed = given.new_zeros(given.shape[0], self.d_s) if carried is None else carried
        after = self._recur(torch.cat([given, fed], -1), hidden)
        seen = self._seen(after)
        own = replace(memory, owner=self.attention)
        context, weights = self.attention(seen.unsqueeze(1), own)
        context = context.squeeze(1)
        output = torch.tanh(functional.linear(torch.cat([context, seen], -1), self.W_c))
        return Turn(output, after, context, weights.squeeze(1), output)

    def _recur(self, given: Tensor, hidden: Tensor) -> Tensor:
        """Return the state after a step, all layers."""
        lowest, *others = hidden.chunk(self.layers, -1)
        found = [advance(self.cell, given, lowest)]
        for cell, before in zip(self.higher, others, strict=True):
            below = self.dropout(visible(found[-1], self.d_s))
            found.append(advance(cell, below, before))  # type: ignore[arg-type] # of a list
        return found[0] if self.layers == 1 else torch.cat(found, -1)

    def _seen(self, hidden: Tensor) -> Tensor:
        return visible(hidden.chunk(self.layers, -1)[-1], self.d_s)
