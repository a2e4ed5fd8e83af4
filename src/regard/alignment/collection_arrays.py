"""Reading NumPy's files of weights, as forms that a collection is made of.

Nothing is unpickled, and whatever is wrong with a file is one error that names it.
"""

import io
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import InputError, explain
from regard.npz import NoArraysError, arrays_of

__all__ = ["Numbers", "array_form", "npz_arrays", "own_form"]

# What zipfile and NumPy raise on files that were cut, changed, encrypted or packed otherwise;
# NotImplementedError is a RuntimeError.
_DAMAGED = (
    *(ValueError, TypeError, OverflowError, OSError, EOFError, KeyError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
    # What NumPy's reading of a header lets through, and a shape of more than there is.
    *(tokenize.TokenError, SyntaxError, MemoryError),
)


@dataclass(frozen=True)
class Numbers:
    """An array from a file, which JSON's lists must not be mistaken for."""

    array: Any


def array_form(path: Path, data: bytes) -> dict[str, Any]:
    """Return the form of the one record of an NPY file.

    Raises
    ------
    InputError
        It is no such file, or holds Python objects.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers as Python 2 wrote them
            weights = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except _DAMAGED as error:
        raise _no_numpy(path, "an array of weights, as numpy.save writes it", error) from error
    return own_form(weights, {})


def npz_arrays(path: Path, data: bytes) -> dict[str, Any]:
    """Return the arrays of an NPZ file.

    Raises
    ------
    InputError
        It is no such file, or holds Python objects.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            return arrays_of(data)
    except NoArraysError as error:
        expected = "arrays of numbers and of strings, as numpy.savez writes them"
        raise _no_numpy(path, expected, error) from error


def own_form(weights: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's form; tokens that the arrays have not are called by their place."""
    form: dict[str, Any] = {"weights": Numbers(weights)}
    for axis, side in ((-2, "target"), (-1, "source")):
        tokens = arrays.get(side)
        if tokens is not None:
            form[side] = np.atleast_1d(tokens).tolist()
        else:
            # Of fewer axes there are none: the record says what is wrong.
            count = weights.shape[axis] if weights.ndim >= 2 else 0
            form[side] = [str(place) for place in range(count)]
    return form


def _no_numpy(path: Path, expected: str, error: Exception) -> InputError:
    pickled = "allow_pickle" in str(error)
    return InputError(
        explain(
            f"{path}: this is no {path.suffix[1:].upper()} file of alignments",
            expected=expected,
            got="an array of Python objects, which is not unpickled"
            if pickled
            else str(error)[:200] or type(error).__name__,
            help="numpy.savez('weights.npz', weights=..., source=..., target=...)",
        )
    )
