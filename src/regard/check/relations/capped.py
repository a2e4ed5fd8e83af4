"""Scores that are kept within bounds: c * tanh(s / c), which is s where s is small.

The cap changes no order among the keys and no plain score by much, so that it is a habit of the
field and no mistake. What lies before it is judged as without it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.check.relations.used import VIEWS
from regard.check.trace.records import Site

__all__ = ["cap", "is_capped", "within"]

_SCALES = frozenset({"mul", "div"})


def cap(site: Site) -> float | None:
    """Return the bound c of scores that a hyperbolic tangent keeps below it, or None.

    Parameters
    ----------
    site : Site
        One softmax of a recording.

    Returns
    -------
    bound : float or None
        The factor behind the tangent, 1 where there is none.
    """
    for i, node in enumerate(site.pre_ops):
        if node.op == "tanh":
            following = (n for n in site.pre_ops[i + 1 :] if n.op not in VIEWS)
            after = next(following, None)
            factor = None if after is None or after.op not in _SCALES else _factor(node, after)
            return 1.0 if factor is None else abs(factor)
    return None


def within(scores: np.ndarray, bound: float | None) -> np.ndarray:
    """Return scores as a bound leaves them, as they are where there is none."""
    return np.asarray(bound * np.tanh(scores / bound)) if bound else scores


def is_capped(site: Site, scale: float | None = None) -> bool:
    """Whether scores come out of the tangent as they went in, where they are small.

    They are divided by the bound before it; or all that scales them, before and behind, gives
    the declared ``scale``, in which the division may be hidden.
    """
    bound = cap(site)
    if bound is None:
        return False
    bent = next(n for n in site.pre_ops if n.op == "tanh")
    whole = 1.0
    for factor in _scalings(bent.inputs[0] if bent.inputs else None):
        whole *= factor
        if abs(whole * bound - 1.0) < 1e-3:
            return True
    return scale is not None and bool(whole) and abs(whole * bound / scale - 1.0) < 1e-3


def _scalings(node: Any) -> Iterator[float]:
    """Factors of the scalings that lead to a node, the last one first."""
    for _ in range(8):
        if node is None or not node.inputs:
            return
        if node.op in _SCALES:
            found = [f for i in node.inputs if (f := _factor(i, node)) is not None]
            if not found:
                return
            yield found[0]
            node = next(i for i in node.inputs if _factor(i, node) is not None)
        elif node.op in VIEWS:
            node = node.inputs[0]
        else:
            return


def _factor(before: Any, after: Any) -> float | None:
    """The number that an array was multiplied by, None where it is not one for all entries."""
    if before.shape != after.shape or not before.value.size:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = after.value.astype(np.float64) / before.value
    ratio = ratio[np.isfinite(ratio)]
    if not ratio.size or np.ptp(ratio) > 1e-4 * abs(float(ratio.mean())):
        return None
    return float(ratio.mean())
