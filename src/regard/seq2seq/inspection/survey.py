"""One pass over a file: everything that can be said line by line, and little memory.

A pair leaves two hashes, two lengths and a line number behind, 28 bytes; what is compared over
lines or files is worked out from those. Two different texts have the same hash once in about
forty million files of a million lines.
"""

from array import array
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import is_normalized

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError, explain
from regard.seq2seq.inspection.characters import (
    damaged_encoding,
    describe,
    scripts,
    unseen_characters,
)
from regard.seq2seq.inspection.finding import Tally
from regard.seq2seq.inspection.leftovers import leftovers
from regard.seq2seq.reading.columns import Columns
from regard.seq2seq.reading.fault import Fault, excerpt
from regard.seq2seq.reading.records import read_records
from regard.seq2seq.vocab import Vocab, normalise

__all__ = ["Layout", "Side", "Survey", "survey"]


@dataclass(frozen=True)
class Layout:
    """How files are read and cut into symbols.

    Parameters
    ----------
    columns, file_format
        As :func:`~regard.seq2seq.pairs.read_pairs` takes them.
    source_symbols, target_symbols : {"chars", "graphemes", "spaces", "subwords"}
        Of subwords, which training has yet to learn, the characters are looked at.
    normal_form : {"NFC", "NFD", "NFKC", "none"}
    limit : int
        Lines to remember of each kind of finding.
    """

    columns: Columns = field(default_factory=Columns)
    file_format: str | None = None
    source_symbols: str = "chars"
    target_symbols: str = "chars"
    normal_form: str = "NFC"
    limit: int = 10

    def vocab(self, side: str) -> Vocab:
        """Return an empty vocabulary that cuts a side's texts: ``source`` or ``target``."""
        kind = self.source_symbols if side == "source" else self.target_symbols
        kind = "chars" if kind == "subwords" else kind
        features = side == "source" and self.columns.features is not None
        return Vocab((), kind, self.normal_form, features)


class Side:
    """What one side of a file looks like.

    Parameters
    ----------
    vocab : Vocab
        Cuts texts into symbols; empty.
    limit : int
        As in :class:`Layout`.
    known : set of str, optional
        Symbols that training data have; others are counted.
    """

    def __init__(self, vocab: Vocab, limit: int, known: set[str] | None = None) -> None:
        self._form = vocab.normal_form
        self._vocab = replace(vocab, normal_form="none")  # texts come normalised
        self.symbols: set[str] = set()
        self.once: dict[str, int] = {}  # symbols of one line so far, and the line
        self.composed = False  # letters that form D takes apart
        self.with_letters = 0
        self.scripts: dict[str, Tally] = {}
        self.unseen: dict[str, Tally] = {}
        self.tallies: dict[str, Tally] = {}
        self._known = known
        self.limit = limit

    def take(self, text: str, line: int) -> tuple[str, int]:
        """Look at one text, and return it normalised, with its number of symbols."""
        plain = text.partition("\t")[0] if self._vocab.features else text
        self._look_at_spaces(plain, line)
        self._look_at_leftovers(plain, line)
        found = scripts(plain)
        if found:
            self.with_letters += 1
            self._look_at_scripts(plain, found, line)
        if not plain.isascii():
            self._look_at_forms(plain, line)
        text = normalise(text, self._form)
        if not plain.isascii() or not plain.isprintable():
            self._look_at_characters(plain, found, line)
        symbols = self._vocab.split(text)
        self._look_at_symbols(set(symbols), line)
        return text, len(symbols)

    def tally(self, code: str) -> Tally:
        """Return the tally of one kind of finding."""
        return self.tallies.setdefault(code, Tally(self.limit))

    def _look_at_spaces(self, text: str, line: int) -> None:
        if text[0].isspace() or text[-1].isspace():
            self.tally("edge-space").add(line, excerpt(text))
        if "  " in text:
            self.tally("double-space").add(line, excerpt(text))

    def _look_at_leftovers(self, text: str, line: int) -> None:
        code = leftovers(text)
        if code is not None:
            self.tally(code).add(line, excerpt(text))

    def _look_at_scripts(self, text: str, found: set[str], line: int) -> None:
        for script in found:
            if script not in self.scripts:
                self.scripts[script] = Tally(self.limit)
            self.scripts[script].add(line, text)
        if len(found) > 1:
            mixed = [word for word in text.split() if len(scripts(word)) > 1]
            if mixed:
                self.tally("mixed-script").add(line, excerpt(mixed[0]))

    def _look_at_forms(self, text: str, line: int) -> None:
        if not is_normalized("NFC", text):
            code = "form-d" if is_normalized("NFD", text) else "form-mixed"
            self.tally(code).add(line, excerpt(text))
        elif not self.composed:
            self.composed = not is_normalized("NFD", text)

    def _look_at_characters(self, text: str, found: set[str], line: int) -> None:
        odd, spaces = unseen_characters(text, found)
        if odd:
            named = ", ".join(describe(character) for character in sorted(odd))
            self.tally("invisible").add(line, f"{named[:80]} in {excerpt(text)}")
        if spaces:
            named = ", ".join(describe(character) for character in sorted(spaces))
            self.tally("odd-space").add(line, f"{named[:80]} in {excerpt(text)}")
        meant = damaged_encoding(text)
        if meant is not None:
            self.tally("misread").add(line, f"{excerpt(text)}, probably {excerpt(meant)}")

    def _look_at_symbols(self, symbols: set[str], line: int) -> None:
        fresh = symbols - self.symbols
        if fresh:
            # A symbol counts as known to this file when a second line has it.
            for symbol in fresh:
                if self.once.setdefault(symbol, line) != line:
                    del self.once[symbol]
                    self.symbols.add(symbol)
        if self._known is not None and not symbols <= self._known:
            for symbol in symbols - self._known:
                self.unseen.setdefault(symbol, Tally(1)).add(line)

    def every_symbol(self) -> set[str]:
        """Return all symbols that occur."""
        return self.symbols | self.once.keys()


