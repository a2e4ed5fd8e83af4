r"""Single-head attention as PyTorch modules: Bahdanau's additive and Luong's three scores.

Both map queries ``(*batch, T_dec, d_s)`` and keys ``(*batch, T_enc, d_h)`` to a context
``(*batch, T_dec, d_v)`` and weights ``(*batch, T_dec, T_enc)``. Masks are boolean, True = may
attend. Keys that no query may attend, and queries that may attend nowhere, are cleared first:
what padding holds reaches neither the result nor any gradient. Nothing is kept on a module
between calls; ``prepare`` returns a :class:`~regard.nn.memory.Memory` instead.
"""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.normalizers import Normalizer
from regard.errors import ConventionError, ShapeError, explain
from regard.nn.attention import Attention
from regard.nn.memory import Memory
from regard.nn.shapes import positive

__all__ = ["AdditiveAttention", "LuongAttention"]


class AdditiveAttention(Attention):
    r"""Additive attention, as Bahdanau et al. [1]_ define it.

    .. math:: e_{t,i} = v_a^\top \tanh(W_a s_{t-1} + U_a h_i)

    Parameters
    ----------
    d_s, d_h : int
        Sizes of a query (decoder state) and of a key (encoder state; twice the hidden size if
        the encoder is bidirectional).
    d_attn : int
        Size of the space where the two are compared.
    v_scale : float
        v_a starts uniform within plus or minus v_scale / sqrt(d_attn); 1 is what a linear layer
        starts with. Larger scores at the start make the first alignment form sooner.
    normalizer : str or callable
        ``softmax``, ``sparsemax``, ``entmax15``, ``smoothed``, or a function ``(scores, mask)
        -> weights`` (:mod:`regard.attention.normalizers`).

    Attributes
    ----------
    W_a : (d_attn, d_s)
        Starts uniform within plus or minus 1 / sqrt(d_s).
    U_a : (d_attn, d_h)
        Starts uniform within plus or minus 1 / sqrt(d_h).
    v_a : (d_attn,)

    Raises
    ------
    ShapeError
        A size is not a positive integer.
    ConventionError
        Unknown normaliser.

    Notes
    -----
    No bias, as in the paper. The paper starts v_a at zero and the matrices at a standard
    deviation of 0.001, which suits its training of several days. The pairs (batch, T_dec,
    T_enc, d_attn) are never held at once in float32 and float64, neither in training.

    The module does not know at which time its query was taken. The paper's query is the state
    *before* the step; :class:`~regard.nn.decoders.BahdanauDecoder` sees to that by itself.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align
       and Translate", ICLR 2015, appendix A.1.2. arXiv:1409.0473

    Examples
    --------
    >>> import torch
    >>> attention = AdditiveAttention(d_s=5, d_h=7, d_attn=11)
    >>> attention
    AdditiveAttention(d_s=5, d_h=7, d_attn=11)
    >>> lengths = torch.tensor([3, 2])
    >>> out = attention(torch.randn(2, 1, 5), torch.randn(2, 3, 7), key_lengths=lengths)
    >>> out.context.shape, out.weights.shape, out.weights[1, 0, 2].item()
    (torch.Size([2, 1, 7]), torch.Size([2, 1, 3]), 0.0)
    """

    def __init__(
        self,
        d_s: int,
        d_h: int,
        d_attn: int,
        *,
        v_scale: float = 4.0,
        normalizer: str | Normalizer = "softmax",
    ) -> None:
        super().__init__(d_s, d_h, normalizer=normalizer)
        positive(type(self).__name__, d_attn=d_attn)
        self.d_attn = d_attn
        self.v_scale = v_scale
        self.W_a = nn.Parameter(torch.empty(d_attn, d_s))
        self.U_a = nn.Parameter(torch.empty(d_attn, d_h))
        self.v_a = nn.Parameter(torch.empty(d_attn))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _uniform(self.W_a, 1 / sqrt(self.d_s))
        _uniform(self.U_a, 1 / sqrt(self.d_h))
        _uniform(self.v_a, self.v_scale / sqrt(self.d_attn))

    def extra_repr(self) -> str:
        """Return the sizes, for the printed module."""
        return f"d_s={self.d_s}, d_h={self.d_h}, d_attn={self.d_attn}"

    def _project(self, key: Tensor) -> Tensor:
        return functional.linear(key, self.U_a)

    def _additive(self) -> tuple[Tensor, Tensor]:
        return self.W_a, self.v_a


