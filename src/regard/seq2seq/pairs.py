"""Pairs of texts: reading them from a file, and splitting them.

A file is tab-separated text, CSV or JSONL, UTF-8, plain or gzip. In the simplest form a line
is ``source<TAB>target``; which columns count can be said
(:class:`~regard.seq2seq.reading.columns.Columns`). Several lines with one source, several
target columns, or a list of targets in JSON give it several references. With a column of
features a source is ``lemma<TAB>features``, whatever the order of the file's columns.

Tab-separated text has no quoting. Lines that are entirely empty are passed over; a byte order
mark and Windows line ends are dropped. Everything else that is odd is refused, with the file
and the line.
"""

import hashlib
import random
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.reading.columns import Columns
from regard.seq2seq.reading.fault import Fault
from regard.seq2seq.reading.records import FORMS, format_of, read_records
from regard.seq2seq.reading.text import LONGEST_LINE
from regard.seq2seq.vocab import normal_form_of, normalise

__all__ = ["LONGEST_LINE", "Columns", "Pairs", "decoded", "read_pairs"]


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
    features : bool
        Whether a source has its features behind a tab.
    """

    items: tuple[tuple[str, str], ...]
    name: str = "pairs"
    sha256: str = ""
    features: bool = False

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
        return replace(self, items=kept), replace(self, items=held)


def read_pairs(
    path: str | Path,
    *,
    nfc: bool = True,
    normal_form: str | None = None,
    columns: Columns | None = None,
    file_format: str | None = None,
) -> Pairs:
    """Read a file of pairs.

    Parameters
    ----------
    path : str or Path
        Plain or ``.gz``.
    nfc : bool
        Bring both sides to Unicode normalisation form C, so that two spellings of one letter
        make one source; False leaves them as they are.
    normal_form : {"NFC", "NFD", "NFKC", "none"}, optional
        Goes before ``nfc``.
    columns : Columns, optional
        Which columns or keys are source, target and features, and whether there is a header.
        By default there are two columns, and no header.
    file_format : {"tsv", "tsv-quoted", "csv", "csv-semicolon", "jsonl"}, optional
        By default from the name: ``.csv``, ``.jsonl``, ``.ndjson``, ``.json``, each also with
        ``.gz``; every other name is tab-separated text.

    Returns
    -------
    pairs : Pairs
        In the order of the file.

    Raises
    ------
    InputError
        The file cannot be read, or one of its lines is no pair; the text names the line.
    """
    path = Path(path)
    columns = Columns() if columns is None else columns
    form = normal_form_of(nfc, normal_form)
    digest = hashlib.sha256()
    items: list[tuple[str, str]] = []
    records = read_records(path, columns=columns, file_format=file_format, digest=digest)
    with closing(records):  # a fault leaves the file open otherwise
        for record in records:
            if isinstance(record, Fault):
                raise record.error(str(path))
            source = normalise(record.source, form)
            items.extend((source, normalise(target, form)) for target in record.targets)
    if not items:
        line = FORMS[format_of(path, file_format)]
        raise InputError(
            explain(
                f"{path}: there is no pair in the file",
                expected=f"lines of {line}",
                got="nothing",
                help="write one pair a line",
            )
        )
    return Pairs(tuple(items), str(path), digest.hexdigest(), columns.features is not None)


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
