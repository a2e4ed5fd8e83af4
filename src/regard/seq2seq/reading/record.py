"""One record of a file: a source with its references, and what is refused in any format."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from regard.seq2seq.reading.fault import Fault, excerpt

__all__ = ["Record", "empty", "odd"]


class Record(NamedTuple):
    """A source and its targets, as they stand in the file.

    Attributes
    ----------
    line : int
        Where it begins, counted from 1.
    source : str
        With its features behind a tab, if there are any.
    targets : tuple of str
        At least one.
    """

    line: int
    source: str
    targets: tuple[str, ...]


# A text is a line of its own when a model is asked, so it has no line end and no tab.
_ODD = re.compile("[\t\n\r\0\ud800-\udfff]")
_NAMES = {"\t": "a tab", "\n": "a line end", "\r": "a carriage return", "\0": "a NUL"}


def odd(line: int, fields: Iterable[str]) -> Fault | None:
    """Return what is wrong with fields that came from quotes, or None."""
    for field in fields:
        found = _ODD.search(field)
        if found is not None:
            said = _NAMES.get(found[0], "half of a surrogate pair")
            return Fault(
                line,
                "character",
                f"{said} inside a field",
                "text of one line, without tabs",
                f"{said} at character {found.start()}: {excerpt(field)}",
                "put a space in its place",
            )
    return None


def empty(line: int, role: str, shown: str) -> Fault:
    """Return that a part has no text; `shown` is the line."""
    return Fault(
        line,
        f"empty-{role}",
        f"the {role} {'are' if role == 'features' else 'is'} empty",
        "at least one symbol in every part",
        shown,
        "fill the field, or take the line out",
    )
