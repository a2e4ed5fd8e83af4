"""Habits of naming, which tell rivals apart that nothing measured can tell apart.

A survivor is left out only where another one keeps a habit that it breaks.
"""

import ast
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.check.relations.base import near

if TYPE_CHECKING:
    from regard.check.repair.search import Survivor

__all__ = ["joins_in_order", "likeness", "usual"]

_JOINS = ("cat", "concat", "concatenate", "stack", "hstack")


def usual(
    chosen: Sequence["Survivor"], before: Sequence[np.ndarray] | None
) -> list["Survivor"]:
    """Leave out rivals that change more than they must, or that name things unusually.

    Where a bug does not show in plain results (a caller's tensor is changed, a gradient is
    cut, one example alone crashes), a repair that keeps them is preferred to one that does
    not. Where ``[ahead, back]`` and ``[back, ahead]`` both hold, people join things in the
    order in which they named them; and where ``self.v(values)`` and ``self.v(keys)`` do, what
    is named alike belongs together.
    """
    kept = list(chosen)
    if before is not None and len(kept) > 1:
        kept = _unchanged(kept, before) or kept
    if len(kept) > 1:
        kept = [s for s in kept if joins_in_order(s.source)] or kept
    if len(kept) > 1:
        alike = [likeness(s.source) for s in kept]
        kept = [s for s, n in zip(kept, alike, strict=True) if n == max(alike)]
    return kept


def _unchanged(chosen: Sequence["Survivor"], before: Sequence[np.ndarray]) -> list["Survivor"]:
    return [
        s
        for s in chosen
        if len(s.outputs) == len(before)
        and all(near(a, b, 1e-5) for a, b in zip(s.outputs, before, strict=True))
    ]


def joins_in_order(source: str) -> bool:
    r"""Whether names that are joined stand in the order in which they were bound.

    >>> joins_in_order("def f(a, b):\n    return cat([a, b])")
    True
    >>> joins_in_order("def f(a, b):\n    return cat([b, a])")
    False
    """
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        bound: dict[str, tuple[int, int]] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                bound.setdefault(node.arg, (node.lineno, node.col_offset))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                place = (node.lineno, node.col_offset)
                bound[node.id] = min(place, bound.get(node.id, place))
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            row = node.args[0]
            if name not in _JOINS or not isinstance(row, ast.List | ast.Tuple):
                continue
            places = [
                bound[n.id] for n in row.elts if isinstance(n, ast.Name) and n.id in bound
            ]
            if places != sorted(places) or len(set(places)) != len(places):
                return False
    return True


def likeness(source: str) -> int:
    """Count pairs of names that belong together and are named alike.

    Pairs are a function and its argument, a target and the names it is made from, and the
    elements of a tuple of two.

    >>> likeness("v = self.v(values)"), likeness("v = self.v(keys)")
    (2, 1)
    """
    pairs: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            pairs += [(name, a.id) for a in node.args if isinstance(a, ast.Name)]
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
            names = [n.id for n in node.elts if isinstance(n, ast.Name)]
            pairs += list(itertools.combinations(names, 2))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            name = getattr(getattr(value, "func", None), "attr", "")
            if name:
                pairs.append((node.targets[0].id, name))
    return sum(_alike(a, b) for a, b in pairs)


def _alike(a: str, b: str) -> bool:
    if a == b or (len(a) == 1 and b.startswith(a)) or (len(b) == 1 and a.startswith(b)):
        return True
    return bool(set(a.split("_")) & set(b.split("_")) - {"", "self", "to", "by"})
