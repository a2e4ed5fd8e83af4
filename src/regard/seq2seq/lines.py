"""Lines of a stream, in chunks: all that have arrived, without waiting for more."""

import codecs
from collections.abc import Iterator
from typing import IO

from regard.errors import InputError, explain
from regard.seq2seq.pairs import LONGEST_LINE, decoded
from regard.seq2seq.reading.text import too_many_marks

__all__ = ["read_lines"]

_CHUNK = 1 << 16  # bytes read at once; a pipe holds as much


def read_lines(stream: IO[bytes], name: str) -> Iterator[list[str]]:
    """Yield the lines of a stream, as many at a time as are there.

    A line that someone types or another program sends is yielded at once; a file comes in
    chunks, which is faster to answer.

    Parameters
    ----------
    stream : binary file
        UTF-8. A byte order mark and Windows line ends are dropped.
    name : str
        For messages.

    Raises
    ------
    InputError
        A line is no UTF-8, has a NUL byte, is too long or no writing; the lines before it were
        yielded.
    """
    read = getattr(stream, "read1", stream.read)
    rest = b""
    number = 0
    while True:
        data = read(_CHUNK)
        *whole, rest = (rest + data).split(b"\n")
        if not data and rest:
            whole, rest = [rest], b""
        lines: list[str] = []
        try:
            for line in whole:
                number += 1
                lines.append(_text(line, number, name))
            if len(rest) > LONGEST_LINE:
                _text(rest, number + 1, name)
        except InputError:
            if lines:
                yield lines
            raise
        if lines:
            yield lines
        if not data:
            return


def _text(line: bytes, number: int, name: str) -> str:
    where = f"{name}, line {number}"
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    line = line.removesuffix(b"\r")
    if len(line) > LONGEST_LINE:
        raise InputError(
            explain(
                f"{where}: the line is too long",
                expected=f"at most {LONGEST_LINE:,} bytes",
                got=f"{len(line):,} bytes or more",
            )
        )
    if b"\0" in line:
        raise InputError(
            explain(
                f"{where}: a NUL byte inside the line",
                expected="text",
                got=f"a NUL byte at byte {line.index(0)}",
                help="check that this is a text file",
            )
        )
    text = decoded(line, where)
    if too_many_marks(text):
        raise InputError(
            explain(
                f"{where}: a letter has too many marks on it",
                expected="at most 1,000 combining characters in a row",
                got="more than that",
                help="check that this is text",
            )
        )
    return text
