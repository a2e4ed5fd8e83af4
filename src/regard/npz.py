"""Named arrays out of an ``.npz`` file that may be anything: nothing in it is ever run."""

import io
import struct
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NoArraysError", "arrays_of"]

# What readers of archives and arrays raise on files that were cut, changed, encrypted or packed
# otherwise; NotImplementedError is a RuntimeError.
_BROKEN = (
    *(ArithmeticError, EOFError, KeyError, MemoryError, OSError, RuntimeError),
    *(TypeError, ValueError, struct.error),
    *(tokenize.TokenError, SyntaxError),  # what NumPy's reading of a header lets through
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error),
)


class NoArraysError(ValueError):
    """The bytes are not those of a whole file of arrays; the text says how that showed."""


def arrays_of(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file by their names.

    Raises
    ------
    NoArraysError
        It is damaged, another kind of file, or holds Python objects, which are not unpickled.
    """
    # np.load would take a plain array or a pickle too.
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise NoArraysError("no zip archive, as an .npz file is")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _BROKEN as error:
        if "allow_pickle" in str(error):
            raise NoArraysError("an array of Python objects, which is not unpickled") from error
        raise NoArraysError(str(error) or type(error).__name__) from error
