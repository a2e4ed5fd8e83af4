"""How far two distributions lie apart: total variation, Jensen-Shannon, Kullback-Leibler.

All work along the last axis. Logarithms are natural, so the Jensen-Shannon divergence is
between 0 and ln 2 = 0.693.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LN2", "jensen_shannon", "kullback_leibler", "total_variation"]

LN2 = float(np.log(2))


def total_variation(one: Any, other: Any) -> NDArray[np.float64]:
    """Return half the sum of the absolute differences, 0 to 1.

    For two classes given by one probability it is |p - q|, not half of it.
    """
    one, other = (np.asarray(x, dtype=np.float64) for x in (one, other))
    found: NDArray[np.float64] = np.abs(one - other).sum(-1) / 2
    return found


def jensen_shannon(one: Any, other: Any) -> NDArray[np.float64]:
    """Return the Jensen-Shannon divergence, 0 to ln 2."""
    one, other = (np.asarray(x, dtype=np.float64) for x in (one, other))
    middle = (one + other) / 2
    found: NDArray[np.float64] = (_plogp(one).sum(-1) + _plogp(other).sum(-1)) / 2 - _plogp(
        middle
    ).sum(-1)
    return np.maximum(found, 0.0)


def kullback_leibler(one: Any, other: Any) -> NDArray[np.float64]:
    """Return KL(one || other): infinite where `other` excludes what `one` has."""
    one, other = (np.asarray(x, dtype=np.float64) for x in (one, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(one > 0, np.log(one) - np.log(other), 0.0)
    found: NDArray[np.float64] = np.where(one > 0, one * ratio, 0.0).sum(-1)
    return found


def _plogp(p: NDArray[np.float64]) -> NDArray[np.float64]:
    safe = np.where(p > 0, p, 1.0)
    return p * np.log(safe)
