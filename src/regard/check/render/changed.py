"""The lines that a fix takes away and the lines that it puts there."""

import difflib
import re
from collections.abc import Sequence

from regard.check.apply import apply_edits
from regard.check.finding import Edit

__all__ = ["Changed", "changed", "lines_of"]

Changed = tuple[tuple[str, str], ...]
"""Pairs of ``-`` or ``+`` and a line."""


def lines_of(source: str) -> list[str]:
    """Return the lines of a file as Python counts them; other separators end no line."""
    return re.split(r"\r\n|\r|\n", source)


def changed(source: str, edits: Sequence[Edit]) -> Changed:
    r"""Return the lines that differ after some edits, without the indentation they share.

    >>> changed("if x:\n    y = 1\n", [Edit(2, 9, 2, 10, "2")])
    (('-', 'y = 1'), ('+', 'y = 2'))
    """
    try:
        before, after = lines_of(source), lines_of(apply_edits(source, edits))
    except ValueError:
        # The source is not the file that the edits are for: show what is known.
        return tuple(("+", line) for edit in edits for line in lines_of(edit.text))
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    rows: list[tuple[str, str]] = []
    for what, a, b, c, d in matcher.get_opcodes():
        if what != "equal":
            rows += [("-", line) for line in before[a:b]] + [("+", line) for line in after[c:d]]
    shared = min((_indent(line) for _, line in rows if line.strip()), default=0)
    return tuple((sign, line[shared:]) for sign, line in rows)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
