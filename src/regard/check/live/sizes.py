"""Names of sizes in the user's own run: declared, or those of variables that hold them."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

from regard.check.axes_carried import UNKNOWN
from regard.check.live.frames import locals_of

__all__ = ["SizeNames", "names_of_sizes"]

# Variables that hold sizes are called so; an epoch, a seed or an index that happens to be
# equal to a size names no axis.
_WORDS = re.compile(
    r"(?:^|_)(?:batch|bs|bsz|size|len|length|lens|time|times|steps?|heads?|dims?|hidden|width"
    r"|height|embed|emb|vocab|channels?|feat|features|units|layers|beam|src|tgt|src_len"
    r"|tgt_len|seq|seqlen|nhead|nheads|keys|queries|window|chunk|groups|kv)(?:_|$)"
    r"|^(?:d|n|num|t|l|s|b|h|c|e|k|q|v)(?:_\w+|\d)?$|^(?:d|n)(?:model|head|k|v|q|in|out)$",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"seed|epoch|index|idx|iter|lr|rank|device|version|step_|^step$|count|log|print", re.I
)
_SMALLEST = 2


class SizeNames:
    """Which name a size has.

    Parameters
    ----------
    declared : mapping of str to int
        What the user said; goes before everything.
    found : iterable of (str, int)
        What variables hold, the nearest first.
    """

    def __init__(
        self, declared: Mapping[str, int], found: Iterable[tuple[str, int]] = ()
    ) -> None:
        self._sizes: dict[str, int] = dict(declared)
        self._of: dict[int, list[str]] = {}
        self._guessed: set[str] = set()
        for name, size in declared.items():
            self._of.setdefault(size, []).append(name)
        told = set(self._of)
        for name, size in found:
            if size in told or size < _SMALLEST or name in self._sizes:
                continue
            self._sizes[name] = size
            self._guessed.add(name)
            self._of.setdefault(size, []).append(name)

    def of(self, size: int) -> str:
        """Return the name of a size; two of equal right as ``d_s/d_h``; ``?`` for none."""
        if size == 1:
            return "1"
        if size in self._of:
            return "/".join(self._of[size][:2])
        made = {text for text, n in self._products() if n == size}
        return made.pop() if len(made) == 1 else UNKNOWN

    def size(self, name: str) -> int | None:
        """Return the size of a name, None where it has none."""
        return self._sizes.get(name)

    def guessed(self, name: str) -> bool:
        """Whether a name is that of a variable rather than declared."""
        return any(part in self._guessed for part in re.split(r"[*/+]", name))

    def _products(self) -> Iterator[tuple[str, int]]:
        single = [(names[0], size) for size, names in self._of.items()][:16]
        yield from ((f"2*{a}", 2 * n) for a, n in single)
        for (a, n), (b, m) in itertools.combinations(single, 2):
            yield f"{a}*{b}", n * m


def names_of_sizes(
    frames: Iterable[FrameType], declared: Mapping[str, int] | None = None
) -> SizeNames:
    """Read names of sizes off the variables, and attributes of ``self``, of some frames.

    Parameters
    ----------
    frames : iterable of frame
        The innermost first.
    declared : mapping of str to int, optional
        What the user said.
    """
    return SizeNames(declared or {}, _held(frames))


def _held(frames: Iterable[FrameType]) -> Iterator[tuple[str, int]]:
    seen: set[int] = set()
    for depth, frame in enumerate(frames):
        variables = locals_of(frame)
        for name, value in variables.items():
            # `b, t, d = x.shape` names axes where it stands; further out, `b` is anything.
            told = depth == 0 or len(name) > 1 or name.isupper()
            if told and _is_size(value) and _names_a_size(name):
                yield name, value
        for name, value in variables.items():
            own = getattr(value, "__dict__", None)
            if not isinstance(own, dict) or id(value) in seen or hasattr(value, "shape"):
                continue
            if name != "self" and not re.search(r"config|cfg|args|hparams|model|opt", name):
                continue
            seen.add(id(value))
            yield from (
                (key, one) for key, one in own.items() if _is_size(one) and _names_a_size(key)
            )


def _is_size(value: Any) -> bool:
    return type(value) is int and _SMALLEST <= value < 2**31


def _names_a_size(name: str) -> bool:
    return bool(_WORDS.search(name)) and not _NOT.search(name)
