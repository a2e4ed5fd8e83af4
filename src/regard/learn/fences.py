"""The fenced blocks of a lesson: where each stands and what it is for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Fence", "fences", "pairs"]

_OPEN = re.compile(r"(`{3,})\s*(\S.*)?")
_KNOWN = {"raises", "within", "figure", "file"}


@dataclass(frozen=True)
class Fence:
    """One block.

    Attributes
    ----------
    language : str
        First word after the fence: python, text, console, {interactive}; "" if there is none.
    options : mapping
        Further words: ``{"figure": "dot"}`` for ``figure=dot``, ``{"raises": ""}`` for a word
        alone. For directives, ``{"": rest of the line}``.
    body : str
        Ends with a newline unless it is empty.
    first, last : int
        Lines of the two fences in the text, counted from 0.
    """

    language: str
    body: str
    first: int
    last: int
    options: Mapping[str, str] = field(default_factory=dict)


def fences(text: str) -> list[Fence]:
    """Return the blocks in their order.

    Raises
    ------
    ValueError
        A block has no end, or a Python block an unknown word after its fence.
    """
    lines = text.splitlines()
    found = []
    at = 0
    while at < len(lines):
        opened = _OPEN.fullmatch(lines[at])
        if opened is None:
            at += 1
            continue
        first, mark, info = at, opened[1], opened[2] or ""
        at += 1
        while at < len(lines) and lines[at] != mark:
            at += 1
        if at == len(lines):
            raise ValueError(f"the block of line {first + 1} has no end")
        body = "".join(line + "\n" for line in lines[first + 1 : at])
        language, options = _read(info, first)
        found.append(Fence(language, body, first, at, options))
        at += 1
    return found


def pairs(text: str) -> list[tuple[Fence, Fence | None]]:
    """Return the blocks that run, each with the ``text`` block of its output, if any.

    An output follows its block after blank lines alone.
    """
    lines = text.splitlines()
    blocks = fences(text)
    found: list[tuple[Fence, Fence | None]] = []
    for place, block in enumerate(blocks):
        if block.language not in {"python", "console"}:
            continue
        after = blocks[place + 1] if place + 1 < len(blocks) else None
        follows = (
            after is not None
            and block.language == "python"
            and after.language == "text"
            and not any(line.strip() for line in lines[block.last + 1 : after.first])
        )
        found.append((block, after if follows else None))
    return found


def _read(info: str, line: int) -> tuple[str, dict[str, str]]:
    language, _, rest = info.partition(" ")
    if language.startswith("{"):
        return language, {"": rest.strip()}
    options = dict((word.partition("=")[::2]) for word in rest.split())
    if language == "python" and set(options) - _KNOWN:
        raise ValueError(f"line {line + 1}: {info!r} has words that no block knows")
    return language, options
