"""Pairs of texts: reading them from a file, and splitting them.

One pair a line, ``source<TAB>target``, UTF-8, plain or gzip (a name that ends in ``.gz``).
Several lines with one source give it several references. There is no quoting and no header;
lines that are entirely empty are passed over. A byte order mark and Windows line ends are
dropped. Everything else that is odd is refused, with the file and the line.
"""

import gzip
import hashlib
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from regard.errors import InputError, explain
from regard.files import unreadable
from regard.seq2seq.vocab import normalise

__all__ = ["LONGEST_LINE", "Pairs", "decoded", "read_pairs"]

LONGEST_LINE = 100_000
"""Bytes a line may have. Longer ones are a file of another kind, or a lost line end."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of source and target texts, in the order of their file.

    Parameters
    ----------
    items : tuple of (source, target)
        A source that stands in several pairs has several references.
    name : str
        Where they come from, for messages.
    sha256 : str
        Of the file's bytes (uncompressed), so that a model can say what it was made from.
    """

    items: tuple[tuple[str, str], ...]
    name: str = "pairs"
    sha256: str = ""

    def __len__(self) -> int:
        """Count the pairs, not the sources."""
        return len(self.items)

    def references(self) -> dict[str, tuple[str, ...]]:
        """Return every source, once, with its different targets."""
        found: dict[str, dict[str, None]] = {}
        for source, target in self.items:
            found.setdefault(source, {})[target] = None
        return {source: tuple(targets) for source, targets in found.items()}

    def split(self, held_out: int, *, seed: int = 0) -> tuple["Pairs", "Pairs"]:
        """Hold out sources: no source is on both sides.

        Parameters
        ----------
        held_out : int
            Number of sources, not of pairs.
        seed : int
            Decides which; the order of the lines does not.

        Returns
        -------
        kept, held : Pairs
            Both in the original order.

        Raises
        ------
        InputError
            Nothing would be left on one of the sides.
        """
        sources = sorted({source for source, _ in self.items})
        if not 0 < held_out < len(sources):
            raise InputError(
                explain(
                    f"{self.name}: cannot hold out {held_out} of {len(sources)} sources",
                    expected=f"from 1 to {len(sources) - 1}"
                    if len(sources) > 1
                    else "more data",
                    got=f"{held_out} to hold out, {len(sources)} different sources",
                )
            )
        chosen = set(random.Random(f"split {seed}").sample(sources, held_out))
        kept = tuple(item for item in self.items if item[0] not in chosen)
        held = tuple(item for item in self.items if item[0] in chosen)
        return Pairs(kept, self.name, self.sha256), Pairs(held, self.name, self.sha256)


def read_pairs(path: str | Path, *, nfc: bool = True) -> Pairs:
    """Read a file of pairs.

    Parameters
    ----------
    path : str or Path
        Tab-separated, plain or ``.gz``.
    nfc : bool
        Bring both sides to Unicode normalisation form C, so that two spellings of one letter
        make one source.

    Raises
    ------
    InputError
        The file cannot be read, or one of its lines is no pair; the text names the line.
    """
    path = Path(path)
    digest = hashlib.sha256()
    try:
        with _open(path) as stream:
            items = list(_pairs(stream, str(path), digest))
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(
            explain(
                f"{path}: the compressed file is damaged or cut short",
                expected="a whole gzip file",
                got=str(error),
                help="copy it again, or decompress it and give the plain file",
            )
        ) from error
    except OSError as error:
        raise InputError(
            unreadable(
                path,
                error,
                expected="a file of source<TAB>target lines",
                missing="check the path, or write the file first",
            )
        ) from error
    if not items:
        raise InputError(
            explain(
                f"{path}: there is no pair in the file",
                expected="lines of source<TAB>target",
                got="an empty file",
                help="write one pair a line, with one tab between source and target",
            )
        )
    if nfc:
        items = [(normalise(source), normalise(target)) for source, target in items]
    return Pairs(tuple(items), str(path), digest.hexdigest())


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


def _pairs(stream: IO[bytes], name: str, digest: "hashlib._Hash") -> Iterator[tuple[str, str]]:
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        digest.update(line)
        where = f"{name}, line {number}"
        if len(line) > LONGEST_LINE:
            raise InputError(
                explain(
                    f"{where}: the line is too long",
                    expected=f"at most {LONGEST_LINE:,} bytes",
                    got="more than that without a line end",
                    help="check that this is a text file with one pair a line",
                )
            )
        if number == 1:
            line = _without_mark(line, where)
        text = decoded(line, where).removesuffix("\n").removesuffix("\r")
        if text:
            yield _pair(text, where)


def _without_mark(line: bytes, where: str) -> bytes:
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            explain(
                f"{where}: the file is UTF-16",
                expected="UTF-8",
                got=f"the byte order mark {line[:2].hex(' ')}",
                help="save it as UTF-8",
            )
        )
    return line.removeprefix(b"\xef\xbb\xbf")


def decoded(line: bytes, where: str) -> str:
    """Return a line as text; `where` names the line for people.

    Raises
    ------
    InputError
        It is no UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            explain(
                f"{where}: the text is not UTF-8",
                expected="UTF-8",
                got=f"byte 0x{line[error.start]:02x} at byte {error.start} of the line",
                help="save the file as UTF-8",
            )
        ) from error


def _pair(text: str, where: str) -> tuple[str, str]:
    for code, said, remedy in (
        ("\0", "a NUL byte", "check that this is a text file"),
        ("\r", "a carriage return", "end lines with a line feed, or both"),
    ):
        if code in text:
            raise InputError(
                explain(
                    f"{where}: {said} inside the line",
                    expected="source<TAB>target",
                    got=f"{said} at character {text.index(code)}: {_excerpt(text)}",
                    help=remedy,
                )
            )
    fields = text.split("\t")
    if len(fields) != 2:
        count = f"{len(fields)} column" + "s" * (len(fields) > 1)
        remedy = (
            "put one tab between source and target"
            if len(fields) == 1
            else "keep the two columns of the pair, for example with `cut -f1,2`"
        )
        raise InputError(
            explain(
                f"{where}: {count}, not 2",
                expected="source<TAB>target",
                got=_excerpt(text),
                help=remedy,
            )
        )
    for side, field in zip(("source", "target"), fields, strict=True):
        if not field.strip():
            raise InputError(
                explain(
                    f"{where}: the {side} is empty",
                    expected="source<TAB>target, both with at least one symbol",
                    got=_excerpt(text),
                    help="fill the field, or take the line out",
                )
            )
    return fields[0], fields[1]


def _excerpt(text: str, length: int = 60) -> str:
    shown = repr(text[:length])
    return shown + (
        f" and {len(text) - length:,} more characters" if len(text) > length else ""
    )
