"""Weights as NumPy reads them, whatever they came as."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import BackendError, explain

__all__ = ["numbers_of"]


def numbers_of(
    weights: Any, call: str, expected: str, *, argument: str = "weights"
) -> NDArray[np.float64]:
    """Return a float64 copy of weights.

    Parameters
    ----------
    weights : array or nested lists
    call, expected, argument : str
        For the error: who asks, what for, and what the argument is called.

    Raises
    ------
    BackendError
        It is no array, or not of real numbers: texts are not read as numbers, and no imaginary
        part is dropped.
    """
    try:
        # Not np.array(weights): it warns of tensors, whose __array__ knows no copying.
        found = np.asarray(weights)
        if found.dtype.kind in "cSUMmV":
            raise TypeError(f"elements of type {found.dtype}")
        return np.asarray(found, dtype=np.float64).copy()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise BackendError(
            explain(
                f"{call}: `{argument}` is no array of numbers",
                expected=f"{expected}, an array or nested lists of equal length",
                got=f"{type(weights).__name__}: {str(error).splitlines()[0]}"[:200],
            )
        ) from error
