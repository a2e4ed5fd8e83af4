"""What leads to each softmax and away from it: operands, scale, masks, context."""

import itertools
from collections.abc import Iterator

import numpy as np

from regard.check.probe import Probe
from regard.check.trace.records import Node, Site, Trace
from regard.check.trace.signatures import CONTRACTIONS, ELEMENTWISE
from regard.check.trace.weighing import is_exponential

__all__ = ["complete", "silent_broadcasts"]

_VIEWS = frozenset(
    {"view", "reshape", "transpose", "permute", "T", "mT", "unsqueeze", "squeeze", "getitem"}
    | {"flatten", "unflatten", "contiguous", "expand", "movedim", "to", "clone", "detach"}
    | {"identity", "select", "repeat_interleave", "repeat", "stack", "cat", "unbind", "chunk"}
    | {"split", "narrow", "index_select", "diagonal"}
)
_SAME_NUMBERS = _VIEWS - {
    *("stack", "cat", "getitem", "repeat", "repeat_interleave", "chunk", "split", "unbind"),
    *("select", "narrow", "index_select", "diagonal"),
}
_ACTIVATIONS = frozenset(
    {"tanh", "relu", "sigmoid", "gelu", "silu", "leaky_relu", "elu", "cos", "sin", "softplus"}
)
_FINITE = 1e4  # a score beyond it was masked


def complete(trace: Trace) -> None:
    """Fill in every site of a recording."""
    for site in trace.sites:
        if not site.fused:
            _before(site)
        _after(site)


def _before(site: Site) -> None:
    node, path = site.scores, [site.scores]
    for _ in range(60):
        if _is_product(node):
            break
        following = _main_operand(node)
        if following is None:
            break
        node = following
        path.append(node)
    path.reverse()
    masks_after = [n for n in _between(site.scores, site.weights) if _is_mask_step(n)]
    if _is_product(node):
        site.product = node
        left, right = _operands(node)
        if _is_pair(left, right):
            site.query, site.key = _unscaled(left), _unscaled(right)
            factor = _ratio(site.query, left) * _ratio(site.key, right)
            slope, r2 = _slope(path)
            site.slope = None if slope is None else slope * factor
            site.r2 = r2
        path = path[1:]
    path = [n for n in path if n.op not in ("input", "param", "buffer", "const")]
    site.pre_ops = (*path, *masks_after)


def _is_product(node: Node) -> bool:
    return node.op in CONTRACTIONS or (
        node.op == "sum" and bool(node.inputs) and _unsummed(node.inputs[0]) is not None
    )


def _unsummed(node: Node) -> Node | None:
    """The elementwise product under a sum, if it is one of two arrays."""
    return node if node.op == "mul" and len(node.inputs) == 2 else None


def _operands(node: Node) -> tuple[Node, Node]:
    if node.op == "sum":
        return node.inputs[0].inputs[0], node.inputs[0].inputs[1]
    pair = node.inputs[-2:] if node.op in ("baddbmm", "addmm") else node.inputs[:2]
    return (pair[0], pair[1]) if len(pair) == 2 else (pair[0], pair[0])


def _is_pair(left: Node, right: Node) -> bool:
    """Query meets key; not features that meet one learned vector."""

    def learned(node: Node) -> bool:
        return all(s.startswith("param:") for s in node.sources)

    if learned(right) or (learned(left) and len(left.shape) < 2):
        return False
    return _activation_above(left) is None and _activation_above(right) is None


def _activation_above(node: Node) -> Node | None:
    for _ in range(6):
        if node.op in _ACTIVATIONS:
            return node
        if node.op not in _VIEWS or not node.inputs:
            return None
        node = node.inputs[0]
    return None


def _main_operand(node: Node) -> Node | None:
    """The operand that carries the scores on: not the mask, bias or scale."""
    if not node.inputs or node.op in ("input", "param", "const"):
        return None
    if node.op in ("where",):
        return max(node.inputs[1:], key=_depth, default=None)
    if node.op in ("masked_fill", "setitem", "dropout", *_VIEWS):
        return node.inputs[0]
    if node.op in ELEMENTWISE:
        return max(node.inputs, key=_depth)
    return None


def _depth(node: Node) -> tuple[int, int, int]:
    """Scores are made late and from products; masks and scales are not."""
    through: Node | None = node
    found = 0
    for _ in range(30):
        if through is None:
            break
        if _is_product(through):
            found = 1
            break
        if through.op in ("input", "param", "const", "buffer") or not through.inputs:
            break
        through = (
            through.inputs[0]
            if through.op in _VIEWS | {"masked_fill"}
            else max(through.inputs, key=lambda n: n.index)
            if through.op in ELEMENTWISE
            else None
        )
    floats = int(node.dtype.startswith("float") and bool(node.sources))
    return found, floats, node.index


def _unscaled(node: Node) -> Node:
    """An operand before it was scaled by a number, masked or viewed."""
    for _ in range(20):
        if node.op in _SAME_NUMBERS and node.inputs:
            node = node.inputs[0]
        elif node.op in ("mul", "div") and (inner := _scaled(node)) is not None:
            node = inner
        elif node.op in ("masked_fill", "dropout"):
            node = node.inputs[0]
        else:
            break
    return node


def _scaled(node: Node) -> Node | None:
    """The array that a product or quotient with one number scales."""
    if len(node.inputs) == 1 and not node.arguments.get("turned"):
        return node.inputs[0]
    if len(node.inputs) == 2:
        first, second = node.inputs
        if int(np.prod(second.shape)) == 1 and int(np.prod(first.shape)) > 1:
            return first
        if int(np.prod(first.shape)) == 1 and node.op == "mul":
            return second
    return None


