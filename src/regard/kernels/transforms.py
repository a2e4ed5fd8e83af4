"""Where the kernels written by hand may run, and where plain operations must stand in.

A kernel written by hand looks at numbers, writes into buffers and brings its own backward pass.
``torch.compile``, ``torch.jit.trace``, the transforms of ``torch.func`` (vmap, jvp, grad) and
forward differentiation have no rules for that; for plain operations they have all.
"""

import torch
from torch.autograd import forward_ad

__all__ = ["by_hand"]

_KNOWN = (torch.float32, torch.float64)


def by_hand(dtype: torch.dtype) -> bool:
    """Return whether a kernel written by hand may run on numbers of this type, here and now."""
    return (
        dtype in _KNOWN
        and not torch.compiler.is_compiling()
        and torch._C._get_tracing_state() is None
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )
