"""A decoder with monotonic attention: each step reads on from where the last one stopped."""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.monotonic import expected_alignment, hard_alignment, require_method
from regard.errors import ConventionError, explain
from regard.nn.carrying import CarryingDecoder, Turn, average
from regard.nn.memory import Memory
from regard.nn.recurrence import advance, cell_of, visible
from regard.nn.shapes import positive

__all__ = ["MonotonicDecoder"]


class MonotonicDecoder(CarryingDecoder):
    r"""Decoder with the monotonic attention of Raffel et al. [1]_.

    .. math::
       e_{i,j} &= g \frac{v^\top}{\lVert v \rVert} \tanh(W s_{i-1} + V h_j + b) + r, \quad
       p_{i,j} = \sigma(e_{i,j} + \epsilon), \quad \epsilon \sim N(0, \mathrm{noise}^2) \\
       \alpha_{i,j} &= p_{i,j} \Big( (1 - p_{i,j-1}) \frac{\alpha_{i,j-1}}{p_{i,j-1}}
       + \alpha_{i-1,j} \Big), \quad c_i = \textstyle\sum_j \alpha_{i,j} h_j \\
       s_i &= \mathrm{RNN}([x_i; c_i],\; s_{i-1})

    Parameters
    ----------
    d_in, d_s, d_h, d_attn : int
        Sizes of an input, a state, an encoder state, and the space of comparison.
    noise : float
        Standard deviation, at least 0, of the noise added before the sigmoid in training mode;
        it drives the energies away from 0, so that hard decoding finds the same alignment. The
        paper's is 1 (section 2.5).
    offset : float
        Where r starts. Below 0, so that at first a step passes over many keys; the longer the
        source, the lower.
    hard : bool, optional
        True takes one key a step, False the expectation. Left out: the expectation in training
        mode and one key in evaluation mode, as in the paper.
    method : {"scan", "recursive", "cumulative"}
        As of :func:`regard.attention.monotonic.expected_alignment`.
    cell : {"gru", "lstm"}
    layers : int
        The lowest attends and the others read its context
        (:class:`~regard.nn.recurrence.UpperLayers`).
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s + d_h: an output is [s_i; c_i].
    cell : torch.nn.GRUCell or torch.nn.LSTMCell
        Reads [x_i; c_i].
    W, V : (d_attn, d_s), (d_attn, d_h)
    b, v : (d_attn,)
    g, r : ()
        g starts at 1 / sqrt(d_attn).

    Raises
    ------
    ShapeError
        A size is not a positive integer.
    ConventionError
        `noise` is negative, or unknown method or cell.

    Notes
    -----
    Rows of weights may sum to **less than 1**: the rest walks past the last key and attends to
    nothing, at this step and all later ones. With hard weights no gradient reaches the
    energies. The state carries alpha (batch, T_enc); the first step begins at key 0.

    References
    ----------
    .. [1] Raffel, Luong, Liu, Weiss and Eck, "Online and Linear-Time Attention by Enforcing
       Monotonic Alignments", ICML 2017, sections 2.2 to 2.5, equations 9 to 16.
       arXiv:1704.00784

    Examples
    --------
    >>> decoder = MonotonicDecoder(d_in=3, d_s=5, d_h=7, d_attn=11).eval()
    >>> memory = decoder.prepare(torch.randn(2, 13, 7), torch.tensor([13, 4]))
    >>> decoded = decoder(torch.randn(2, 17, 3), memory, torch.zeros(2, 5))
    >>> decoded.outputs.shape, sorted(set(decoded.weights.unique().tolist()) | {1.0})
    (torch.Size([2, 17, 12]), [0.0, 1.0])
    """

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_h: int,
        d_attn: int,
        *,
        noise: float = 1.0,
        offset: float = -1.0,
        hard: bool | None = None,
        method: str = "scan",
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        positive("MonotonicDecoder", d_in=d_in, d_s=d_s, d_h=d_h, d_attn=d_attn)
        require_method("MonotonicDecoder", method)
        if not noise >= 0:
            raise ConventionError(
                explain(
                    "MonotonicDecoder(): `noise` is no standard deviation",
                    expected="noise of at least 0",
                    got=f"noise={noise!r}",
                )
            )
        super().__init__(d_in, d_s, d_s + d_h, d_h=d_h, cell=cell, layers=layers)
        self.d_attn, self.noise, self.hard, self.method = d_attn, noise, hard, method
        self.cell = cell_of(cell, d_in + d_h, d_s)
        self.W = nn.Parameter(torch.empty(d_attn, d_s))
        self.V = nn.Parameter(torch.empty(d_attn, d_h))
        self.b = nn.Parameter(torch.zeros(d_attn))
        self.v = nn.Parameter(torch.empty(d_attn))
        self.g = nn.Parameter(torch.tensor(1 / sqrt(d_attn)))
        self.r = nn.Parameter(torch.tensor(float(offset)))
        for parameter in (self.W, self.V, self.v):
            bound = 1 / sqrt(parameter.shape[-1])
            nn.init.uniform_(parameter, -bound, bound)
        self._raise_layers(dropout)

    def _project(self, key: Tensor) -> Tensor:
        return functional.linear(key, self.V, self.b)

    def _turn(
        self, given: Tensor, memory: Memory, hidden: Tensor, carried: Tensor | None
    ) -> Turn:
        before = visible(hidden, self.d_s)
        weights = self._align(self._energies(before, memory), memory, carried)
        context = average(weights, memory)
        after = advance(self.cell, torch.cat([given, context], -1), hidden)
        output = torch.cat([visible(after, self.d_s), context], -1)
        return Turn(output, after, context, weights, weights)

    def _energies(self, hidden: Tensor, memory: Memory) -> Tensor:
        keys = memory.projected
        pairs = torch.tanh(keys + functional.linear(hidden, self.W).unsqueeze(1))
        return torch.matmul(pairs, self.g * self.v / self.v.norm()) + self.r

    def _align(self, energies: Tensor, memory: Memory, carried: Tensor | None) -> Tensor:
        previous = carried
        if previous is None:
            previous = torch.zeros_like(energies)
            previous[:, :1] = 1
        hard = not self.training if self.hard is None else self.hard
        if hard:
            taken: Tensor = hard_alignment(energies, previous, mask=memory.key_mask)
            return taken
        if self.training and self.noise:
            energies = energies + self.noise * torch.randn_like(energies)
        p = torch.sigmoid(energies)
        expected: Tensor = expected_alignment(
            p, previous, mask=memory.key_mask, method=self.method
        )
        return expected
