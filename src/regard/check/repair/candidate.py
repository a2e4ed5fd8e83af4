"""One way to change a text: spans replaced by other texts, the rest kept as it is written."""

from collections.abc import Iterable
from dataclasses import dataclass

from regard.check.finding import Edit

__all__ = ["Candidate", "Span", "as_edits", "patched"]

Span = tuple[int, int, str]
"""Offset where it starts, offset where it ends, and the text to put there."""


@dataclass(frozen=True)
class Candidate:
    """A change that may mend the code.

    ``kind`` is the family that made it; ``cost`` orders candidates: a small change of a place
    that often goes wrong costs about 1, a rewritten expression 2 to 4.
    """

    kind: str
    spans: tuple[Span, ...]
    cost: float


def patched(source: str, spans: Iterable[Span]) -> str:
    """Return the text with every span replaced; spans must not overlap.

    >>> patched("a = b + c", [(4, 5, "x"), (8, 9, "y")])
    'a = x + y'
    """
    for start, end, text in sorted(spans, reverse=True):
        source = source[:start] + text + source[end:]
    return source


def as_edits(source: str, spans: Iterable[Span]) -> tuple[Edit, ...]:
    """Return spans as edits with lines and columns, each cut down to what differs."""
    edits = []
    for start, end, text in sorted(spans):
        head, tail = _common(source[start:end], text)
        first, last = start + head, end - tail
        line, column = _position(source, first)
        end_line, end_column = _position(source, last)
        middle = text[head : len(text) - tail]
        edits.append(Edit(line, column, end_line, end_column, middle))
    return tuple(edits)


def _common(old: str, new: str) -> tuple[int, int]:
    """Length of the common head and tail, whole words only."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while head and _inside_word(old, head) | _inside_word(new, head):
        head -= 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    while tail and _inside_word(old, len(old) - tail) | _inside_word(new, len(new) - tail):
        tail -= 1
    return head, tail


def _inside_word(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return (before.isalnum() or before in "_.") and (after.isalnum() or after in "_.")


def _position(source: str, offset: int) -> tuple[int, int]:
    line = source.count("\n", 0, offset) + 1
    return line, offset - (source.rfind("\n", 0, offset) + 1) + 1
