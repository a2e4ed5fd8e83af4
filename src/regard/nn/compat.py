r"""``torch.nn.MultiheadAttention`` as PyTorch publishes it, without its NaN.

Constructor, call, polarity of masks, returned weights and state dict are PyTorch's, so one
import is all that changes. What differs:

- A query that may attend nowhere has weights of zero, and the output projection of a zero
  context, where PyTorch's module makes NaN of it and, in the backward pass, of every gradient.
- Asking for weights changes no bit of the output. The context always comes from PyTorch's fused
  attention, which holds no (T_dec, T_enc) array; weights are computed beside it, if asked for.
- Keys that no query may attend are cleared: NaN in padding reaches neither result nor gradient.
- The returned weights are those before dropout.
- Bad input gives one error that names the argument.
"""

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import BackendError, ConventionError, MaskError, ShapeError, explain
from regard.kernels.softmax import masked_softmax
from regard.nn.fused import safe_attention
from regard.nn.memory import clear
from regard.nn.shapes import fit, positive

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    r"""Multi-head attention [1]_ with PyTorch's signature and regard's contract.

    .. math:: O = [c^1; \dots; c^H] W_o^\top + b_o, \quad
       c^n = \mathrm{softmax}(Q^n K^{n\top} / \sqrt{d_{head}} + B) V^n

    Parameters
    ----------
    embed_dim, num_heads : int
        Size of a query and of the result, and number of heads, which must divide it.
    dropout : float
        Probability, 0 to 1, of dropping a weight while training.
    bias : bool
        Whether the projections have biases.
    add_bias_kv : bool
        Whether to append a learned key and value that every query may attend.
    add_zero_attn : bool
        Whether to append a key and a value of zeros that every query may attend.
    kdim, vdim : int, optional
        Sizes of a key and of a value; embed_dim if left out.
    batch_first : bool
        Whether inputs are (batch, T, features); PyTorch's own default is (T, batch, features).
    device, dtype
        Of the parameters.

    Raises
    ------
    ShapeError
        A size is not a positive integer, or `num_heads` does not divide `embed_dim`.
    ConventionError
        `dropout` is no probability.

    Notes
    -----
    ``nn.TransformerEncoderLayer`` in ``eval()`` without gradients reads a module's parameters
    and attends by itself, this module's code unused:
    ``torch.backends.mha.set_fastpath_enabled(False)`` prevents it. PyTorch's fused attention
    has no second derivative: ask for it under ``torch.nn.attention.sdpa_kernel(MATH)``. Nested
    tensors and ``torch.jit.script`` are not supported.

    References
    ----------
    .. [1] Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2.2.
       arXiv:1706.03762

    Examples
    --------
    >>> theirs = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> ours = MultiheadAttention(6, 2, batch_first=True)
    >>> ours.load_state_dict(theirs.state_dict())
    <All keys matched successfully>
    >>> x, padding = torch.randn(1, 3, 6), torch.ones(1, 3, dtype=torch.bool)
    >>> theirs(x, x, x, key_padding_mask=padding)[0].isnan().all().item()
    True
    >>> ours(x, x, x, key_padding_mask=padding)[0].isnan().any().item()
    False
    """

    def __init__(  # noqa: PLR0917 - PyTorch's own signature
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        call, sizes = "MultiheadAttention", {"embed_dim": embed_dim, "num_heads": num_heads}
        given = {"kdim": kdim, "vdim": vdim}
        positive(
            call, **sizes, **{axis: size for axis, size in given.items() if size is not None}
        )
        if embed_dim % num_heads:
            raise ShapeError(
                explain(
                    f"{call}(): `num_heads` does not divide `embed_dim`",
                    expected="embed_dim as a multiple of num_heads",
                    got=f"embed_dim={embed_dim}, num_heads={num_heads}",
                )
            )
        if not 0 <= dropout <= 1:
            raise ConventionError(
                explain(
                    f"{call}(): `dropout` is no probability",
                    expected="0 to 1",
                    got=str(dropout),
                )
            )
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            device,
            dtype,
        )

    def forward(  # noqa: PLR0917 - PyTorch's own signature
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Let every query read the values, in each head for itself.

        Parameters
        ----------
        query, key, value : (T, batch, features), (batch, T, features) or (T, features)
            As `batch_first` says, or without a batch; T is T_dec for queries and T_enc for keys
            and values, features are embed_dim, kdim and vdim.
        key_padding_mask : (batch, T_enc), or (T_enc,) without a batch, bool or float, optional
            **True = ignore**; or floats added to the scores, -inf = ignore.
        need_weights : bool
            Whether to return the weights. The output is the same, bit for bit, either way.
        attn_mask : (T_dec, T_enc) or (batch * num_heads, T_dec, T_enc), bool or float, optional
            **True = ignore**, or floats as above; the heads of one example lie together. It may
            be of another kind than `key_padding_mask`.
        average_attn_weights : bool
            Whether the returned weights are the mean over the heads.
        is_causal : bool
            A hint that `attn_mask` is causal, which it must then come with. The mask itself is
            always what counts.

        Returns
        -------
        output : as `query`
            For a query that may attend nowhere, the output projection of a zero context.
        weights : (batch, T_dec, T_enc), or (batch, num_heads, T_dec, T_enc), or None
            Without a batch axis where `query` has none; T_enc counts the appended keys too.

        Raises
        ------
        ShapeError, MaskError, BackendError
            An argument does not fit the module or the others; raised before any arithmetic.
        ConventionError
            `is_causal` without a mask.
        """
        _require_mask_beside(is_causal, attn_mask)
        if not torch.compiler.is_compiling():
            self._require_fit(query, key, value, padding=key_padding_mask, attn_mask=attn_mask)
        batched = query.ndim == 3
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        may, bias = self._masks(key_padding_mask, attn_mask, len(query))
        appended = (self.bias_k is not None) + self.add_zero_attn
        if may is not None:
            reached = may.any(1).any(-2).expand(key.shape[:-1])
            key, value = clear(key, reached), clear(value, reached)
            if appended:
                may = functional.pad(may, (0, appended), value=True)
            query = clear(query, may.any(1).any(-1).expand(query.shape[:-1]))
        q, k, v = self._by_head(query, key, value)
        if bias is not None:
            bias = functional.pad(bias.to(q.dtype), (0, appended))
        dropout = self.dropout if self.training else 0.0
        context = safe_attention(q, k, v, may, bias, dropout=dropout)
        output = self.out_proj(context.transpose(1, 2).flatten(2))
        weights = None
        if need_weights:
            scores = torch.matmul(q / sqrt(self.head_dim), k.transpose(-1, -2))
            weights = masked_softmax(scores if bias is None else scores + bias, may)
            weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            return output[0], None if weights is None else weights[0]
        return output if self.batch_first else output.transpose(0, 1), weights

    def _masks(
        self, padding: Tensor | None, attn_mask: Tensor | None, batch: int
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return where a query may attend, and what is added; both broadcast to all scores."""
        found = [] if padding is None else [padding[:, None, None, :]]
        if attn_mask is not None:
            rows = (batch, self.num_heads) if attn_mask.ndim == 3 else (1, 1)
            found.append(attn_mask.reshape(*rows, *attn_mask.shape[-2:]))
        may = bias = None
        for mask in found:
            forbidden = mask if mask.dtype == torch.bool else mask == float("-inf")
            may = ~forbidden if may is None else may & ~forbidden
            if mask.dtype != torch.bool:
                shift = mask.masked_fill(forbidden, 0.0)
                bias = shift if bias is None else bias + shift
        return may, bias

    def _by_head(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        W: Any = (
            self.in_proj_weight.chunk(3)
            if self.in_proj_weight is not None
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        b = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, *keys = map(functional.linear, (query, key, value), W, b)
        for n, learned in enumerate((self.bias_k, self.bias_v)):
            # PyTorch's order: the learned one first, zeros last.
            if learned is not None:
                last = learned.to(keys[n].dtype).expand(len(query), 1, -1)
                keys[n] = torch.cat([keys[n], last], 1)
            if self.add_zero_attn:
                keys[n] = functional.pad(keys[n], (0, 0, 0, 1))
        q, k, v = (
            x.reshape(*x.shape[:-1], self.num_heads, self.head_dim).transpose(1, 2)
            for x in (q, *keys)
        )
        return q, k, v

    def _require_fit(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        padding: Tensor | None,
        attn_mask: Tensor | None,
    ) -> None:
        call = "MultiheadAttention"
        if isinstance(query, Tensor) and query.is_nested:
            raise BackendError(
                explain(
                    f"{call}(): `query` is a nested tensor",
                    expected="a padded tensor and `key_padding_mask`",
                    got="a nested tensor",
                )
            )
        one = isinstance(query, Tensor) and query.ndim == 2
        lead = "{}" if one else "batch {}" if self.batch_first else "{} batch"
        fit(
            call,
            {"embed_dim": self.embed_dim, "kdim": self.kdim, "vdim": self.vdim},
            self.out_proj.weight.dtype,
            query=(query, f"float {lead.format('T_dec')} embed_dim"),
            key=(key, f"float {lead.format('T_enc')} kdim"),
            value=(value, f"float {lead.format('T_enc')} vdim"),
        )
        T_dec, T_enc = (x.shape[-2 if one or self.batch_first else 0] for x in (query, key))
        batch = 1 if one else query.shape[0 if self.batch_first else 1]
        rows = batch * self.num_heads
        by_head = f"({'' if one else 'batch * '}num_heads={rows}, T_dec={T_dec}, T_enc={T_enc})"
        _require_mask(
            "key_padding_mask",
            padding,
            [(T_enc,) if one else (batch, T_enc)],
            f"(T_enc={T_enc},)" if one else f"(batch={batch}, T_enc={T_enc})",
        )
        _require_mask(
            "attn_mask",
            attn_mask,
            [(T_dec, T_enc), (rows, T_dec, T_enc)],
            f"(T_dec={T_dec}, T_enc={T_enc}) or {by_head}",
        )


def _require_mask_beside(is_causal: bool, attn_mask: Tensor | None) -> None:
    if is_causal and attn_mask is None:
        raise ConventionError(
            explain(
                "MultiheadAttention(): `is_causal` without `attn_mask`",
                expected="the causal mask as `attn_mask`",
                got="attn_mask=None, is_causal=True",
                because="PyTorch's flag says what a mask is like and makes none",
                help="nn.Transformer.generate_square_subsequent_mask(T) makes it",
            )
        )


def _require_mask(name: str, mask: Any, shapes: list[tuple[int, ...]], stated: str) -> None:
    if mask is None:
        return
    call = "MultiheadAttention"
    kinds = "booleans, True = ignore, or floats that are added, -inf = ignore"
    if not isinstance(mask, Tensor):
        raise BackendError(
            explain(f"{call}(): `{name}` is no tensor", expected=kinds, got=type(mask).__name__)
        )
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise MaskError(
            explain(
                f"{call}(): `{name}` is neither boolean nor floating-point",
                expected=kinds,
                got=f"dtype {mask.dtype}",
                help=f"`{name} != 0` if 1 means ignore, `{name} == 0` if 1 means may attend",
            )
        )
    if tuple(mask.shape) not in shapes:
        raise ShapeError(
            explain(
                f"{call}(): `{name}` does not fit",
                expected=f"{name} {stated}",
                got=f"{name} {tuple(mask.shape)}",
                because="the sizes come from `query`, `key` and the module",
            )
        )
