"""The lines of a file as text, numbered, with those that are no text set apart."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast
from unicodedata import combining

from regard.errors import InputError
from regard.files import unreadable
from regard.seq2seq.reading.fault import Fault, excerpt

if TYPE_CHECKING:
    import hashlib

__all__ = ["LONGEST_LINE", "open_bytes", "text_lines", "too_many_marks"]

LONGEST_LINE = 100_000
"""Bytes a line may have. Longer ones are a file of another kind, or a lost line end."""

_MARKS = 1000
_SKIPPED = 10**8  # bytes in search of a line end; a device may never have one

_MAGIC = {
    b"\xff\xfe": ("UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16", "save it as UTF-8"),
    b"\x1f\x8b": ("gzip", "give it a name that ends in .gz"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "export it as text"),
    b"\xfd7zXZ": ("xz", "decompress it first"),
    b"\x28\xb5\x2f\xfd": ("zstd", "decompress it first"),
}


def open_bytes(path: Path, *, expected: str) -> IO[bytes]:
    """Open a file, decompressed if its name ends in ``.gz``; `expected` is for the error.

    Raises
    ------
    InputError
        There is no such file, or it cannot be read.
    """
    try:
        if path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(path, "rb"))
        return path.open("rb")
    except (OSError, ValueError) as error:  # a NUL in a name is a ValueError
        known = error if isinstance(error, OSError) else OSError(str(error))
        raise InputError(
            unreadable(
                path,
                known,
                expected=expected,
                missing="check the path, or write the file first",
            )
        ) from error


def text_lines(
    stream: IO[bytes], digest: "hashlib._Hash | None" = None
) -> Iterator[tuple[int, str] | Fault]:
    """Yield number and text of every line, or what is wrong with it.

    Parameters
    ----------
    stream : binary file
        UTF-8. A byte order mark and Windows line ends are dropped.
    digest : hash, optional
        Is fed the bytes.
    """
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(LONGEST_LINE + 1)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            yield _damaged(number, str(error))
            return
        except OSError as error:
            yield Fault(
                number,
                "unreadable",
                "the file cannot be read",
                "a readable file",
                error.strerror or str(error),
                "check the disk or the connection",
                fatal=True,
            )
            return
        if not line:
            return
        if digest is not None:
            digest.update(line)
        if number == 1:
            fault = _of_another_kind(line)
            if fault is not None:
                yield fault
                return
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) > LONGEST_LINE:
            yield _too_long(number, _skip(stream, digest))
            continue
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            yield _not_utf8(number, line, error.start)
            continue
        text = text.removesuffix("\n").removesuffix("\r")
        if "\0" in text or "\r" in text:
            yield _control(number, text)
        elif too_many_marks(text):
            yield _marked(number)
        else:
            yield number, text


def too_many_marks(text: str) -> bool:
    """Return whether a letter has more than 1,000 marks on it.

    No writing has; to bring such a text to a normal form takes time with the square of them.
    """
    if len(text) <= _MARKS or text.isascii():
        return False
    run = 0
    for character in text:
        run = run + 1 if combining(character) else 0
        if run > _MARKS:
            return True
    return False


def _skip(stream: IO[bytes], digest: "hashlib._Hash | None") -> bool:
    """Read to the end of the line; False if none comes."""
    skipped = 0
    try:
        while skipped < _SKIPPED:
            part = stream.readline(LONGEST_LINE)
            if digest is not None:
                digest.update(part)
            if not part or part.endswith(b"\n"):
                return True
            skipped += len(part)
    except (OSError, EOFError, zlib.error):
        return True  # the next line tells what it is
    return False


def _of_another_kind(line: bytes) -> Fault | None:
    for magic, (kind, remedy) in _MAGIC.items():
        if line.startswith(magic):
            mark = "the byte order mark" if kind == "UTF-16" else "the first bytes"
            got = f"{mark} {line[: len(magic)].hex(' ')}"
            return Fault(1, "kind", f"the file is {kind}", "UTF-8", got, remedy, fatal=True)
    return None


def _damaged(number: int, got: str) -> Fault:
    return Fault(
        number,
        "damaged",
        "the compressed file is damaged or cut short",
        "a whole gzip file",
        got or "an end in the middle",
        "copy it again, or decompress it and give the plain file",
        fatal=True,
    )


def _too_long(number: int, ends: bool) -> Fault:
    return Fault(
        number,
        "too-long",
        "the line is too long",
        f"at most {LONGEST_LINE:,} bytes",
        "more than that without a line end",
        "check that this is a text file with one pair a line",
        fatal=not ends,
    )


def _not_utf8(number: int, line: bytes, place: int) -> Fault:
    return Fault(
        number,
        "encoding",
        "the text is not UTF-8",
        "UTF-8",
        f"byte 0x{line[place]:02x} at byte {place} of the line",
        "save the file as UTF-8",
    )


def _marked(number: int) -> Fault:
    return Fault(
        number,
        "marks",
        "a letter has too many marks on it",
        f"at most {_MARKS:,} combining characters in a row",
        "more than that",
        "check that this is text; take the line out",
    )


def _control(number: int, text: str) -> Fault:
    code, said, remedy = (
        ("\0", "a NUL byte", "save it as text in UTF-8; UTF-16 has such bytes")
        if "\0" in text
        else ("\r", "a carriage return", "end lines with a line feed, or both")
    )
    return Fault(
        number,
        "nul" if code == "\0" else "carriage-return",
        f"{said} inside the line",
        "text without it",
        f"{said} at character {text.index(code)}: {excerpt(text)}",
        remedy,
    )
