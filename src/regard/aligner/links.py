"""From what both directions believe to links: one table of methods."""

from collections.abc import Callable
from typing import Any

from regard.aligner.model import Believed
from regard.alignment.extract import agreeing, itermax, mutual, threshold
from regard.alignment.links import Links
from regard.alignment.symmetrize import METHODS as SYMMETRIZED
from regard.alignment.symmetrize import symmetrize
from regard.errors import InputError, explain

__all__ = ["LEAST", "METHODS", "links_of"]

LEAST = 0.4
"""The least belief that makes a link, chosen on 37 sentence pairs with gold links."""

_OF_BOTH: dict[str, Callable[[Believed, float], Links]] = {
    "agreeing": lambda believed, least: agreeing(*believed, least),
    "mutual": lambda believed, least: mutual(*believed),
    "itermax": lambda believed, least: itermax(*believed),
    "forward": lambda believed, least: threshold(believed.forward, least),
    "backward": lambda believed, least: threshold(believed.backward, least),
}

METHODS = (*_OF_BOTH, *SYMMETRIZED)
"""How links are read. ``agreeing``: the geometric mean of both beliefs is at least ``least``;
``forward``, ``backward``: one direction's is. The symmetrisations combine those two. ``mutual``
and ``itermax`` are :mod:`regard.alignment.extract`'s and need no ``least``."""


def links_of(believed: Believed, method: Any = "agreeing", least: float = LEAST) -> Links:
    """Read links from what both directions believe.

    Parameters
    ----------
    believed : Believed
    method : str
        One of :data:`METHODS`.
    least : float
        Above 0, at most 1.

    Returns
    -------
    links : frozenset of (int, int)
        Source and target positions, from 0.

    Raises
    ------
    InputError
        ``method`` is unknown or ``least`` outside its range.
    """
    if method not in METHODS or not 0 < least <= 1:
        known = method in METHODS
        raise InputError(
            explain(
                f"links_of(): `{'least' if known else 'method'}` is refused",
                expected="above 0, at most 1" if known else " or ".join(METHODS),
                got=repr(least if known else method),
            )
        )
    if method in _OF_BOTH:
        return _OF_BOTH[method](believed, least)
    forward, backward = (threshold(side, least) for side in believed)
    return symmetrize(forward, backward, method)
