"""Kendall's tau-b with its p, and the overlap of two rankings' tops."""

import math
from typing import Any

import numpy as np

__all__ = ["spearman", "tau_b", "top_overlap"]

_EXACT = 33  # as SciPy: up to here the exact null distribution, where there are no ties


def tau_b(one: Any, other: Any) -> tuple[float, float]:
    """Return Kendall's tau-b and its two-sided p.

    Parameters
    ----------
    one, other : (n,)

    Returns
    -------
    tau : float
        -1 to 1; NaN where one of the two is constant or n is below 2.
    p : float
        Of no association: exact without ties up to n = 33, else the normal approximation.

    References
    ----------
    .. [1] Kendall, "The Treatment of Ties in Ranking Problems", Biometrika 33, 1945.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (one, other))
    n = len(x)
    if n < 2:
        return math.nan, math.nan
    upper = np.triu_indices(n, 1)
    signs_x, signs_y = (np.sign(v[upper[0]] - v[upper[1]]) for v in (x, y))
    total = n * (n - 1) // 2
    ties_x, ties_y = _ties(x), _ties(y)
    tied_x, tied_y = (int((t * (t - 1) // 2).sum()) for t in (ties_x, ties_y))
    if total in (tied_x, tied_y):
        return math.nan, math.nan
    difference = int((signs_x * signs_y).sum())
    tau = difference / math.sqrt((total - tied_x) * (total - tied_y))
    if not (tied_x or tied_y) and n <= _EXACT:
        return tau, _exact_p(n, (total - difference) // 2)
    m = n * (n - 1)
    x0, y0 = ((t * (t - 1) * (t - 2)).sum() for t in (ties_x, ties_y))
    x1, y1 = ((t * (t - 1) * (2 * t + 5)).sum() for t in (ties_x, ties_y))
    variance = (m * (2 * n + 5) - x1 - y1) / 18 + 2 * tied_x * tied_y / m
    if n > 2:
        variance += x0 * y0 / (9 * m * (n - 2))
    return tau, math.erfc(abs(difference) / math.sqrt(2 * variance))


def spearman(one: Any, other: Any) -> float:
    """Return Spearman's rank correlation, ties sharing ranks; NaN where one is constant."""
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (one, other)]
    centred = [rank - rank.mean() for rank in ranks]
    below = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / below if below else math.nan


def top_overlap(one: Any, other: Any, k: int) -> float:
    """Return which share of the k highest of one are among the k highest of the other."""
    k = min(k, len(one))
    tops = [
        set(np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")[:k].tolist())
        for values in (one, other)
    ]
    return len(tops[0] & tops[1]) / k


def _ties(values: Any) -> Any:
    counts = np.unique(values, return_counts=True)[1].astype(np.int64)
    return counts[counts > 1]


def _ranks(values: Any) -> Any:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[inverse]


def _exact_p(n: int, discordant: int) -> float:
    """Return the two-sided p from the number of permutations with so few inversions."""
    total = n * (n - 1) // 2
    fewest = min(discordant, total - discordant)
    if 2 * fewest >= total:
        return 1.0
    counts = [1.0]
    for size in range(2, n + 1):
        # Shares of all permutations, so that no number grows beyond a float.
        wide = np.convolve(counts, np.full(size, 1 / size))
        counts = wide[: fewest + 1].tolist()
    return min(1.0, 2 * sum(counts))
