"""Luong's decoder with input feeding: each step also reads the attentional state before it."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.normalizers import Normalizer
from regard.nn.carrying import CarryingDecoder, CarryingState, Turn
from regard.nn.memory import Memory
from regard.nn.modules import LuongAttention
from regard.nn.shapes import positive

__all__ = ["InputFeedingDecoder"]


class InputFeedingDecoder(CarryingDecoder):
    r"""GRU decoder with Luong attention that is told what it attended to before [1]_.

    .. math::
       s_t &= \mathrm{GRU}([x_t; \tilde h_{t-1}],\; s_{t-1}), \quad \tilde h_0 = 0 \\
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

    Attributes
    ----------
    d_out : int
        d_s: an output is the attentional state, equation 5.
    attention : LuongAttention
        Queried with s_t, the state *after* the step.
    cell : torch.nn.GRUCell
        Reads [x_t; the attentional state before]; its first d_in columns are the input's.
    W_c : (d_s, d_h + d_s)
        The context's columns first; no bias, as in the paper.

    Raises
    ------
    ShapeError
        A size is not a positive integer, or ``dot`` with d_s different from d_h.
    ConventionError
        Unknown score or normaliser, or `d_attn` missing for ``concat`` or given to another.

    Notes
    -----
    The state carries the attentional state (batch, d_s), so that the wrong one cannot be
    passed. The paper's recurrence is an LSTM of four layers, whose first reads it; this is one
    GRU. Without input feeding, :class:`~regard.nn.decoders.LuongDecoder` needs no loop.

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
    ) -> None:
        positive("InputFeedingDecoder", d_in=d_in, d_s=d_s, d_h=d_h)
        super().__init__(d_in, d_s, d_s, d_h=d_h)
        self.attention = LuongAttention(d_s, d_h, score, d_attn, normalizer=normalizer)
        self.cell = nn.GRUCell(d_in + d_s, d_s)
        self.W_c = nn.Parameter(torch.empty(d_s, d_h + d_s))
        nn.init.uniform_(self.W_c, -((d_h + d_s) ** -0.5), (d_h + d_s) ** -0.5)

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        return replace(self.attention.prepare(encoder_states, key_mask=key_mask), owner=self)

    def _require_carried(self, memory: Memory, state: CarryingState) -> None:
        """Accept any source: an attentional state has no axis of keys."""

    def _turn(
        self, given: Tensor, memory: Memory, hidden: Tensor, carried: Tensor | None
    ) -> Turn:
        fed = torch.zeros_like(hidden) if carried is None else carried
        after = self.cell(torch.cat([given, fed], -1), hidden)
        own = replace(memory, owner=self.attention)
        context, weights = self.attention(after.unsqueeze(1), own)
        context = context.squeeze(1)
        output = torch.tanh(functional.linear(torch.cat([context, after], -1), self.W_c))
        return Turn(output, after, context, weights.squeeze(1), output)
