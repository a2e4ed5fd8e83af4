"""A decoder with coverage: it is told what it has attended to already."""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.normalizers import Normalizer
from regard.nn.carrying import CarryingDecoder, Turn, average
from regard.nn.memory import Memory
from regard.nn.normalize import normalize, require_normalizer
from regard.nn.recurrence import advance, cell_of, visible
from regard.nn.shapes import positive

__all__ = ["CoverageDecoder"]


class CoverageDecoder(CarryingDecoder):
    r"""Decoder whose additive attention sees its own coverage, as See et al. [1]_.

    .. math::
       s_t &= \mathrm{RNN}(x_t, s_{t-1}), \quad c^t = \sum_{t' < t} a^{t'}, \quad c^0 = 0 \\
       e_{t,i} &= v^\top \tanh(W_h h_i + W_s s_t + w_c c_i^t + b), \quad
       a^t = \mathrm{softmax}(e_t), \quad h^*_t = \sum_i a_i^t h_i

    Parameters
    ----------
    d_in, d_s, d_h, d_attn : int
        Sizes of an input, a state, an encoder state, and the space of comparison.
    normalizer : str or callable
        As of :class:`~regard.nn.modules.AdditiveAttention`.
    cell : {"gru", "lstm"}
    layers : int
        The lowest attends and the others read its context
        (:class:`~regard.nn.recurrence.UpperLayers`).
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s + d_h: an output is [s_t; h*_t], which equation 4 of the paper reads.
    cell : torch.nn.GRUCell or torch.nn.LSTMCell
    W_h, W_s : (d_attn, d_h), (d_attn, d_s)
    w_c, b, v : (d_attn,)

    Raises
    ------
    ShapeError
        A size is not a positive integer.
    ConventionError
        Unknown normaliser or cell.

    Notes
    -----
    The state carries the coverage (batch, T_enc). The loss of equation 12 is a function of the
    result: ``regard.attention.coverage.coverage_loss(decoded.weights)``. The paper's recurrence
    is one LSTM, whose [h; c] its equation 1 calls s_t; here h alone is compared and read. Its
    pointer, the generation probability p_gen, is not part of coverage and is not here. The
    paper adds coverage, and w_c with it, to a model trained without; here w_c
    starts as the other parameters do, uniform by their fan-in.

    References
    ----------
    .. [1] See, Liu and Manning, "Get To The Point: Summarization with Pointer-Generator
       Networks", ACL 2017, sections 2.1 and 2.3, equations 1 to 4 and 10 to 13.
       arXiv:1704.04368

    Examples
    --------
    >>> from regard.attention.coverage import coverage_loss
    >>> decoder = CoverageDecoder(d_in=3, d_s=5, d_h=7, d_attn=11)
    >>> memory = decoder.prepare(torch.randn(2, 13, 7), torch.tensor([13, 4]))
    >>> decoded = decoder(torch.randn(2, 17, 3), memory, torch.zeros(2, 5))
    >>> decoded.outputs.shape, coverage_loss(decoded.weights).shape
    (torch.Size([2, 17, 12]), torch.Size([2, 17]))
    """

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_h: int,
        d_attn: int,
        *,
        normalizer: str | Normalizer = "softmax",
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        positive("CoverageDecoder", d_in=d_in, d_s=d_s, d_h=d_h, d_attn=d_attn)
        super().__init__(d_in, d_s, d_s + d_h, d_h=d_h, cell=cell, layers=layers)
        self.d_attn = d_attn
        self.normalizer = require_normalizer(normalizer)
        self.cell = cell_of(cell, d_in, d_s)
        self.W_h = nn.Parameter(torch.empty(d_attn, d_h))
        self.W_s = nn.Parameter(torch.empty(d_attn, d_s))
        self.w_c = nn.Parameter(torch.empty(d_attn))
        self.b = nn.Parameter(torch.zeros(d_attn))
        self.v = nn.Parameter(torch.empty(d_attn))
        for parameter in (self.W_h, self.W_s, self.w_c, self.v):
            bound = 1 / sqrt(parameter.shape[-1])
            nn.init.uniform_(parameter, -bound, bound)
        self._raise_layers(dropout)

    def _project(self, key: Tensor) -> Tensor:
        return functional.linear(key, self.W_h, self.b)

    def _turn(
        self, given: Tensor, memory: Memory, hidden: Tensor, carried: Tensor | None
    ) -> Turn:
        after = advance(self.cell, given, hidden)
        seen = visible(after, self.d_s)
        keys = memory.projected
        coverage = keys.new_zeros(keys.shape[:2]) if carried is None else carried
        query = functional.linear(seen, self.W_s).unsqueeze(1)
        pairs = torch.tanh(keys + query + coverage.unsqueeze(-1) * self.w_c)
        weights = normalize(self.normalizer, torch.matmul(pairs, self.v), memory.key_mask)
        context = average(weights, memory)
        output = torch.cat([seen, context], -1)
        return Turn(output, after, context, weights, coverage + weights)
