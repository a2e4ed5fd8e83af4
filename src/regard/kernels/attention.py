"""Additive attention of many queries: scores, softmax and context, on the path that fits.

The native library does all three in one pass (:mod:`regard.kernels.attend_op`). Everywhere else
they are the scores of :mod:`regard.kernels.additive`, a softmax and a product; the numbers are
the same to rounding.
"""

import torch
from torch import Tensor

from regard.kernels import attend_op, torch_op
from regard.kernels.additive import additive_scores
from regard.kernels.choose import additive_path
from regard.kernels.prepared import PreparedKeys
from regard.kernels.softmax import both, masked_softmax
from regard.kernels.transforms import by_hand

__all__ = ["additive_attention", "goes_native"]


def additive_attention(
    query: Tensor,
    key: Tensor,
    v: Tensor,
    value: Tensor,
    *,
    keys: PreparedKeys | None = None,
    key_mask: Tensor | None = None,
    mask: Tensor | None = None,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    r"""Attend with weights softmax(v . tanh(query + key)).

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn)
        Already projected.
    v : (d_attn,)
    value : (*batch, T_enc, d_v)
        Finite also where nothing may be attended.
    keys : PreparedKeys, optional
        What :func:`~regard.kernels.prepared.prepare` made of `key`, to save making it again.
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended.
    mask : (*batch, T_dec, T_enc), bool, optional
        True = may attend; holds together with `key_mask`.
    need_weights : bool
        Whether to return the weights.

    Returns
    -------
    context : (*batch, T_dec, d_v)
        Zero for a query that may attend nowhere.
    weights : (*batch, T_dec, T_enc) or None

    Notes
    -----
    Once differentiable everywhere; twice on the paths of
    :func:`~regard.kernels.additive.additive_scores` that are.
    """
    if goes_native(query.numel() * key.shape[-2], query, key, v, value):
        return attend_op.additive_attention(
            query, key, v, value, key_mask=key_mask, mask=mask, need_weights=need_weights
        )
    scores = additive_scores(query, key, v, keys=keys, key_mask=key_mask)
    weights = masked_softmax(scores, both(key_mask, mask))
    # Under autocast the two can differ in type here, and only here.
    context = torch.matmul(weights.to(value.dtype), value)
    return context, weights if need_weights else None


def goes_native(work: int, *given: Tensor, prepared: bool = False) -> bool:
    """Return whether the native library can and should take these tensors, here and now.

    Parameters
    ----------
    work : int
        Pairs times d_attn.
    *given : Tensor
        All that is read; autocast would have some of it in another type.
    prepared : bool
        Whether it is a step on prepared keys.
    """
    return (
        torch_op.takes(*given)
        and by_hand(given[0].dtype)
        and not torch.is_autocast_enabled("cpu")
        and additive_path(work, suits_native=True, prepared=prepared) == "native"
    )
