"""Which operation is a softmax: by name, or by what it does.

``exp(s) / sum(exp(s))`` is one, whether the exponent was shifted, masked or clipped before, and
so is ``exp(s - logsumexp(s))``. A division of weights by their own sum is none: that is a
renormalisation of a softmax that has its own site.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.check.trace.records import Node, Site

__all__ = ["has_keys_of_its_own", "is_exponential", "normaliser", "over", "told_axis"]

_THROUGH = frozenset(
    {"mul", "where", "masked_fill", "setitem", "to", "clone", "contiguous", "clamp", "clip"}
    | {"getitem", "unsqueeze", "squeeze", "view", "reshape", "expand", "identity", "add"}
    | {"nan_to_num", "max2", "detach", "fill", "transpose", "permute", "T", "mT", "flatten"}
)
_JOINS = frozenset({"cat", "pad", "concatenate", "hstack", "vstack", "append", "setitem"})
_FAR = 80  # operations above the scores among which a join is looked for
_SHIFTS = frozenset({"sub", "clamp", "clip", "nan_to_num", "min2", "identity"})


def normaliser(node: Node) -> tuple[Node, int | tuple[int, ...] | None] | None:
    """Return the scores and the axis if a node is a softmax."""
    if node.op in ("softmax", "log_softmax", "softmin") and node.inputs:
        return node.inputs[0], over(node.arguments.get("dim", "implicit"), node)
    if node.op == "div" and len(node.inputs) == 2:
        return _division(*node.inputs)
    if node.op == "mul" and len(node.inputs) == 2:
        for top, factor in (node.inputs, node.inputs[::-1]):
            below = _behind(factor, "reciprocal", "pow")
            if below is not None and below.inputs:
                return _division(top, below.inputs[0])
            below = _behind(factor, "div")
            if below is not None and below.inputs and below.arguments:  # 1 / sum
                return _division(top, below.inputs[-1])
    if node.op == "exp" and node.inputs[0].op == "sub" and len(node.inputs[0].inputs) == 2:
        scores, norm = node.inputs[0].inputs
        total = _behind(norm, "logsumexp")
        if total is not None:
            return scores, over(total.arguments.get("dim"), total.inputs[0])
    return None


def is_exponential(node: Node) -> Node | None:
    """The ``exp`` that an array comes from through masks and views, or None."""
    for _ in range(12):
        if node.op in ("exp", "exp2"):
            return node
        if node.op not in _THROUGH or not node.inputs:
            return None
        node = next((i for i in node.inputs if _has_exponential(i)), node.inputs[0])
    return None


def has_keys_of_its_own(site: Site, given: int) -> bool:
    """Whether a softmax runs over the given keys and some that the code joins to them.

    Sinks, a key of zeros, learned memories: somewhere above the scores an axis of ``given``
    entries is made longer, and the softmax has as many as came out.
    """
    if not isinstance(site.axis, int) or not given:
        return False
    count = site.weights.shape[site.axis]
    if count <= given:
        return False
    todo, seen = [site.scores], set[int]()
    while todo and len(seen) < _FAR:
        node = todo.pop()
        if node.index in seen:
            continue
        seen.add(node.index)
        if node.op in _JOINS and any(
            len(i.shape) == len(node.shape)
            and any((a, b) == (given, count) for a, b in zip(i.shape, node.shape, strict=True))
            for i in node.inputs
        ):
            return True
        todo += node.inputs
    return False


def told_axis(node: Node) -> Node:
    """The operation that was told the axis: a softmax itself, or the sum it divides by."""
    if node.op in ("div", "mul") and len(node.inputs) == 2:
        for operand in node.inputs[::-1]:
            total = _behind(operand, "sum", "logsumexp")
            if total is not None:
                return total
    return node


def over(dim: Any, node: Node) -> int | tuple[int, ...] | None:
    """Axes of a reduction, counted from the front; None: all of them."""
    rank = len(node.shape)
    if dim == "implicit":  # as PyTorch picks it
        return 0 if rank in (0, 1, 3) else 1
    if isinstance(dim, int):
        return dim % rank if rank else 0
    if isinstance(dim, list | tuple):
        return tuple(int(d) % rank for d in dim) if rank else ()
    return None


def _division(top: Node, bottom: Node) -> tuple[Node, int | tuple[int, ...] | None] | None:
    exponential = is_exponential(top)
    total = _behind(bottom, "sum")
    if exponential is None or total is None or not total.inputs:
        return None
    summed = total.inputs[0]
    if summed is not top and not _is_same(is_exponential(summed), exponential):
        return None
    axis = over(total.arguments.get("dim"), summed)
    turns = [n.op for n in _chain(top) if n.op in ("T", "mT", "transpose", "permute")]
    if summed is not top and turns:  # (e.T / e.sum(-1)).T: the axis lies elsewhere there
        if turns != ["T"] or not isinstance(axis, int):
            return None
        axis = len(top.shape) - 1 - axis
    return _unshifted(exponential.inputs[0]), axis


def _is_same(one: Node | None, other: Node) -> bool:
    """Whether two exponentials are one, or one that is written twice."""
    if one is None or one is other or one.op != other.op or one.shape != other.shape:
        return one is other
    above = one.inputs[0], other.inputs[0]
    return above[0] is above[1] or np.array_equal(above[0].value, above[1].value)


def _behind(node: Node, *ops: str) -> Node | None:
    for _ in range(8):
        if node.op in ops:
            return node
        if node.op not in _THROUGH or not node.inputs:
            return None
        node = node.inputs[0]
    return None


def _unshifted(exponent: Node) -> Node:
    """The scores under the subtraction of their maximum."""
    while exponent.op in _SHIFTS and exponent.inputs:
        if exponent.op == "sub" and not (
            len(exponent.inputs) == 2 and _is_top(exponent.inputs[1])
        ):
            break
        exponent = exponent.inputs[0]
    return exponent


def _is_top(node: Node) -> bool:
    """Whether a node is a maximum, whatever it was taken of."""
    return any(n.op in ("max", "max2", "logsumexp") for n in _chain(node))


def _chain(node: Node) -> Iterator[Node]:
    for _ in range(8):
        yield node
        if node.op not in _THROUGH or not node.inputs:
            return
        node = node.inputs[0]


def _has_exponential(node: Node) -> bool:
    return any(n.op in ("exp", "exp2") for n in _chain(node))
