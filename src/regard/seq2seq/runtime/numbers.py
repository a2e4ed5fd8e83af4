"""How weights are stored: float32 as they are, float16, or int8 with a scale a row.

``int8`` is symmetric and of the weights alone: each row of a matrix, which makes one output or
is the embedding of one symbol, is rounded to 127 steps of its largest number, and their size
stands beside it in float32. Vectors, as biases are, stay float32. Whatever is stored, all is
computed in float32.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError, explain
from regard.seq2seq.runtime.cells import Floats

__all__ = ["NUMBERS", "stored", "unstored"]

NUMBERS = ("float32", "float16", "int8")

_SCALE = " scale"  # behind a name: no weight has a space in its own
_HIGHEST_HALF = 65504.0


def stored(weights: Mapping[str, Floats], numbers: str) -> dict[str, NDArray[np.generic]]:
    """Return what is written.

    Parameters
    ----------
    weights : mapping
    numbers : {"float32", "float16", "int8"}

    Raises
    ------
    InputError
        A weight is beyond what ``float16`` holds.
    """
    found: dict[str, NDArray[np.generic]] = {}
    for name, value in weights.items():
        if numbers == "int8" and value.ndim >= 2:
            scale = np.abs(value).max(-1, keepdims=True) / np.float32(127)
            steps = value / np.where(scale > 0, scale, np.float32(1))
            found[name] = np.rint(steps).astype(np.int8)
            found[name + _SCALE] = scale.astype(np.float32)
        elif numbers == "float16":
            highest = float(np.abs(value).max(initial=0.0))
            if highest > _HIGHEST_HALF:
                raise InputError(
                    explain(
                        f"float16 cannot hold the weights `{name}`",
                        expected=f"numbers up to {_HIGHEST_HALF:g}",
                        got=f"{highest:g}",
                        help="export as float32 or int8",
                    )
                )
            found[name] = value.astype(np.float16)
        else:
            found[name] = value
    return found


def unstored(arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, Floats]:
    """Return the weights in float32, of what :func:`stored` returned."""
    found = {}
    for name, value in arrays.items():
        if not name.endswith(_SCALE):
            weight = value.astype(np.float32)
            scale = arrays.get(name + _SCALE)
            found[name] = weight if scale is None else weight * scale.astype(np.float32)
    return found
