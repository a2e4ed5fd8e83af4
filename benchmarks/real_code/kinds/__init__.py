"""Kinds of attention that ask for more than a sequence of features, a mask and positions.

Each kind is told by what its classes take and how they are built, and knows how to lay a
sequence out for them, what to make beside it, and what to declare. Classes of no kind are asked
by :mod:`real_code.huggingface` alone.
"""

from collections.abc import Sequence

from real_code.kinds import (
    layers,
    neighbours,
    pairs,
    pictures,
    recurrences,
    sampled,
    scenes,
    streams,
    two,
)
from real_code.kinds.base import Asked, Way
from real_code.reading import Said

__all__ = ["ways"]

_KINDS = (recurrences, streams, scenes, neighbours, sampled, two, pairs, layers, pictures)


def ways(said: Said, configs: Sequence[tuple[str, str] | None]) -> list[Way]:
    """Ways to ask a class of one of the kinds; none for any other."""
    asked = Asked(said, [c for c in configs if c is not None])
    return next((found for kind in _KINDS if (found := kind.ways(asked))), [])
