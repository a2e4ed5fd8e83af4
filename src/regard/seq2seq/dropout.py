"""Dropout whose random numbers cost little.

PyTorch draws a number for every element by itself, which on the CPU takes a good part of the
time that a small model trains. Here one number of 64 bits decides about four elements. It comes
from the same generator, so that seeds and resuming hold as they did; which elements a seed
drops is another choice. A probability is met to one part in 65,536.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.nn.shapes import recorded

__all__ = ["Dropout"]

_LANES = 4  # of 16 bits in a number of 64
_VALUES = 1 << 16


class Dropout(nn.Module):
    """As ``torch.nn.Dropout``: in training an element is zero with a probability, else scaled.

    Parameters
    ----------
    p : float
        From 0 to below 1.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: Tensor) -> Tensor:
        """Return what is left of values of any shape."""
        if not self.training or not self.p:
            return values
        if values.device.type != "cpu" or recorded():
            return functional.dropout(values, self.p, True)
        drawn = torch.empty(-(-values.numel() // _LANES), dtype=torch.int64)
        drawn.random_(-(2**63), None)  # all 64 bits
        lanes = drawn.view(torch.int16)[: values.numel()].view(values.shape)
        dropped = min(round(self.p * _VALUES), _VALUES - 1)
        kept = (lanes >= dropped - _VALUES // 2).to(values.dtype)
        return values * kept.mul_(_VALUES / (_VALUES - dropped))

    def extra_repr(self) -> str:
        """Say the probability where the module is printed."""
        return f"p={self.p}"
