"""PyTorch's fused attention, without NaN for a query that may attend nowhere."""

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["safe_attention"]


def safe_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    may: Tensor | None,
    bias: Tensor | None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Attend with PyTorch's fused kernels; a row without a permitted key gives zeros.

    Parameters
    ----------
    query, key, value : (batch, heads, T_dec, d_head), (batch, heads, T_enc, d_head) twice
    may : bool, optional
        True = may attend; broadcasts to (batch, heads, T_dec, T_enc).
    bias : optional
        Added to the scores, finite where attended; broadcasts likewise.
    causal : bool
        Query t may attend keys 0 .. t; only where `may` and `bias` are None, and fastest there.
    dropout : float
        Probability of dropping a weight.
    scale : float, optional
        Multiplies the scores; 1/sqrt(d_head) if left out.

    Returns
    -------
    context : (batch, heads, T_dec, d_head)
        The gradient of a row without a permitted key is zero too, in every PyTorch release.
    """
    mask = lost = None
    if may is not None:
        # Such a row attends everywhere first, of which no kernel makes NaN, and is cleared.
        lost = ~may.any(-1, keepdim=True)
        mask = may | lost
    if bias is not None:
        mask = bias if mask is None else torch.where(mask, bias, float("-inf"))
    if mask is not None:
        mask = mask.expand(*query.shape[:-1], key.shape[-2])
    context = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scale
    )
    return context if lost is None else context.masked_fill(lost, 0.0)
