"""What becomes of weights before they meet values: views, masks, dropout, differences."""

from typing import Any

__all__ = ["REPEATS", "VIEWS", "is_logarithm", "is_mixed", "joins", "used_weights"]

VIEWS = frozenset(
    {"view", "reshape", "transpose", "permute", "T", "mT", "unsqueeze", "squeeze", "flatten"}
    | {"unflatten", "contiguous", "expand", "movedim", "to", "clone", "identity", "swapaxes"}
)
REPEATS = frozenset({"repeat", "repeat_interleave", "tile", "expand"})
_CHANGES = frozenset({"mul", "div", "masked_fill", "where", "dropout", "normalize", "to"})
_STEPS = 8


def used_weights(site: Any) -> Any:
    """The weights as they meet the values: after dropout, a late mask, renormalisation."""
    node = site.weights
    # Where no values are met, what becomes of the weights is followed to the result.
    for step in site.post_ops or (() if site.contraction is not None else _onward(node)):
        if step.op in VIEWS or step.op in REPEATS or step.shape != node.shape:
            break
        node = step
    return node


def is_mixed(bench: Any, reading: Any) -> bool:
    """Whether the weights in use come of several softmaxes, as a difference of two does.

    Weights times a window around a predicted place sum to no 1 either.
    """
    trace, site = bench.trace, reading.site
    onward = trace.above(used_weights(site))
    earlier = trace.above(site.scores)
    others = {s.weights.index for s in trace.sites if s is not site}
    return bench.contract.positions == "location" or bool((onward - earlier) & others)


def _onward(node: Any) -> list[Any]:
    steps: list[Any] = []
    while len(steps) < _STEPS:
        uses = [u for u in node.uses if u.op in _CHANGES and u.shape == node.shape]
        if not uses:
            break
        node = uses[-1]
        steps.append(node)
    return steps


def is_logarithm(site: Any) -> bool:
    """Whether what the weights were made into is still their logarithm."""
    used, steps = used_weights(site), site.post_ops
    steps = steps[: steps.index(used) + 1] if used in steps else ()
    return site.weights.op == "log_softmax" and all(s.op not in ("exp", "exp2") for s in steps)


def joins(site: Any) -> bool:
    """Whether weights are added to weights of the same softmax before they meet values."""
    sums = (n for n in site.post_ops if n.op in ("add", "sub") and len(n.inputs) == 2)
    return any(all(_comes_from(i, site.weights) for i in n.inputs) for n in sums)


def _comes_from(node: Any, root: Any) -> bool:
    todo, seen = [node], set[int]()
    while todo:
        one = todo.pop()
        if one is root:
            return True
        if one.index not in seen and one.index > root.index:
            seen.add(one.index)
            todo += one.inputs
    return False
