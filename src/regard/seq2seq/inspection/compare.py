"""What shows only when lines are compared: repeats, contradictions, leaks and odd lengths."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.seq2seq.inspection.survey import Survey

__all__ = [
    "LONG",
    "Compared",
    "leaked",
    "odd_ratios",
    "overlong",
    "repeated",
    "source_count",
    "with_several_targets",
]

_FEW = 20  # pairs; below that nothing is usual
_TIMES = 3.0  # as long as usual, at least
_SPREADS = 5.0  # robust standard deviations from what is usual
_SYMBOLS = 8  # too many or too few, at least: short texts vary
LONG = 50
"""Symbols; shorter texts are never overlong."""

_LONG_TIMES = 10.0  # the median


@dataclass(frozen=True)
class Compared:
    """Lines that stand out.

    Parameters
    ----------
    count : int
        How many, or how many sources.
    lines : list of int
        The first of them, in the file's order.
    others : list of int
        For each, the line that it repeats or contradicts; empty where there is none.
    """

    count: int
    lines: list[int]
    others: list[int]

    def __iter__(self) -> Iterator[tuple[int, int | None]]:
        """Yield each line with its other."""
        others: list[int | None] = [*self.others] or [None] * len(self.lines)
        return iter(zip(self.lines, others, strict=True))


def source_count(data: Survey) -> int:
    """Count the different sources."""
    return len(np.unique(data.hashes[:, 0]))


def repeated(data: Survey, limit: int) -> Compared:
    """Find pairs that stood in an earlier line."""
    order, _, again = _grouped(data)
    lines = data.sizes[order, 0]
    starts = np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))
    return _first(lines[again], lines[starts][again], limit)


def with_several_targets(data: Survey, limit: int) -> Compared:
    """Find sources with a second, different target, and the line of the first one."""
    order, same_source, again = _grouped(data)
    order, same_source = order[~again], same_source[~again]
    # Within a source, targets are in the order of their hashes, which is nobody's order.
    lines = data.sizes[order, 0]
    group = np.cumsum(~same_source) - 1
    by_line = np.lexsort((lines, group))
    lines, group = lines[by_line], group[by_line]
    later = np.zeros(len(lines), dtype=bool)
    later[1:] = group[1:] == group[:-1]
    second = later & ~np.concatenate([[False], later[:-1]])
    firsts = lines[np.flatnonzero(second) - 1]
    return _first(lines[second], firsts, limit)


def leaked(data: Survey, train: Survey, limit: int, *, pairs: bool) -> Compared:
    """Find sources, or whole pairs, that are trained on; each counts once.

    Parameters
    ----------
    data, train : Survey
        What should be new, and what it should not be in.
    limit : int
    pairs : bool
        Whole pairs, not sources.
    """
    here, there = _keys(data, pairs), _keys(train, pairs)
    known, first = np.unique(there, return_index=True)
    mine, where = np.unique(here, return_index=True)
    if not len(known):
        return Compared(0, [], [])
    place = np.minimum(np.searchsorted(known, mine), len(known) - 1)
    hit = known[place] == mine
    return _first(data.sizes[where[hit], 0], train.sizes[first[place[hit]], 0], limit)


def odd_ratios(data: Survey, limit: int) -> Compared:
    """Find pairs whose target is far longer or shorter than its source lets expect.

    Far is three times, five robust standard deviations, and eight symbols from the median
    ratio of the file.
    """
    t_enc, t_dec = data.sizes[:, 1].astype(float), data.sizes[:, 2].astype(float)
    if len(t_enc) < _FEW:
        return Compared(0, [], [])
    ratio = np.log((t_dec + 1) / (t_enc + 1))
    usual = float(np.median(ratio))
    spread = 1.4826 * float(np.median(np.abs(ratio - usual)))
    far = np.abs(ratio - usual) > max(np.log(_TIMES), _SPREADS * spread)
    many = np.abs(t_dec - t_enc * np.exp(usual)) >= _SYMBOLS
    return _first(data.sizes[far & many, 0], None, limit)


def overlong(data: Survey, side: str, limit: int) -> Compared:
    """Find texts of more than 50 symbols and more than ten times the median."""
    sizes = data.sizes[:, 1 if side == "source" else 2]
    if len(sizes) < _FEW:
        return Compared(0, [], [])
    most = max(float(LONG), _LONG_TIMES * float(np.median(sizes)))
    return _first(np.unique(data.sizes[sizes > most, 0]), None, limit)


def _grouped(data: Survey) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Sort pairs by source, target, line; say which repeat the source or pair before them."""
    source, target = data.hashes.T
    order = np.lexsort((data.sizes[:, 0], target, source))
    same_source = np.zeros(len(order), dtype=bool)
    same_source[1:] = source[order][1:] == source[order][:-1]
    again = same_source.copy()
    again[1:] &= target[order][1:] == target[order][:-1]
    return order, same_source, again


def _keys(data: Survey, pairs: bool) -> NDArray[np.int64]:
    source, target = data.hashes[:, 0], data.hashes[:, 1]
    if not pairs:
        return source
    with np.errstate(over="ignore"):
        mixed: NDArray[np.int64] = source * np.int64(-7046029254386353131) + target
    return mixed  # an odd factor keeps all bits


def _first(
    lines: NDArray[np.uint32], others: NDArray[np.uint32] | None, limit: int
) -> Compared:
    order = np.argsort(lines, kind="stable")[:limit]
    return Compared(
        len(lines),
        lines[order].tolist(),
        [] if others is None else others[order].tolist(),
    )
