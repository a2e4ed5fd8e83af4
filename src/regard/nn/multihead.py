r"""Multi-head attention over any score, with the parameters of ``torch.nn.MultiheadAttention``.

The names and shapes of the parameters are PyTorch's, so a state dict moves either way and the
outputs agree. What differs is the contract: batch first; masks are boolean and **True = may
attend**; weights come back one matrix a head, never averaged; asking for them changes no
number; a query that may attend nowhere has a context of zero instead of NaN.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.attend import Attended
from regard.attention.masks import corner_of
from regard.attention.normalizers import Normalizer
from regard.errors import ConventionError, ShapeError, explain
from regard.kernels.additive import additive_scores
from regard.nn.loading import require_loadable
from regard.nn.memory import clear, key_mask_of
from regard.nn.normalize import normalize, require_normalizer
from regard.nn.shapes import fit, positive

__all__ = ["MultiHeadAttention"]

_SCORES = ("scaled_dot", "dot", "general", "additive", "concat")
_WITH_D_ATTN = ("additive", "concat")


class MultiHeadAttention(nn.Module):
    r"""Several attentions side by side, each over its own slice of projected features [1]_.

    .. math:: C = [c^1; \dots; c^H] W_o^\top + b_o, \quad
       c^n = \mathrm{attend}(Q^n, K^n, V^n), \quad Q = x W_q^\top + b_q

    Parameters
    ----------
    d_model : int
        Size of a query and of the result; `heads` must divide it.
    heads : int
        Number of heads; each compares d_head = d_model / heads features.
    kdim, vdim : int, optional
        Sizes of a key and of a value; d_model if left out.
    bias : bool
        Whether the projections have biases.
    dropout : float
        Probability, 0 to 1, of dropping a weight while training. The returned weights are those
        before dropout.
    score : {"scaled_dot", "dot", "general", "additive", "concat"}
        How a head compares. ``scaled_dot`` divides by sqrt(d_head) and is the paper's.
    d_attn : int, optional
        For ``additive`` and ``concat``, and required there: size of the space of comparison.
    normalizer : str or callable
        As of :class:`~regard.nn.modules.AdditiveAttention`.

    Attributes
    ----------
    in_proj_weight : (3 d_model, d_model)
        Query, key and value projections under each other, where all three sizes are d_model;
        otherwise None, and ``q_proj_weight (d_model, d_model)``, ``k_proj_weight (d_model,
        kdim)``, ``v_proj_weight (d_model, vdim)`` instead.
    in_proj_bias : (3 d_model,), or None
    out_proj : torch.nn.Linear
    W : (heads, d_head, d_head)
        Of ``general``.
    W_a, U_a, v_a : (heads, d_attn, d_head) twice, (heads, d_attn)
        Of ``additive``.
    W_c, v_c : (heads, d_attn, 2 d_head), (heads, d_attn)
        Of ``concat``, the query's columns first.

    Raises
    ------
    ShapeError
        A size is not a positive integer, or `heads` does not divide d_model.
    ConventionError
        Unknown score or normaliser, `d_attn` missing or given to a score without it, or
        `dropout` outside 0 .. 1.

    References
    ----------
    .. [1] Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2.2.
       arXiv:1706.03762

    Examples
    --------
    >>> theirs = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> ours = MultiHeadAttention(6, 2)
    >>> ours.load_state_dict(theirs.state_dict())
    <All keys matched successfully>
    >>> x = torch.randn(3, 5, 6)
    >>> torch.allclose(ours(x).context, theirs(x, x, x)[0], atol=1e-6)
    True
    >>> ours(x).weights.shape
    torch.Size([3, 2, 5, 5])
    """

    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    W: Tensor
    W_a: Tensor
    U_a: Tensor
    v_a: Tensor
    W_c: Tensor
    v_c: Tensor

    def __init__(
        self,
        d_model: int,
        heads: int,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        score: str = "scaled_dot",
        d_attn: int | None = None,
        normalizer: str | Normalizer = "softmax",
    ) -> None:
        super().__init__()
        kdim, vdim = kdim or d_model, vdim or d_model
        positive("MultiHeadAttention", d_model=d_model, heads=heads, kdim=kdim, vdim=vdim)
        _require_options(d_model, heads, dropout, score, d_attn)
        self.d_model, self.heads, self.d_head = d_model, heads, d_model // heads
        self.kdim, self.vdim = kdim, vdim
        self.dropout, self.score, self.d_attn = dropout, score, d_attn
        self.normalizer = require_normalizer(normalizer)
        packed = kdim == vdim == d_model
        shapes = {
            "in_proj_weight": (3 * d_model, d_model) if packed else None,
            "q_proj_weight": None if packed else (d_model, d_model),
            "k_proj_weight": None if packed else (d_model, kdim),
            "v_proj_weight": None if packed else (d_model, vdim),
            "in_proj_bias": (3 * d_model,) if bias else None,
            **_score_shapes(score, heads, self.d_head, d_attn),
        }
        for name, shape in shapes.items():
            self.register_parameter(
                name, None if shape is None else nn.Parameter(torch.empty(shape))
            )
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew: as PyTorch does, and the score's by their fan-in."""
        for name, parameter in self.named_parameters(recurse=False):
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif name.endswith("proj_weight"):
                nn.init.xavier_uniform_(parameter)
            else:
                # As in the single-head modules: v four times what a linear layer starts with.
                bound = (4.0 if name in ("v_a", "v_c") else 1.0) / sqrt(parameter.shape[-1])
                nn.init.uniform_(parameter, -bound, bound)
        self.out_proj.reset_parameters()
        if self.out_proj.bias is not None:
            nn.init.zeros_(self.out_proj.bias)

    def extra_repr(self) -> str:
        """Return the sizes and the score, for the printed module."""
        sizes = f"d_model={self.d_model}, heads={self.heads}, score={self.score!r}"
        if not self.kdim == self.vdim == self.d_model:
            sizes += f", kdim={self.kdim}, vdim={self.vdim}"
        return sizes if self.d_attn is None else f"{sizes}, d_attn={self.d_attn}"

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        key_lengths: Tensor | None = None,
        causal: bool | str | None = None,
        need_weights: bool = True,
    ) -> Attended:
        """Let every query read the values, in each head for itself.

        Parameters
        ----------
        query : (batch, T_dec, d_model)
        key : (batch, T_enc, kdim), optional
            The queries themselves if left out: self-attention.
        value : (batch, T_enc, vdim), optional
            The keys if left out.
        mask : (batch, T_dec, T_enc) or (batch, heads, T_dec, T_enc), bool, optional
            True where the query may attend; one for all heads, or one a head. The masks of
            PyTorch's module mean the opposite (:func:`regard.attention.masks.from_torch_mha`).
        key_lengths : (batch,), integers, optional
            Number of real keys of each example, 0 to T_enc. In self-attention padding still
            asks: its own rows of the result hold whatever it held.
        causal : bool, "top_left" or "bottom_right", optional
            Forbid the future; with T_dec different from T_enc a corner must be named
            (:func:`regard.attention.masks.causal`). All three restrictions hold together.
        need_weights : bool
            Whether to return the weights. The context is the same, bit for bit, either way.

        Returns
        -------
        attended : Attended
            ``(context, weights)``: context (batch, T_dec, d_model), after the output
            projection, of which a query that may attend nowhere receives the bias alone;
            weights (batch, heads, T_dec, T_enc) or None.

        Raises
        ------
        ShapeError, MaskError, BackendError
            An argument does not fit the module or the others; raised before any arithmetic.
        ConventionError
            A causal mask with two meanings.
        """
        key = query if key is None else key
        value = key if value is None else value
        self._require_fit(query, key, value, mask)
        may = self._permitted(query, key, mask, key_lengths, causal)
        reached = None
        if may is not None:
            # Cleared is what no head may use: a mask by head can leave it to another.
            anyone = may.any(1)
            query = clear(query, anyone.any(-1).expand(query.shape[:-1]))
            reached = anyone.any(-2).expand(key.shape[:-1])
            key, value = clear(key, reached), clear(value, reached)
        q, k, v = (self._split(x) for x in self._projected(query, key, value))
        weights = normalize(self.normalizer, self._scores(q, k, reached), may)
        kept = functional.dropout(weights, self.dropout, self.training)
        context = torch.matmul(kept.to(v.dtype), v)  # (batch, heads, T_dec, d_head)
        joined = self.out_proj(context.transpose(1, 2).flatten(2))
        return Attended(joined, weights if need_weights else None)

    def _require_fit(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> None:
        by_head = isinstance(mask, Tensor) and mask.ndim == 4
        fit(
            "MultiHeadAttention",
            {
                "d_model": self.d_model,
                "kdim": self.kdim,
                "vdim": self.vdim,
                "heads": self.heads,
            },
            self.out_proj.weight.dtype,
            query=(query, "float batch T_dec d_model"),
            key=(key, "float batch T_enc kdim"),
            value=(value, "float batch T_enc vdim"),
            mask=(mask, f"bool batch {'heads ' * by_head}T_dec T_enc | None"),
        )

    def _permitted(
        self,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        key_lengths: Tensor | None,
        causal: bool | str | None,
    ) -> Tensor | None:
        """Return one mask that broadcasts to (batch, heads, T_dec, T_enc), or None."""
        masks = [] if mask is None else [mask if mask.ndim == 4 else mask.unsqueeze(1)]
        real = key_mask_of("MultiHeadAttention", key, key_lengths)
        if real is not None:
            masks.append(real[:, None, None, :])
        if causal is not None and causal is not False:
            T_dec, T_enc = query.shape[1], key.shape[1]
            shift = T_enc - T_dec if corner_of(causal, T_dec, T_enc) == "bottom_right" else 0
            past = torch.ones(T_dec, T_enc, dtype=torch.bool, device=query.device).tril(shift)
            masks.append(past[None, None])
        may = None
        for each in masks:
            may = each if may is None else may & each
        return may

    def _projected(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        W: Sequence[Any] = (
            (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            if self.in_proj_weight is None
            else self.in_proj_weight.chunk(3)
        )
        b = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = map(functional.linear, (query, key, value), W, b)
        return q, k, v

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, self.d_head).transpose(1, 2)

    def _scores(self, q: Tensor, k: Tensor, key_mask: Tensor | None) -> Tensor:
        if self.score == "scaled_dot":
            q = q / sqrt(self.d_head)
        elif self.score == "general":
            k = _by_head(k, self.W)
        elif self.score in _WITH_D_ATTN:
            return self._additive(q, k, key_mask)
        return torch.matmul(q, k.transpose(-1, -2))

    def _additive(self, q: Tensor, k: Tensor, key_mask: Tensor | None) -> Tensor:
        if self.score == "additive":
            W_q, W_k, v = self.W_a, self.U_a, self.v_a
        else:
            # W_c [q; k] = W_q q + W_k k
            W_q, W_k = self.W_c[..., : self.d_head], self.W_c[..., self.d_head :]
            v = self.v_c
        from_query, from_key = _by_head(q, W_q), _by_head(k, W_k)
        by_head = [
            additive_scores(a, b, v[n].to(b.dtype), key_mask=key_mask)
            for n, (a, b) in enumerate(
                zip(from_query.unbind(1), from_key.unbind(1), strict=True)
            )
        ]
        return torch.stack(by_head, 1)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *rest: Any, **options: Any
    ) -> None:
        sizes = {"d_model": self.d_model, "kdim": self.kdim, "vdim": self.vdim}
        require_loadable(state_dict, prefix, **sizes)
        super()._load_from_state_dict(state_dict, prefix, *rest, **options)


def _by_head(x: Tensor, W: Tensor) -> Tensor:
    """Project (batch, heads, T, d_head) with each head's own matrix (heads, d, d_head)."""
    # One linear map a head, not one batched product: a single head is then the single-head
    # module to the last bit.
    each = zip(x.unbind(1), W.unbind(0), strict=True)
    return torch.stack([functional.linear(part, own) for part, own in each], 1)


def _score_shapes(
    score: str, heads: int, d_head: int, d_attn: int | None
) -> dict[str, tuple[int, ...]]:
    if score == "general":
        return {"W": (heads, d_head, d_head)}
    if d_attn is None:
        return {}
    if score == "additive":
        square = (heads, d_attn, d_head)
        return {"W_a": square, "U_a": square, "v_a": (heads, d_attn)}
    return {"W_c": (heads, d_attn, 2 * d_head), "v_c": (heads, d_attn)}


def _require_options(
    d_model: int, heads: int, dropout: float, score: str, d_attn: int | None
) -> None:
    call = "MultiHeadAttention"
    if d_model % heads:
        raise ShapeError(
            explain(
                f"{call}(): `heads` does not divide `d_model`",
                expected="d_model as a multiple of heads",
                got=f"d_model={d_model}, heads={heads}",
                because="every head takes d_head = d_model / heads features",
            )
        )
    if score not in _SCORES:
        raise ConventionError(
            explain(
                f"{call}(): `score` has no such value",
                expected=f"one of {', '.join(_SCORES)}",
                got=f"score={score!r}",
            )
        )
    if (d_attn is None) == (score in _WITH_D_ATTN):
        raise ConventionError(
            explain(
                f"{call}(): `d_attn` belongs to {' and '.join(_WITH_D_ATTN)}, and only there",
                expected="d_attn=a size" if score in _WITH_D_ATTN else "no d_attn",
                got=f"score={score!r}, d_attn={d_attn}",
            )
        )
    if d_attn is not None:
        positive(call, d_attn=d_attn)
    if not 0 <= dropout <= 1:
        raise ConventionError(
            explain(
                f"{call}(): `dropout` is no probability", expected="0 to 1", got=str(dropout)
            )
        )
