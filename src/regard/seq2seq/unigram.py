"""Cutting text with a trained unigram model, without the library that trained it.

The most probable sequence of pieces is found by dynamic programming, as sentencepiece's own
``EncodeOptimized`` does: the same sums in the same number formats, and of equal sums the one
found first, so the pieces are the same ones.
"""

import struct
from collections.abc import Iterator

__all__ = ["Unigram"]

_UNKNOWN_PENALTY = 10.0
_MOST = 1e6  # a logarithm of a probability is far smaller
_NORMAL, _UNKNOWN = 1, 2  # types of pieces


class Unigram:
    """A unigram model, read from sentencepiece's file format.

    Parameters
    ----------
    data : bytes
        A serialised ``ModelProto``: field 1, repeated, are the pieces, each a text (1), a
        score (2) and a type (3).

    Raises
    ------
    ValueError
        These are no such bytes, or they have no piece.
    """

    def __init__(self, data: bytes) -> None:
        self.pieces: list[str] = []
        self._scores: dict[str, float] = {}
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                self._add(dict(_fields(value)))
        if not self._scores:
            raise ValueError("a model without pieces")
        self._longest = max(map(len, self._scores))
        self._unknown = _single(min(self._scores.values()) - _UNKNOWN_PENALTY)

    def encode(self, text: str) -> list[str]:
        """Cut a text; unknown characters that follow each other make one piece."""
        best: list[float | None] = [0.0] + [None] * len(text)
        starts = [0] * (len(text) + 1)
        known = [True] * (len(text) + 1)

        def offer(start: int, end: int, total: float, is_known: bool) -> None:
            total, before = _single(total), best[end]
            if before is None or total > before:
                best[end], starts[end], known[end] = total, start, is_known

        for start in range(len(text)):
            here = best[start]
            assert here is not None  # every character is a piece, or unknown
            for end in range(start + 1, min(len(text), start + self._longest) + 1):
                score = self._scores.get(text[start:end])
                if score is not None:
                    offer(start, end, here + score, True)
            if text[start] not in self._scores:
                offer(start, start + 1, here + self._unknown, False)
        return _joined(text, starts, known)

    def _add(self, piece: dict[int, int | bytes]) -> None:
        text, score, kind = piece.get(1), piece.get(2, b"\0\0\0\0"), piece.get(3, _NORMAL)
        if not isinstance(text, bytes) or not isinstance(score, bytes) or len(score) != 4:
            raise ValueError("a piece of another kind")
        if kind != _UNKNOWN:
            self.pieces.append(text.decode("utf-8"))
        if kind == _NORMAL:
            (number,) = struct.unpack("<f", score)
            if not abs(number) < _MOST:  # NaN is not
                raise ValueError(f"the score {number}")
            self._scores[self.pieces[-1]] = number


def _joined(text: str, starts: list[int], known: list[bool]) -> list[str]:
    pieces: list[str] = []
    end = len(text)
    behind_is_known = True
    while end > 0:
        piece = text[starts[end] : end]
        if known[end] or behind_is_known:
            pieces.append(piece)
        else:
            pieces[-1] = piece + pieces[-1]
        behind_is_known = known[end]
        end = starts[end]
    return pieces[::-1]


def _single(number: float) -> float:
    """Round to single precision, which the scores and their sums are kept in."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the fields of a protocol buffer."""
    place = 0
    while place < len(data):
        key, place = _integer(data, place)
        kind = key & 7
        if kind == 0:
            number, place = _integer(data, place)
            yield key >> 3, number
            continue
        if kind == 2:
            size, place = _integer(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if place + size > len(data):
            raise ValueError("an end in the middle")
        yield key >> 3, data[place : place + size]
        place += size


def _integer(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
    raise ValueError("an end in the middle")
