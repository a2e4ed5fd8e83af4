"""Queries and keys that were scaled before positions turned them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.check.relations.base import Bench
from regard.check.relations.reading import Reading

__all__ = ["before_rotation"]

_PRODUCTS = frozenset({"linear", "matmul", "mm", "bmm", "addmm", "einsum"})
_FAR = 60  # operations above a query among which a factor is looked for


def before_rotation(bench: Bench, reading: Reading) -> float:
    """The factor by which queries and keys were scaled before positions turned them.

    A rotation keeps lengths, so that lengths after it and before the scaling tell the factor.
    """
    if bench.contract.positions != "rotary":
        return 1.0
    factor = 1.0
    for node in (reading.site.query, reading.site.key):
        scaled = next(
            (n for n in _upward(node) if n.op in ("mul", "div") and _is_factor(n)), None
        )
        if scaled is None:
            continue
        plain = next(i for i in scaled.inputs if i.shape == scaled.shape)
        one, other = np.abs(scaled.value).sum(), np.abs(plain.value).sum()
        factor *= float(one / other) if other else 1.0
    return factor


def _upward(node: Any) -> Iterator[Any]:
    """Nodes above one, through views, products, sums and joins, to what projections made."""
    todo, seen = [node] if node is not None else [], set[int]()
    while todo and len(seen) < _FAR:
        one = todo.pop(0)
        if one.index in seen or one.op in _PRODUCTS:
            continue
        seen.add(one.index)
        yield one
        todo += [i for i in one.inputs if any(s.startswith("input:") for s in i.sources)]


def _is_factor(node: Any) -> bool:
    """Whether a product multiplies every entry by one number."""
    same = [i for i in node.inputs if i.shape == node.shape]
    if len(same) != 1 or not same[0].value.size:
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = node.value / same[0].value
    ratio = ratio[np.isfinite(ratio)]
    return bool(ratio.size and np.ptp(ratio) < 1e-5 * abs(float(ratio.mean())))