class LuongAttention(Attention):
    r"""Attention with one of the three scores of Luong et al. [1]_, equation 8.

    .. math::
       \mathrm{dot}: s_t^\top h_i \qquad
       \mathrm{general}: s_t^\top W h_i \qquad
       \mathrm{concat}: v_c^\top \tanh(W_c [s_t; h_i])

    Parameters
    ----------
    d_s, d_h : int
        Sizes of a query (decoder state) and of a key (encoder state).
    score : {"dot", "general", "concat"}
        ``dot`` has no parameters and needs d_s = d_h.
    d_attn : int, optional
        For ``concat`` only, and required there: rows of W_c.
    v_scale : float
        For ``concat``: v_c starts uniform within plus or minus v_scale / sqrt(d_attn).
    normalizer : str or callable
        ``softmax``, ``sparsemax``, ``entmax15``, ``smoothed``, or a function ``(scores, mask)
        -> weights`` (:mod:`regard.attention.normalizers`).

    Attributes
    ----------
    W : (d_s, d_h)
        Of ``general``; starts uniform within plus or minus 1 / sqrt(d_h).
    W_c : (d_attn, d_s + d_h)
        Of ``concat``, the query's columns first; starts uniform within plus or minus
        1 / sqrt(d_s + d_h).
    v_c : (d_attn,)
        Of ``concat``; the paper calls it v_a.

    Raises
    ------
    ShapeError
        A size is not a positive integer, or ``dot`` with d_s different from d_h.
    ConventionError
        Unknown score or normaliser, or `d_attn` missing for ``concat`` or given to another.

    Notes
    -----
    The paper's query is the state *after* the step, s_t;
    :class:`~regard.nn.decoders.LuongDecoder` sees to that by itself.

    References
    ----------
    .. [1] Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine
       Translation", EMNLP 2015, section 3.1. arXiv:1508.04025

    Examples
    --------
    >>> LuongAttention(d_s=5, d_h=7, score="general")
    LuongAttention(d_s=5, d_h=7, score='general')
    """

    def __init__(
        self,
        d_s: int,
        d_h: int,
        score: str = "dot",
        d_attn: int | None = None,
        *,
        v_scale: float = 4.0,
        normalizer: str | Normalizer = "softmax",
    ) -> None:
        super().__init__(d_s, d_h, normalizer=normalizer)
        _require_score("LuongAttention", d_s, d_h, score, d_attn)
        self.score = score
        self.d_attn = d_attn
        self.v_scale = v_scale
        if score == "general":
            self.W = nn.Parameter(torch.empty(d_s, d_h))
        if d_attn is not None:
            self.W_c = nn.Parameter(torch.empty(d_attn, d_s + d_h))
            self.v_c = nn.Parameter(torch.empty(d_attn))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        if self.score == "general":
            _uniform(self.W, 1 / sqrt(self.d_h))
        if self.d_attn is not None:
            _uniform(self.W_c, 1 / sqrt(self.d_s + self.d_h))
            _uniform(self.v_c, self.v_scale / sqrt(self.d_attn))

    def extra_repr(self) -> str:
        """Return the sizes and the score, for the printed module."""
        sizes = f"d_s={self.d_s}, d_h={self.d_h}, score={self.score!r}"
        return sizes if self.d_attn is None else f"{sizes}, d_attn={self.d_attn}"

    def _project(self, key: Tensor) -> Tensor:
        if self.score == "general":
            return functional.linear(key, self.W)
        # W_c [s; h] = W_s s + W_h h, so the keys' half is projected once.
        return key if self.score == "dot" else functional.linear(key, self.W_c[:, self.d_s :])

    def _additive(self) -> tuple[Tensor, Tensor] | None:
        return (self.W_c[:, : self.d_s], self.v_c) if self.score == "concat" else None

    def _scores(self, query: Tensor, memory: Memory) -> Tensor:
        if self.score == "concat":
            return super()._scores(query, memory)
        return torch.matmul(query, memory.projected.transpose(-1, -2))


def _uniform(parameter: Tensor, bound: float) -> None:
    nn.init.uniform_(parameter, -bound, bound)


def _require_score(call: str, d_s: int, d_h: int, score: str, d_attn: int | None) -> None:
    if score not in ("dot", "general", "concat"):
        raise ConventionError(
            explain(
                f"{call}(): `score` has no such value",
                expected='score="dot", "general" or "concat"',
                got=f"score={score!r}",
                help="Bahdanau's additive score is AdditiveAttention's"
                if score in ("additive", "bahdanau", "mlp")
                else None,
            )
        )
    if (d_attn is None) == (score == "concat"):
        raise ConventionError(
            explain(
                f'{call}(): `d_attn` belongs to score="concat", and only there',
                expected="d_attn=a size" if score == "concat" else "no d_attn",
                got=f"score={score!r}, d_attn={d_attn}",
            )
        )
    if d_attn is not None:
        positive(call, d_attn=d_attn)
    if score == "dot" and d_s != d_h:
        raise ShapeError(
            explain(
                f"{call}(): a dot product needs queries and keys of one size",
                expected=f"d_s = d_h, so d_s={d_h} or d_h={d_s}",
                got=f"d_s={d_s}, d_h={d_h}",
                because="dot multiplies feature with feature and has no parameters",
                help=f'score="general" compares the two sizes with a matrix W ({d_s}, {d_h})',
            )
        )
