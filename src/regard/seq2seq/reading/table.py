"""Pairs from rows with columns: tab-separated text, which has no quoting, and CSV."""

import csv
from collections.abc import Iterator
from typing import Any

from regard.seq2seq.reading.columns import Columns, looks_like_header, places
from regard.seq2seq.reading.fault import Fault, excerpt
from regard.seq2seq.reading.record import Record, empty, odd
from regard.seq2seq.reading.text import LONGEST_LINE

__all__ = ["SEPARATORS", "table_records"]

SEPARATORS = {"tsv": "\t", "tsv-quoted": "\t", "csv": ",", "csv-semicolon": ";"}
"""Between the fields of each format."""

_Lines = Iterator[tuple[int, str] | Fault]
_Rows = Iterator[tuple[int, list[str]] | Fault]
_SHOWN = {"\t": "<TAB>"}


def table_records(
    lines: _Lines, columns: Columns, file_format: str
) -> Iterator[Record | Fault]:
    """Yield the pairs of a table's rows, and what is wrong with those that are none.

    Parameters
    ----------
    lines : iterator
        As :func:`~regard.seq2seq.reading.text.text_lines` yields them.
    columns : Columns
    file_format : {"tsv", "tsv-quoted", "csv", "csv-semicolon"}
    """
    separator = SEPARATORS[file_format]
    quoted = file_format != "tsv"
    rows = _csv(lines, separator) if quoted else _tsv(lines)
    choice: _Choice | None = None
    for row in rows:
        if isinstance(row, Fault):
            yield row
            continue
        number, fields = row
        if choice is None:
            try:
                choice = _Choice(columns, number, fields, separator, quoted=quoted)
            except LookupError as error:
                what, expected, got, remedy = error.args
                yield Fault(number, "columns", what, expected, got, remedy, fatal=True)
                return
            if choice.named:
                continue
            if columns.header is None and choice.in_doubt(fields):
                yield _doubt(number, fields, separator)
                continue
        yield choice.record(number, fields)


def _tsv(lines: _Lines) -> _Rows:
    for line in lines:
        if isinstance(line, Fault):
            yield line
        elif line[1]:
            yield line[0], line[1].split("\t")


def _csv(lines: _Lines, separator: str) -> _Rows:
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=separator, strict=True)
    while True:
        feed.first = feed.size = 0
        try:
            fields = next(reader)
        except StopIteration:
            return
        except _FaultFound as found:
            yield found.fault
        except csv.Error as error:
            yield _not_csv(feed.first, str(error))
        else:
            if fields:
                yield feed.first, fields


class _FaultFound(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class _Feed:
    """Hands lines to the CSV reader, and remembers where its row began."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self.first = 0
        self.size = 0

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if isinstance(line, Fault):
            raise _FaultFound(line)
        number, text = line
        self.first = self.first or number
        self.size += len(text) + 1
        if self.size > LONGEST_LINE and self.first != number:
            raise _FaultFound(_not_csv(self.first, "unexpected end of data"))
        return text + "\n"


class _Choice:
    """What a row must look like, from the first one."""

    def __init__(
        self,
        columns: Columns,
        number: int,
        fields: list[str],
        separator: str,
        *,
        quoted: bool,
    ) -> None:
        self.named = bool(columns.named) or columns.header is True
        self._separator = separator
        self._quoted = quoted
        if columns.chosen:
            self._width, self._because = len(fields), f"as line {number} has"
        else:
            self._width, self._because = 2, ""
            if len(fields) < 2:  # the width tells it better than a missing column
                fields = ["", ""]
        header = [field.strip() for field in fields] if self.named else None
        found = places(columns, header, len(fields))
        (self._source,) = found["source"]
        self._targets, self._features = found["target"], found["features"]
        parts = (self._width, self._source, self._targets, self._features)
        self._plain = not quoted and parts == (2, 0, [1], [])

    def in_doubt(self, fields: list[str]) -> bool:
        """Return whether a first row could be a header."""
        chosen = (self._source, *self._targets, *self._features)
        return len(fields) == self._width and looks_like_header([fields[i] for i in chosen])

    def record(self, number: int, fields: list[str]) -> Record | Fault:
        """Return the pair of a row."""
        if len(fields) != self._width:
            return self._of_another_width(number, fields)
        if self._plain:  # most files; the same as below, faster
            source, target = fields
            if source and target and not (source.isspace() or target.isspace()):
                return Record(number, source, (target,))
        return self._parts(number, fields)

    def _parts(self, number: int, fields: list[str]) -> Record | Fault:
        source = fields[self._source]
        if not source.strip():
            return empty(number, "source", self._shown(fields))
        targets = tuple(t for i in self._targets if (t := fields[i]).strip())
        if not targets:
            return empty(number, "target", self._shown(fields))
        behind = [fields[i] for i in self._features]
        if self._features and not all(feature.strip() for feature in behind):
            return empty(number, "features", self._shown(fields))
        if self._quoted:
            fault = odd(number, (source, *targets, *behind))
            if fault is not None:
                return fault
        if behind:
            source = f"{source}\t{';'.join(behind)}"
        return Record(number, source, targets)

    def _of_another_width(self, number: int, fields: list[str]) -> Fault:
        count = f"{len(fields)} column" + "s" * (len(fields) != 1)
        shown = _SHOWN.get(self._separator, self._separator)
        if self._because:
            expected = f"{self._width} columns, {self._because}"
            remedy = "give every line the same columns, or take the line out"
        else:
            expected = f"source{shown}target"
            remedy = "keep the two columns of the pair, for example with `cut -f1,2`, or "
            remedy += "say which columns they are"
            if len(fields) == 1:
                remedy = _remedy_for_one(fields[0], self._separator)
        return Fault(
            number,
            "columns",
            f"{count}, not {self._width}",
            expected,
            self._shown(fields),
            remedy,
        )

    def _shown(self, fields: list[str]) -> str:
        return excerpt(self._separator.join(fields))


def _remedy_for_one(text: str, separator: str) -> str:
    names = {"\t": "one tab", ",": "one comma", ";": "one semicolon"}
    for format_name, other in SEPARATORS.items():
        if other != separator and text.count(other) == 1:
            return (
                f"put {names[separator]} between source and target, or say that the file is "
                f"{format_name}"
            )
    return f"put {names[separator]} between source and target"


def _doubt(number: int, fields: list[str], separator: str) -> Fault:
    return Fault(
        number,
        "header",
        "this looks like a header, and it was not said whether it is one",
        "a pair",
        excerpt(separator.join(fields)),
        "say header=True (--header) if it names the columns, header=False (--no-header) if "
        "it is a pair",
    )


def _not_csv(number: int, said: str) -> Fault:
    kwargs: dict[str, Any] = {"line": number, "code": "csv"}
    if said == "unexpected end of data":
        return Fault(
            what="a quote that opens here is not closed",
            expected="a closing quote within 100,000 bytes",
            got="the end of the file, or too much text",
            remedy='close it; a quote inside a quoted field is written ""',
            **kwargs,
        )
    return Fault(
        what="this is no CSV",
        expected='fields, or "quoted fields" with "" for a quote inside',
        got=said,
        remedy="write the file again with a CSV library, or save it as tab-separated text",
        **kwargs,
    )
