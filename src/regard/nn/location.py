"""A decoder with location-aware attention: it knows where the step before attended."""

from dataclasses import replace
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.location import require_middle
from regard.attention.normalizers import Normalizer
from regard.errors import ConventionError, explain
from regard.nn.carrying import CarryingDecoder, Turn, average
from regard.nn.memory import Memory
from regard.nn.normalize import normalize, require_normalizer
from regard.nn.recurrence import advance, cell_of, visible
from regard.nn.shapes import positive

__all__ = ["LocationDecoder"]


class LocationDecoder(CarryingDecoder):
    r"""The attention-based recurrent generator of Chorowski et al. [1]_, with features.

    .. math::
       s_{i-1} &= \mathrm{RNN}([y_{i-1}; g_{i-1}],\; s_{i-2}), \quad
       f_i = F * \alpha_{i-1} \\
       e_{i,j} &= w^\top \tanh(W s_{i-1} + V h_j + U f_{i,j} + b), \quad
       \alpha_i = \mathrm{softmax}(\beta e_i), \quad
       g_i = \textstyle\sum_j \alpha_{i,j} h_j

    Parameters
    ----------
    d_in, d_s, d_h, d_attn : int
        Sizes of an input, a state, an encoder state, and the space of comparison.
    k, r : int
        Number of filters and their odd width; the paper has k = 10, r = 201 for frames of
        speech.
    sharpening : float
        Beta, above 0; above 1 it narrows the weights (section 2.3).
    normalizer : str or callable
        As of :class:`~regard.nn.modules.AdditiveAttention`; ``smoothed`` is the paper's
        smoothing (section 2.3).
    cell : {"gru", "lstm"}
    layers : int
        The lowest attends and the others read its context
        (:class:`~regard.nn.recurrence.UpperLayers`).
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s + d_h: an output is [s_{i-1}; g_i], which Generate of equation 3 reads.
    cell : torch.nn.GRUCell or torch.nn.LSTMCell
        Reads [y_{i-1}; g_{i-1}], the glimpse *before*: equation 4.
    W, V, U : (d_attn, d_s), (d_attn, d_h), (d_attn, k)
    F : (k, r)
    b, w : (d_attn,)

    Raises
    ------
    ShapeError
        A size is not a positive integer.
    ConventionError
        r is even, `sharpening` is not above 0, or an unknown normaliser or cell.

    Notes
    -----
    One turn here reads the last output y_{i-1}, finishes the state s_{i-1} with it and attends
    with that state: equations 4, 1 and 2 in the order in which they can be computed. The first
    input, the beginning of the sequence, makes the first state that asks; alpha and g before it
    are zero. The state carries alpha (batch, T_enc). The convolution is centred and zero beyond
    the ends (:mod:`regard.attention.location`). Sharpening by keeping the k best scores, and
    windowing, are not here.

    References
    ----------
    .. [1] Chorowski, Bahdanau, Serdyuk, Cho and Bengio, "Attention-Based Models for Speech
       Recognition", NIPS 2015, sections 2.1 to 2.3, equations 1 to 4, 8 and 9.
       arXiv:1506.07503

    Examples
    --------
    >>> decoder = LocationDecoder(d_in=3, d_s=5, d_h=7, d_attn=11, k=2, r=5)
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
        k: int,
        r: int,
        sharpening: float = 1.0,
        normalizer: str | Normalizer = "softmax",
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        call = "LocationDecoder"
        positive(call, d_in=d_in, d_s=d_s, d_h=d_h, d_attn=d_attn, k=k, r=r)
        require_middle(call, r)
        if not sharpening > 0:
            raise ConventionError(
                explain(
                    f"{call}(): `sharpening` turns scores around",
                    expected="sharpening above 0; above 1 it narrows the weights",
                    got=f"sharpening={sharpening!r}",
                )
            )
        super().__init__(d_in, d_s, d_s + d_h, d_h=d_h, cell=cell, layers=layers)
        self.d_attn, self.k, self.r, self.sharpening = d_attn, k, r, sharpening
        self.normalizer = require_normalizer(normalizer)
        self.cell = cell_of(cell, d_in + d_h, d_s)
        self.W = nn.Parameter(torch.empty(d_attn, d_s))
        self.V = nn.Parameter(torch.empty(d_attn, d_h))
        self.U = nn.Parameter(torch.empty(d_attn, k))
        self.F = nn.Parameter(torch.empty(k, r))
        self.b = nn.Parameter(torch.zeros(d_attn))
        self.w = nn.Parameter(torch.empty(d_attn))
        for parameter in (self.W, self.V, self.U, self.F, self.w):
            bound = 1 / sqrt(parameter.shape[-1])
            nn.init.uniform_(parameter, -bound, bound)
        self._raise_layers(dropout)

    def _project(self, key: Tensor) -> Tensor:
        return functional.linear(key, self.V, self.b)

    def _turn(
        self, given: Tensor, memory: Memory, hidden: Tensor, carried: Tensor | None
    ) -> Turn:
        keys = memory.projected
        previous = keys.new_zeros(keys.shape[:2]) if carried is None else carried
        # Of the states themselves, whatever values the memory has for this step alone
        # (regard.nn.altered): the glimpse belongs to the step before.
        glimpse = average(previous, replace(memory, value=memory.key))
        after = advance(self.cell, torch.cat([given, glimpse], -1), hidden)
        seen = visible(after, self.d_s)
        # conv1d correlates; a convolution runs the filters backwards.
        filters = self.F.flip(-1).unsqueeze(1)
        features = functional.conv1d(previous.unsqueeze(1), filters, padding=self.r // 2)
        where = functional.linear(features.transpose(1, 2), self.U)
        query = functional.linear(seen, self.W).unsqueeze(1)
        scores = torch.matmul(torch.tanh(keys + query + where), self.w)
        weights = normalize(self.normalizer, self.sharpening * scores, memory.key_mask)
        context = average(weights, memory)
        output = torch.cat([seen, context], -1)
        return Turn(output, after, context, weights, weights)
