"""A masked softmax in few passes, whose gradient is as clean as its result."""

import torch
from torch import Tensor

__all__ = ["masked_softmax"]

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
        its gradient. Half-precision scores are normalised in float32.
    """
    dtype = scores.dtype
    work = scores.float() if dtype in _HALF else scores
    if mask is None:
        return torch.softmax(work, -1).to(dtype)
    forbidden = ~mask
    # The lowest finite number, not -inf: a row of -inf would be NaN, forward and backward.
    # It gives such a row equal weights, which the second fill takes away again.
    work = work.masked_fill(forbidden, torch.finfo(work.dtype).min)
    return torch.softmax(work, -1).masked_fill(forbidden, 0.0).to(dtype)
