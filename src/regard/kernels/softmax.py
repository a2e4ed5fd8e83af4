"""A masked softmax in few passes, whose gradient is as clean as its result."""

import math

import torch
from torch import Tensor

from regard.kernels.transforms import by_hand

__all__ = ["both", "masked_softmax"]

_HALF = (torch.float16, torch.bfloat16)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Normalise over the last axis where the mask is True.

    Parameters
    ----------
    scores : (..., T_enc)
        Anything at forbidden positions, NaN and infinity included.
    mask : (..., T_enc), bool, or any shape that broadcasts to it
        True = may attend. None allows everything.

    Returns
    -------
    weights : (..., T_enc)
        Exactly 0 at forbidden positions; a row without a permitted key is all zero, and so is
        its gradient. A score of -inf forbids its key; those of +inf share the weight equally.
        Half-precision scores are normalised in float32.
    """
    work = scores.float() if scores.dtype in _HALF else scores
    forbidden = None if mask is None else ~mask
    if type(work) is Tensor and work.is_cpu and by_hand(work.dtype):
        weights = _softmax(work, forbidden)
        # Infinite scores are rare, and show as NaN here. Clearing them first costs several
        # passes, looking one; elsewhere looking would make an accelerator wait.
        if not math.isnan(weights.detach().sum().item()):
            return weights.to(scores.dtype)
    infinite = work == float("-inf")
    forbidden = infinite if forbidden is None else forbidden | infinite
    work = work.clamp(max=torch.finfo(work.dtype).max)
    return _softmax(work, forbidden).to(scores.dtype)


def both(key_mask: Tensor | None, mask: Tensor | None) -> Tensor | None:
    """Return one mask for keys (*batch, T_enc) and for pairs (*batch, T_dec, T_enc).

    Returns
    -------
    may : (*batch, T_dec, T_enc) or (*batch, 1, T_enc), bool, or None
        True where both allow it.
    """
    if key_mask is None:
        return mask
    return key_mask.unsqueeze(-2) if mask is None else mask & key_mask.unsqueeze(-2)


def _softmax(work: Tensor, forbidden: Tensor | None) -> Tensor:
    if forbidden is None:
        return torch.softmax(work, -1)
    # The lowest finite number, not -inf: a row of -inf would be NaN, forward and backward.
    # It gives such a row equal weights, which the second fill takes away again.
    work = work.masked_fill(forbidden, torch.finfo(work.dtype).min)
    return torch.softmax(work, -1).masked_fill(forbidden, 0.0)