@dataclass
class Survey:
    """What a pass over a file left.

    Parameters
    ----------
    role : {"train", "dev", "test"}
    path : Path
    source, target : Side
    """

    role: str
    path: Path
    source: Side
    target: Side
    faults: dict[str, Tally] = field(default_factory=dict)
    first_fault: dict[str, Fault] = field(default_factory=dict)
    _numbers: "array[int]" = field(default_factory=lambda: array("q"))
    _sizes: "array[int]" = field(default_factory=lambda: array("I"))

    @property
    def hashes(self) -> NDArray[np.int64]:
        """Return ``(pairs, 2)``: of source and target."""
        return np.frombuffer(self._numbers, dtype=np.int64).reshape(-1, 2)

    @property
    def sizes(self) -> NDArray[np.uint32]:
        """Return ``(pairs, 3)``: line, and symbols of source and target."""
        return np.frombuffer(self._sizes, dtype=np.uint32).reshape(-1, 3)

    def add(self, line: int, source: str, targets: tuple[str, ...]) -> None:
        """Take in a record."""
        source, t_enc = self.source.take(source, line)
        for target in targets:
            plain, t_dec = self.target.take(target, line)
            self._numbers.extend((hash(source), hash(plain)))
            self._sizes.extend((line, t_enc, t_dec))

    def refuse(self, fault: Fault, limit: int) -> None:
        """Take in a line that is no record."""
        first = self.first_fault.setdefault(fault.code, fault)
        text = fault.got if fault.what == first.what else f"{fault.what}: {fault.got}"
        self.faults.setdefault(fault.code, Tally(limit)).add(fault.line, text)


def survey(role: str, path: Path, layout: Layout, known: Survey | None = None) -> Survey:
    """Pass over a file.

    Parameters
    ----------
    role : {"train", "dev", "test"}
    path : Path
    layout : Layout
    known : Survey, optional
        Of the training data, whose symbols are known.

    Raises
    ------
    InputError
        Nothing of the file can be read.
    """
    result = Survey(
        role,
        path,
        Side(
            layout.vocab("source"),
            layout.limit,
            None if known is None else known.source.every_symbol(),
        ),
        Side(
            layout.vocab("target"),
            layout.limit,
            None if known is None else known.target.every_symbol(),
        ),
    )
    records = read_records(path, columns=layout.columns, file_format=layout.file_format)
    with closing(records):
        for record in records:
            if not isinstance(record, Fault):
                result.add(*record)
            elif record.fatal and not len(result.sizes):
                raise record.error(str(path))
            else:
                result.refuse(record, layout.limit)
    if not len(result.sizes) and not result.faults:
        raise InputError(
            explain(
                f"{path}: there is no pair in the file",
                expected="at least one pair",
                got="nothing",
                help="write one pair a line",
            )
        )
    return result
