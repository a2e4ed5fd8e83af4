"""Lines of small text files, plain or compressed, that are read as a whole."""

import gzip
import zlib
from pathlib import Path

from regard.errors import InputError, explain
from regard.files import unreadable

__all__ = ["text_lines"]


def text_lines(path: str | Path, *, of: str = "links") -> list[str]:
    """Read a text file's lines, without their ends; a name in ``.gz`` is decompressed.

    Parameters
    ----------
    path : path
    of : str
        What the lines hold, for messages.

    Raises
    ------
    InputError
        The file cannot be read or decompressed, is empty or no UTF-8; the text names the line.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            explain(
                f"{path}: the compressed file is damaged or cut short",
                expected="a whole gzip file",
                got=str(error) or "an end in the middle",
                help="copy it again, or decompress it and give the plain file",
            )
        ) from error
    except OSError as error:
        raise InputError(
            unreadable(path, error, expected=f"a file of {of}", missing="check the path")
        ) from error
    if data.startswith(b"\x1f\x8b"):
        raise InputError(
            explain(
                f"{path}: the file is compressed",
                expected="text, or a name that ends in .gz",
                got="the first bytes of a gzip file",
                help="give it a name that ends in .gz, or decompress it",
            )
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            explain(
                f"{path}, line {line}: the text is not UTF-8",
                expected="UTF-8",
                got=f"byte 0x{data[error.start]:02x}",
            )
        ) from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(
            explain(f"{path}: the file is empty", expected=f"lines of {of}", got="nothing")
        )
    return [line.removesuffix("\r") for line in lines]
