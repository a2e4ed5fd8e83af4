"""Sentence pairs of a file, an entry for every line: those without a sentence too.

A file of links has a line for each sentence pair. Where pairs are left out, as a training job
leaves out empty lines, all later links belong to other sentences.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from regard.errors import InputError, explain
from regard.seq2seq.reading.columns import Columns
from regard.seq2seq.reading.fault import Fault
from regard.seq2seq.reading.objects import object_records
from regard.seq2seq.reading.record import Record
from regard.seq2seq.reading.records import FORMS, format_of
from regard.seq2seq.reading.table import table_records
from regard.seq2seq.reading.text import open_bytes, text_lines

__all__ = ["Sentences", "read_parallel"]

_BARS = "|||"


class Sentences(NamedTuple):
    """One entry of a parallel text.

    Attributes
    ----------
    line : int
        Where it stands, counted from 1.
    source, target : str
        Empty, both, where a side is; a source has its features behind a tab.
    """

    line: int
    source: str
    target: str


def read_parallel(
    path: str | Path, *, columns: Columns | None = None, file_format: str | None = None
) -> list[Sentences]:
    """Read a parallel text.

    Parameters
    ----------
    path : path
        As :func:`regard.seq2seq.pairs.read_pairs` takes it; tab-separated text may also be
        ``source ||| target``.
    columns : Columns, optional
        One of them the target: an alignment has no several references.
    file_format : str, optional

    Returns
    -------
    sentences : list of Sentences
        One for each line but a header's; of CSV, where a row may go over several lines, one
        for each row that is not blank.

    Raises
    ------
    InputError
        The file cannot be read, holds nothing, or one of its lines is no pair; the text names
        the line.
    """
    path = Path(path)
    columns = Columns() if columns is None else columns
    found = format_of(path, file_format, columns)
    blank: list[int] = []
    entries: list[Sentences] = []
    with open_bytes(path, expected=f"a file of {FORMS[found]} lines") as stream:
        lines = _watched(text_lines(stream), blank, bars=found == "tsv")
        if found == "jsonl":
            records = object_records(lines, columns)
        else:
            records = table_records(lines, columns, found)
        with closing(records):  # type: ignore[type-var]  # generators, all of them
            for record in records:
                entries.append(_entry(record, path))
    if not found.startswith(("csv", "tsv-quoted")):
        entries += [Sentences(line, "", "") for line in blank]
        entries.sort()
    if not any(entry.source for entry in entries):
        raise InputError(
            explain(
                f"{path}: there is no sentence pair in the file",
                expected=f"lines of {FORMS[found]}, or of source ||| target",
                got=f"{len(entries)} lines with an empty side" if entries else "nothing",
            )
        )
    return entries


def _watched(
    lines: Iterator[tuple[int, str] | Fault], blank: list[int], *, bars: bool
) -> Iterator[tuple[int, str] | Fault]:
    """Pass lines on, writing down the blank ones, which no format takes for a pair."""
    for line in lines:
        if isinstance(line, Fault):
            yield line
            continue
        number, text = line
        if not text.strip():
            blank.append(number)
            continue
        if bars and "\t" not in text and _BARS in text:
            text = "\t".join(part.strip() for part in text.split(_BARS))
        yield number, text


def _entry(record: Record | Fault, path: Path) -> Sentences:
    if isinstance(record, Fault):
        if record.code in ("empty-source", "empty-target"):
            return Sentences(record.line, "", "")
        raise record.error(str(path))
    if len(record.targets) != 1:
        raise InputError(
            explain(
                f"{path}, line {record.line}: there are several targets",
                expected="one target for each source",
                got=f"{len(record.targets)} targets",
                help="choose one: --target-column",
            )
        )
    return Sentences(record.line, record.source, record.targets[0])
