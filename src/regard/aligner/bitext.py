"""A corpus as numbers: batches of sentence pairs, and every pair of words that meets in one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.aligner.corpus import Sentence, SentencePairs
from regard.errors import InputError, explain

__all__ = ["LONGEST", "Batch", "Bitext", "Words", "refuse_long"]

LONGEST = 2000
"""Words of a sentence, at most: memory grows with their square."""

_CELLS = 60_000
"""Word pairs of a batch, padding included: enough to keep the processor busy, and some MB."""


class Words:
    """The words of one side in lower case, numbered in the order in which they were met."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, sentence: Sentence) -> list[int]:
        """Return the numbers of a sentence's words; new words get the next ones."""
        found = []
        for word in map(str.lower, sentence):
            number = self._numbers.setdefault(word, len(self.words))
            if number == len(self.words):
                self.words.append(word)
            found.append(number)
        return found


@dataclass(frozen=True)
class Batch:
    """Some sentence pairs of similar length.

    Parameters
    ----------
    places : tuple of int
        Where the pairs stand in the corpus.
    source : (batch, T_enc), int64
        Numbers of words; -1 is padding.
    target : (batch, T_dec), int64
    cells : (batch, T_dec, T_enc), int32
        The number of each word pair; 0 is padding.
    """

    places: tuple[int, ...]
    source: Tensor
    target: Tensor
    cells: Tensor

    def turned(self) -> "Batch":
        """Return the batch with source and target exchanged."""
        return Batch(self.places, self.target, self.source, self.cells.transpose(1, 2))


class Bitext:
    """All sentence pairs of a corpus that have words on both sides, in batches.

    Parameters
    ----------
    pairs : SentencePairs
    source, target : Words
        Get the corpus's new words.

    Raises
    ------
    InputError
        A sentence is longer than :data:`LONGEST`.

    Attributes
    ----------
    batches : tuple of Batch
        From short to long.
    pair_source, pair_target : (word pairs,), int64
        The words of each pair that meets in a sentence pair; the first one is padding.
    """

    def __init__(self, pairs: SentencePairs, source: Words, target: Words) -> None:
        refuse_long(pairs)
        self.source, self.target = source, target
        first = [source.numbers(sentence) for sentence in pairs.source]
        second = [target.numbers(sentence) for sentence in pairs.target]
        raw = []
        for places in _grouped(first, second):
            s = _padded([first[place] for place in places])
            t = _padded([second[place] for place in places])
            raw.append((places, s, t))
        keys = [np.unique(_keys(s, t)) for _, s, t in raw]
        # Padding's key is below all others, so that its number is 0 even where there is none.
        known = np.unique(np.concatenate([np.array([-1]), *keys]))
        batches = []
        for places, s, t in raw:
            cells = np.searchsorted(known, _keys(s, t)).astype(np.int32)
            tensors = (torch.from_numpy(side) for side in (s, t, cells))
            batches.append(Batch(places, *tensors))
        self.batches = tuple(batches)
        real = np.maximum(known, 0)
        self.pair_source = torch.from_numpy(real >> 32)
        self.pair_target = torch.from_numpy(real & 0xFFFFFFFF)

    def frequencies(self) -> tuple[Tensor, Tensor]:
        """Return how often each source and each target word stands in the corpus."""
        return (
            _counted((b.source for b in self.batches), len(self.source)),
            _counted((b.target for b in self.batches), len(self.target)),
        )

    def place_of(self, known: Mapping[str, Tensor]) -> Tensor:
        """Return where each word pair stands in another list of pairs, -1 where it does not.

        Parameters
        ----------
        known : mapping of "source" and "target" to (pairs,) int64
            Sorted by source, then target.
        """
        mine = (self.pair_source << 32) | self.pair_target
        theirs = (known["source"] << 32) | known["target"]
        if not len(theirs):
            return torch.full_like(mine, -1)
        place = torch.searchsorted(theirs, mine).clamp_max(len(theirs) - 1)
        place[theirs[place] != mine] = -1
        place[0] = -1
        return place


def refuse_long(pairs: SentencePairs) -> None:
    """Refuse pairs that memory may not hold: texts, where sentences should stand.

    Raises
    ------
    InputError
        A sentence is longer than :data:`LONGEST`.
    """
    for number, sizes in enumerate(pairs.sizes, 1):
        if max(sizes) > LONGEST:
            raise InputError(
                explain(
                    f"{pairs.name}, sentence pair {number}: a sentence is too long",
                    expected=f"at most {LONGEST} words on each side",
                    got=f"{sizes[0]} and {sizes[1]} words",
                    because="memory grows with the square of the words",
                    help="give a sentence a line; leave the line out, or cut it on both sides",
                )
            )


def _grouped(first: list[list[int]], second: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """Group the places of pairs that are alike in length, the empty ones left out."""
    sizes = {
        place: (len(t), len(s))
        for place, (s, t) in enumerate(zip(first, second, strict=True))
        if s and t
    }
    group: list[int] = []
    longest = 0
    for place in sorted(sizes, key=sizes.__getitem__):
        t, s = sizes[place]  # t never falls
        if group and (len(group) + 1) * max(longest, s) * t > _CELLS:
            yield tuple(group)
            group, longest = [], 0
        group.append(place)
        longest = max(longest, s)
    if group:
        yield tuple(group)


def _padded(sentences: list[list[int]]) -> np.ndarray:
    padded = np.full((len(sentences), max(map(len, sentences))), -1, dtype=np.int64)
    for row, sentence in enumerate(sentences):
        padded[row, : len(sentence)] = sentence
    return padded


def _keys(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return one number for each word pair: (batch, T_dec, T_enc); -1 for padding."""
    s, t = source[:, None, :], target[:, :, None]
    return np.where((s >= 0) & (t >= 0), (s << 32) | t, -1)


def _counted(sides: Iterator[Tensor], words: int) -> Tensor:
    total = torch.zeros(words, dtype=torch.float64)
    for side in sides:
        total += torch.bincount(side[side >= 0], minlength=words)
    return total
