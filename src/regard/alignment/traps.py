"""Mistakes of reading that leave a file of links readable and its score without meaning."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.alignment.links import Gold, Links
from regard.alignment.score import score_alignments

__all__ = ["Trap", "traps"]

_GAIN = 0.1
"""By how much another reading must lower the error rate: ten points are far more than two ways
of making the same links differ by."""


@dataclass(frozen=True)
class Trap:
    """Another reading of a system's links that fits the gold links far better.

    Attributes
    ----------
    turned : bool
        With source and target exchanged.
    shift : (int, int)
        Added to every source and target position, after turning.
    aer, as_read : float
        The alignment error rate so, and as it was read.
    """

    turned: bool
    shift: tuple[int, int]
    aer: float
    as_read: float

    def __str__(self) -> str:
        """Say what the file looks like."""
        parts = []
        if self.turned:
            parts.append("the target's position first")
        for side, step in zip(("source", "target"), self.shift, strict=True):
            if step:
                parts.append(f"{side} positions one too {'high' if step < 0 else 'low'}")
        return (
            f"it looks like a file with {' and '.join(parts)}: read so, AER is "
            f"{100 * self.aer:.1f} %, not {100 * self.as_read:.1f} %"
        )


def traps(gold: Sequence[Gold], system: Sequence[Links]) -> Trap | None:
    """Find the reading of a system's links that fits best, if another one does.

    Parameters
    ----------
    gold : sequence of Gold
    system : sequence of sets of (source, target)
        As they were read.

    Returns
    -------
    trap : Trap or None
        None where no exchange of sides and no shift by one lowers the error rate by ten points.
        Among equally good readings the simplest one.
    """
    as_read = score_alignments(gold, system).aer
    best: Trap | None = None
    for turned in (False, True):
        for shift in ((0, 0), (-1, -1), (1, 1), (-1, 0), (0, -1), (1, 0), (0, 1)):
            links = [_read(pair, turned, shift) for pair in system]
            aer = score_alignments(gold, links).aer
            if aer < (as_read - _GAIN if best is None else best.aer - 1e-9):
                best = Trap(turned, shift, aer, as_read)
    return best


def _read(links: Links, turned: bool, shift: tuple[int, int]) -> Links:
    pairs = ((t, s) for s, t in links) if turned else links
    return frozenset((s + shift[0], t + shift[1]) for s, t in pairs)
