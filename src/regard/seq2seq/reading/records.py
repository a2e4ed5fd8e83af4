"""The records of a file, whatever its format."""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import InputError, explain
from regard.seq2seq.reading.columns import FORMATS, Columns
from regard.seq2seq.reading.fault import Fault
from regard.seq2seq.reading.objects import object_records
from regard.seq2seq.reading.record import Record
from regard.seq2seq.reading.table import table_records
from regard.seq2seq.reading.text import open_bytes, text_lines

if TYPE_CHECKING:
    import hashlib

__all__ = ["FORMS", "format_of", "read_records"]

FORMS = {
    "tsv": "source<TAB>target",
    "tsv-quoted": "source<TAB>target",
    "csv": "source,target",
    "csv-semicolon": "source;target",
    "jsonl": '{"source": text, "target": text}',
}
"""What a line of each format looks like, for messages."""

_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


def format_of(
    path: Path, file_format: str | None = None, columns: Columns | None = None
) -> str:
    """Return the format of a file: the one that is given, else what its name says.

    ``.csv`` is CSV with commas, ``.jsonl``, ``.ndjson`` and ``.json`` are JSONL, each also
    with ``.gz`` behind; every other name is tab-separated text.

    Parameters
    ----------
    path : Path
    file_format : str, optional
        One of :data:`FORMATS`.
    columns : Columns, optional
        Which have to go with the format.

    Raises
    ------
    InputError
        There is no such format, or the columns do not go with it.
    """
    if file_format is not None and file_format not in FORMATS:
        raise InputError(
            explain(
                "`file_format` is unknown",
                expected=" or ".join(FORMATS),
                got=repr(file_format),
            )
        )
    inner = path.with_suffix("") if path.suffix == ".gz" else path
    found = file_format or _SUFFIXES.get(inner.suffix.lower(), "tsv")
    if found == "jsonl" and columns is not None:
        roles = ("source", "target", "features")
        every = [one for role in roles for one in columns.of(role, keys=True)]
        numbers = [one for one in every if isinstance(one, int)]
        if numbers or columns.header is not None:
            raise InputError(
                explain(
                    f"{path}: the columns do not go with JSONL",
                    expected="keys of the objects, and no word about a header",
                    got=f"column {numbers[0]}" if numbers else f"header={columns.header}",
                    help="name the keys, or leave the columns out",
                )
            )
    return found


def read_records(
    path: Path,
    *,
    columns: Columns | None = None,
    file_format: str | None = None,
    digest: "hashlib._Hash | None" = None,
) -> Generator[Record | Fault, None, None]:
    """Yield the records of a file, and what is wrong with lines that are none.

    Parameters
    ----------
    path : Path
        Plain, or compressed if the name ends in ``.gz``.
    columns : Columns, optional
    file_format : str, optional
        By default as :func:`format_of` reads the name.
    digest : hash, optional
        Is fed the bytes, decompressed.

    Raises
    ------
    InputError
        The file cannot be opened, or the options contradict each other.
    """
    columns = Columns() if columns is None else columns
    found = format_of(path, file_format, columns)
    with open_bytes(path, expected=f"a file of {FORMS[found]} lines") as stream:
        lines = text_lines(stream, digest)
        if found == "jsonl":
            yield from object_records(lines, columns)
        else:
            yield from table_records(lines, columns, found)
