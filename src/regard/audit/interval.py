"""Intervals by the paired bootstrap: how far a figure might differ on other inputs.

Each resample draws whole inputs, with everything measured on them, so that a difference between
two ways of erasing is one of the same inputs. Inputs that belong together, as the steps of one
text, are drawn together: they are no independent evidence. The seed of the model is another
matter: it is seen by training again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "Estimate",
    "mean_of",
    "median_of",
    "more_inputs",
    "ratio_of",
    "sign_flip",
]

LEVEL = 0.95
RESAMPLES = 1000
_FAR = 1_000_000  # inputs; nobody has that many


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval.

    Attributes
    ----------
    value : float
        On the inputs as they are; NaN if there are none.
    low, high : float
        Of the middle 95 % of the resampled figures.
    n : int
        Inputs it rests on.
    """

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        """Return the figure with its interval; a dash where there is none."""
        if math.isnan(self.value):
            return "-"
        ends = ("open" if math.isinf(end) else f"{end:.3f}" for end in (self.low, self.high))
        return f"{self.value:.3f} [{', '.join(ends)}]"


def mean_of(values: Any, *, seed: int = 0, groups: Sequence[Any] | None = None) -> Estimate:
    """Estimate a mean over inputs; those whose value is NaN are left out.

    Parameters
    ----------
    values : (n,)
        None is NaN.
    seed : int
    groups : sequence, optional
        Of each input, what it belongs to; each input to itself by default.
    """
    table, groups = _kept(values, groups=groups)
    return _estimate(table, lambda sums: sums[..., 0], seed, groups)


def median_of(values: Any, *, seed: int = 0, groups: Sequence[Any] | None = None) -> Estimate:
    """Estimate a median over inputs, as :func:`mean_of` does a mean."""
    table, groups = _kept(values, groups=groups)
    column = table[:, 0]
    if not len(column):
        return Estimate(np.nan, np.nan, np.nan, 0)
    random = np.random.default_rng(seed)
    members = _members(len(column), groups)
    picked = random.integers(len(members), size=(RESAMPLES, len(members)))
    if len(members) == len(column):
        drawn = np.median(column[np.concatenate(members)[picked]], axis=1)
    else:
        each = [column[group] for group in members]
        drawn = np.array([np.median(np.concatenate([each[i] for i in row])) for row in picked])
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(np.median(column)), float(low), float(high), len(column))


def ratio_of(
    above: Any, below: Any, *, seed: int = 0, groups: Sequence[Any] | None = None
) -> Estimate:
    """Estimate mean(above) / mean(below) over the same inputs, as :func:`mean_of` does.

    Where the mean below is not above zero there is no ratio: its resamples count as infinitely
    far out on both sides, so an interval that meets them is open.
    """
    table, groups = _kept(above, below, groups=groups)

    def ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        up, down = sums[..., 0], sums[..., 1]
        safe = np.where(down > 0, down, 1.0)
        return np.where(down > 0, up / safe, np.nan)

    return _estimate(table, ratio, seed, groups)


def more_inputs(estimate: Estimate, gate: float) -> int | None:
    """Return how many more inputs would move the gate out of the interval.

    The interval shrinks with the square root of the number of inputs, if the figure stays what
    it is. None if no affordable number would do.
    """
    half = max(estimate.high - estimate.value, estimate.value - estimate.low)
    away = abs(estimate.value - gate)
    if not (np.isfinite(half) and away > 0):
        return None
    wanted = estimate.n * (half / away) ** 2
    return None if wanted > _FAR else max(1, int(np.ceil(wanted)) - estimate.n)


def _kept(
    *columns: Any, groups: Sequence[Any] | None = None
) -> tuple[NDArray[np.float64], Sequence[Any] | None]:
    table = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)
    there = np.atleast_1d(np.isfinite(table).all(axis=-1))
    kept = None if groups is None else list(compress(groups, there.tolist()))
    return table[there], kept


def _estimate(
    table: NDArray[np.float64], figure: Any, seed: int, groups: Sequence[Any] | None
) -> Estimate:
    n = len(table)
    if not n:
        return Estimate(np.nan, np.nan, np.nan, 0)
    random = np.random.default_rng(seed)
    sums, sizes = _grouped(table, groups)
    count = len(sums)
    # How often each group is drawn: one product then sums up all resamples.
    times = random.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    drawn = figure(times @ sums / (times @ sizes)[:, None])
    value = float(figure(table.mean(0)))
    tail = (1 - LEVEL) / 2
    missing = np.isnan(drawn).mean()
    if missing > tail:
        return Estimate(value, -np.inf, np.inf, n)
    low, high = np.quantile(drawn[~np.isnan(drawn)], [tail, 1 - tail])
    return Estimate(value, float(low), float(high), n)


def _grouped(
    table: NDArray[np.float64], groups: Sequence[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each group's sums, in the order in which groups are met, and its size."""
    if groups is None:
        return table, np.ones(len(table))
    members = _members(len(table), groups)
    sums = np.stack([table[rows].sum(0) for rows in members])
    return sums, np.array([len(rows) for rows in members], dtype=np.float64)


def _members(n: int, groups: Sequence[Any] | None) -> list[NDArray[np.intp]]:
    """Return the rows of each group, in the order in which groups are met."""
    found: dict[Any, list[int]] = {}
    for row, group in enumerate(range(n) if groups is None else groups):
        found.setdefault(group, []).append(row)
    return [np.array(rows) for rows in found.values()]


def sign_flip(differences: Any, *, seed: int = 0, groups: Sequence[Any] | None = None) -> float:
    """Return the one-sided p that a mean difference is above zero by chance.

    Each input's difference (each group's, where they have groups) is as likely to have either
    sign under chance; the share of 2,000
    draws of signs whose mean is at least the one found, itself counted.
    """
    column = _grouped(*_kept(differences, groups=groups))[0][:, 0]
    if not len(column):
        return float("nan")
    random = np.random.default_rng(seed)
    signs = random.choice([-1.0, 1.0], size=(2000, len(column)))
    return float((1 + (signs @ column >= column.sum()).sum()) / 2001)
