"""A corpus of sentence pairs, as files of text have them."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.alignment.text_lines import text_lines
from regard.errors import InputError, explain

__all__ = ["Sentence", "SentencePairs", "read_pairs"]

Sentence = tuple[str, ...]
"""Words, as the text separates them by white space."""


@dataclass(frozen=True)
class SentencePairs:
    """Sentences and their translations, one pair a line.

    Parameters
    ----------
    source, target : sequence of sequences of str
        As many of each; a sentence may be empty, as lines of real corpora are.
    name : str
        Where they came from, for messages.

    Raises
    ------
    InputError
        There are none, or not as many of one side as of the other.
    """

    source: tuple[Sentence, ...]
    target: tuple[Sentence, ...]
    name: str = "pairs"

    def __init__(
        self,
        source: Iterable[Sequence[str]],
        target: Iterable[Sequence[str]],
        name: str = "pairs",
    ) -> None:
        sides = tuple(tuple(tuple(words) for words in side) for side in (source, target))
        if len(sides[0]) != len(sides[1]) or not sides[0]:
            raise InputError(
                explain(
                    f"{name}: these are no sentence pairs",
                    expected="as many source as target sentences, at least one",
                    got=f"{len(sides[0])} and {len(sides[1])}",
                )
            )
        object.__setattr__(self, "source", sides[0])
        object.__setattr__(self, "target", sides[1])
        object.__setattr__(self, "name", name)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Words on both sides of every pair."""
        return [(len(s), len(t)) for s, t in zip(self.source, self.target, strict=True)]

    @property
    def sha256(self) -> str:
        """Of the words; equal for files that differ in white space only."""
        digest = hashlib.sha256()
        for s, t in zip(self.source, self.target, strict=True):
            digest.update(f"{' '.join(s)}\t{' '.join(t)}\n".encode())
        return digest.hexdigest()


def read_pairs(path: str | Path, target: str | Path | None = None) -> SentencePairs:
    """Read a corpus: one file of pairs, or two files of sentences.

    Parameters
    ----------
    path : path
        UTF-8. A pair a line, ``source<TAB>target`` or ``source ||| target``; with ``target``,
        a source sentence a line.
    target : path, optional
        The target sentences, line by line.

    Returns
    -------
    pairs : SentencePairs
        One a line, empty sides included.

    Raises
    ------
    InputError
        A file cannot be read, a line is no pair, or the two files have not as many lines.
    """
    lines = text_lines(path, of="sentence pairs" if target is None else "sentences")
    if target is not None:
        others = text_lines(target, of="sentences")
        if len(lines) != len(others):
            raise InputError(
                explain(
                    f"{path} and {target}: the files have not as many lines",
                    expected="a sentence a line, its translation in the same line",
                    got=f"{len(lines)} and {len(others)} lines",
                )
            )
        return SentencePairs(map(str.split, lines), map(str.split, others), str(path))
    pairs = [_pair(line, number, path) for number, line in enumerate(lines, 1)]
    return SentencePairs([s for s, _ in pairs], [t for _, t in pairs], str(path))


def _pair(line: str, number: int, path: str | Path) -> tuple[list[str], list[str]]:
    mark = "\t" if "\t" in line else "|||"
    columns = line.split(mark)
    if len(columns) != 2:
        many = len(columns) > 2
        raise InputError(
            explain(
                f"{path}, line {number}: this is no sentence pair",
                expected="source<TAB>target, or source ||| target",
                got=f"{len(columns)} columns: {line[:60]}" if many else line[:80],
                help="`cut -f1,2` keeps the first two columns"
                if many and mark == "\t"
                else None,
            )
        )
    return columns[0].split(), columns[1].split()
