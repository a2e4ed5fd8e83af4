"""Arrays with the steps in front, as the loops of decoders keep them.

What one step needs then lies together: its address alone goes to the native library, and what
can wait for all steps is computed for all at once.
"""

import torch
from torch import Tensor

from regard.kernels import native
from regard.kernels.prepared import PreparedKeys

__all__ = ["addresses", "gradients_of_scores", "step_major"]


def gradients_of_scores(
    keys: PreparedKeys, key_mask: Tensor | None, v: Tensor, Q: Tensor, dA: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of keys and v from those of all scores, step-major."""
    query, grad = Q.transpose(0, 1).contiguous(), dA.transpose(0, 1).contiguous()
    mask = None if key_mask is None else key_mask.contiguous()
    d_key, d_v = torch.empty_like(keys.key), torch.empty_like(v)
    arrays = (
        query.data_ptr(),
        keys.key.data_ptr(),
        v.data_ptr(),
        None if mask is None else mask.data_ptr(),
        grad.data_ptr(),
        None,
        d_key.data_ptr(),
        d_v.data_ptr(),
    )
    batch, T_dec, d_attn = query.shape
    native.backward(arrays, native.Sizes(batch, T_dec, keys.key.shape[1], d_attn))
    return d_key, d_v


def addresses(array: Tensor) -> list[int]:
    """Return the address of each part along the first axis."""
    first, apart = array.data_ptr(), array.stride(0) * array.element_size()
    return [first + t * apart for t in range(array.shape[0])]


def step_major(grad: Tensor) -> Tensor:
    """Return a gradient (batch, T_dec, n) as (T_dec, batch, n) to add to."""
    # A copy, because the loop adds to it and the caller's gradient is not ours to write to.
    return grad.transpose(0, 1).clone(memory_format=torch.contiguous_format)
