r"""One step of any decoder with other weights than its own.

Every decoder forms its weights and reads the values with them in one go, and that is good: no
caller can hand over the wrong ones. To ask what it would have written with other weights, the
*values* are changed instead. Where all values are the same vector :math:`c'`, weights that sum
to 1 read :math:`c'`, so that values which are all

.. math:: c' = \sum_i \alpha'_i h_i

make the decoder go on as if it had looked with :math:`\alpha'`. Its keys, and so its own
weights and all that it carries to the next step, stay what they were.
"""

from dataclasses import replace

import torch
from torch import Tensor

from regard.errors import ConventionError, ShapeError, explain
from regard.nn.memory import Memory

__all__ = ["reading"]


def reading(memory: Memory, own: Tensor, other: Tensor) -> Memory:
    """Return the memory with which a decoder's next step reads what other weights read.

    Parameters
    ----------
    memory : Memory
        What the decoder's ``prepare`` returned.
    own : (batch, T_enc)
        The weights of that step with `memory` itself.
    other : (batch, T_enc)
        The weights to read with; any numbers.

    Returns
    -------
    altered : Memory
        For that one step. Where `own` is all zero the step reads nothing, and goes on so.

    Raises
    ------
    ShapeError
        The three do not fit.
    ConventionError
        The memory has more axes than a decoder's.
    """
    if memory.value.ndim != 3:
        raise ConventionError(
            explain(
                "reading(): `memory` is no decoder's",
                expected="values (batch, T_enc, d_v)",
                got=f"values {tuple(memory.value.shape)}",
            )
        )
    shape = tuple(memory.value.shape[:2])
    for name, weights in (("own", own), ("other", other)):
        if tuple(weights.shape) != shape:
            raise ShapeError(
                explain(
                    f"reading(): `{name}` does not fit `memory`",
                    expected=f"{name} (batch={shape[0]}, T_enc={shape[1]})",
                    got=f"{name} {tuple(weights.shape)}",
                )
            )
    value = memory.value
    context = torch.bmm(other.to(value.dtype).unsqueeze(1), value)
    # Local and monotonic attention have rows that sum to less than 1.
    mass = own.to(value.dtype).sum(-1)[:, None, None]
    same = torch.where(mass > 0, context / mass, context)
    return replace(memory, value=same.expand_as(value).contiguous())