def _ratio(before: Node, after: Node) -> float:
    """The number by which views and scalings changed an array, by its norm."""
    top = float(np.sqrt(np.nansum(np.square(after.value.astype(np.float64)))))
    bottom = float(np.sqrt(np.nansum(np.square(before.value.astype(np.float64)))))
    count = after.value.size / max(before.value.size, 1)
    return top / bottom / count**0.5 if bottom and count else 1.0


def _slope(path: list[Node]) -> tuple[float | None, float | None]:
    """Follow the factor from the product to the scores, step by step."""
    slope, quality = 1.0, 1.0
    for before, after in itertools.pairwise(path):
        if after.op in _VIEWS or after.op in ("masked_fill", "setitem", "dropout", "where"):
            continue
        if before.shape != after.shape:
            return None, None
        a, b = before.value, _less_added(before, after)
        keep = np.isfinite(b)
        for array in (a, after.value):
            keep &= np.isfinite(array) & (np.abs(array) < _FINITE)
        x, y = a[keep].astype(np.float64), b[keep].astype(np.float64)
        energy = float(x @ x)
        if x.size < 2 or energy == 0.0:
            return None, None
        here = float(x @ y) / energy
        left = float(np.sum((y - here * x) ** 2)) / max(float(y @ y), 1e-30)
        slope, quality = slope * here, min(quality, 1.0 - left)
    return slope, quality


def _less_added(before: Node, after: Node) -> np.ndarray:
    """What is added to the scores, a bias or a mask, is no part of their factor."""
    others = [n for n in after.inputs if n is not before]
    if after.op not in ("add", "sub") or not others:
        return after.value
    with np.errstate(invalid="ignore"):
        change = others[0].value.astype(np.float64)
        if after.op == "add":
            return after.value - change
        return after.value + change if after.inputs[0] is before else change - after.value


def _between(start: Node, end: Node) -> Iterator[Node]:
    """Steps from the exponential to the division."""
    node = end
    for _ in range(12):
        if not node.inputs or node is start or is_exponential(node) is None:
            return
        node = next((i for i in node.inputs if is_exponential(i) is not None), node.inputs[0])
        yield node


def _is_mask_step(node: Node) -> bool:
    return node.op in ("masked_fill", "where", "setitem") or (
        node.op == "mul" and len(node.inputs) == 2
    )


def _after(site: Site) -> None:
    if site.contraction is not None:
        return
    node = site.weights
    path: list[Node] = []
    best: tuple[Node, list[Node]] | None = None
    stack: list[tuple[Node, list[Node]]] = [(node, path)]
    seen: set[int] = set()
    while stack and best is None:
        node, path = stack.pop(0)
        if node.index in seen:
            continue
        seen.add(node.index)
        for use in sorted(node.uses, key=lambda n: n.index):
            if _meets_values(use, node, site):
                best = (use, path)
                site.contraction = use
                break
            if use.op in ELEMENTWISE or use.op in _VIEWS or use.op in ("sum", "mean"):
                stack.append((use, [*path, use]))
    if best is None:
        return
    use, path = best
    site.post_ops = tuple(path)
    carried = path[-1] if path else site.weights
    others = [n for n in use.inputs if n is not carried]
    site.value = _unscaled(others[-1]) if others else carried
    site.context = use
    if use.op == "mul":
        summed = next((n for n in use.uses if n.op in ("sum", "mean", "einsum")), None)
        site.context = summed or use
        site.contraction = site.context


def _meets_values(use: Node, node: Node, site: Site) -> bool:
    if use.op in CONTRACTIONS - {"outer"}:
        return len(use.inputs) >= 2
    if use.op != "mul" or len(use.inputs) != 2:
        return False
    other = use.inputs[0] if use.inputs[1] is node else use.inputs[1]
    if other.dtype.startswith(("bool", "int", "uint")) or int(np.prod(other.shape)) <= 1:
        return False
    # A mask, a renormaliser or a gate keeps the shape; values bring features and are summed.
    if int(np.prod(use.shape)) <= int(np.prod(node.shape)):
        return False
    summed = any(n.op in ("sum", "mean") and n.inputs[0] is use for n in use.uses)
    return summed and not _derives(other, site.weights)


def _derives(node: Node, root: Node) -> bool:
    stack, seen = [node], set()
    while stack:
        one = stack.pop()
        if one is root:
            return True
        if one.index in seen or one.index < root.index:
            continue
        seen.add(one.index)
        stack += one.inputs
    return False


def silent_broadcasts(trace: Trace, probe: Probe) -> list[Node]:
    """Elementwise operations that stretch an axis nobody wrote.

    Numbers, masks, learned vectors and tables may lack leading axes by custom; an array that
    comes from the user's content may not.
    """
    content = {f"input:{n}" for n in probe.floats() if not probe.is_parameter(n)}
    found = []
    for node in trace.nodes:
        if node.op not in ELEMENTWISE or len(node.inputs) < 2 or node.op == "setitem":
            continue
        rank = len(node.shape)
        for operand in node.inputs:
            if (
                0 < len(operand.shape) < rank
                and operand.sources & content
                and (int(np.prod(operand.shape)) > 1)
                and operand.dtype.startswith(("float", "bfloat", "complex"))
            ):
                found.append(node)
                break
    return found
