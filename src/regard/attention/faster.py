"""Where :mod:`regard.kernels` takes over from a plain formula.

The mathematics of this package is complete without kernels and does not import them. A call
that is worth it asks for them by name, the first time it happens; the small calls of a lesson
never do.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from math import prod
from typing import Any

from regard.axes import Array

__all__ = ["additive_scores"]

_KERNELS = "regard.kernels.arrays"
_WORTH_ASKING = 10_000  # pairs times features


def additive_scores(query: Array, key: Array, v: Array) -> Array | None:
    """Return v . tanh(query + key) for every pair from a kernel, or None where there is none.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn)
        Already projected.
    v : (d_attn,)

    Returns
    -------
    scores : (*batch, T_dec, T_enc), or None
        None for little work, under ``torch.compile``, and wherever the kernels leave a call to
        the plain formula.
    """
    if prod(query.shape) * key.shape[-2] < _WORTH_ASKING or _compiling():
        return None
    return _kernel("additive_scores")(query, key, v)


def _compiling() -> bool:
    # The compiler can trace no import by name; it fuses the plain formula by itself.
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


@functools.cache
def _kernel(name: str) -> Callable[..., Any]:
    return getattr(importlib.import_module(_KERNELS), name)  # type: ignore[no-any-return]
