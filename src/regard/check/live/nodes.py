"""Records of a run as the trace's nodes, so that one set of rules carries names of axes."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from regard.check.axes_carried import RULES, UNKNOWN, elementwise
from regard.check.live.frames import Place, place_of
from regard.check.live.ledger import Made
from regard.check.live.sizes import SizeNames
from regard.check.trace.contraction import equation
from regard.check.trace.records import Node
from regard.check.trace.signatures import named, operation

__all__ = ["LiveNode", "call_node", "moved", "name_axes", "name_of", "node_of", "origin"]

_DEEPEST = 400
_LAYOUT = frozenset({"transpose", "permute", "T", "mT", "movedim", "einsum"})


@dataclass(eq=False)
class LiveNode(Node):
    """A node that knows the file it was made in, and whether it is learned."""

    place: Place | None = None
    device: str = ""
    learned: bool = False


def node_of(made: Made, known: dict[int, LiveNode] | None = None) -> LiveNode:
    """Return the node of a record, with those it was made from as far as they are known.

    ``known`` has the nodes by the identity of their records, and takes the new ones.
    """
    known = {} if known is None else known
    # Chains are longer than Python's stack: parents first, by hand.
    stack = [made]
    while stack:
        one = stack[-1]
        if id(one) in known:
            stack.pop()
            continue
        missing = [m for m in _records(one) if id(m) not in known]
        if missing and len(stack) < _DEEPEST:
            stack += missing
            continue
        stack.pop()
        known[id(one)] = _node(one, [known[id(m)] for m in _records(one) if id(m) in known])
    return known[id(made)]


def _node(made: Made, inputs: list[LiveNode]) -> LiveNode:
    whole = len(inputs) == sum(1 for _ in _records(made))
    node = (
        call_node(made.function, made.arguments, made.keywords, inputs)
        if made.function is not None and whole
        else LiveNode(0, "input")
    )
    node.shape = tuple(int(n) for n in made.shape)
    node.dtype = str(made.dtype).removeprefix("torch.")
    node.learned = made.learned
    if made.code is not None:
        node.place = place_of(made.code, made.at)
    return node


def call_node(
    function: Any, arguments: Sequence[Any], keywords: Any, inputs: Sequence[LiveNode]
) -> LiveNode:
    """Return the node of a call whose tensors are records; its shape is not known yet."""
    op, inplace, turned = operation(name_of(function))
    plain = [_plain(a) for a in arguments if not isinstance(a, Made)]
    plain = [p for p in plain if p is not None or op in ("getitem", "setitem")]
    if op in ("getitem", "setitem") and len(arguments) > 1 and not plain:
        plain = ["tensor"]
    rest = {k: v for k, v in keywords.items() if not any(True for _ in _inside(v))}
    told = named(op, plain, rest)
    if inplace:
        told["inplace"] = True
    ordered = tuple(reversed(inputs)) if turned and len(inputs) == 2 else tuple(inputs)
    node = LiveNode(0, op, None, ordered, told)
    try:
        written = equation(op, ordered, told)
    except (IndexError, ValueError, TypeError):
        written = None
    if written is not None:
        told["written"] = written
    return node


def name_of(function: Any) -> str:
    """Return a function's name; a property's is that of the attribute."""
    name = str(getattr(function, "__name__", ""))
    if name in ("__get__", "__set__"):
        return str(getattr(getattr(function, "__self__", None), "__name__", ""))
    return name


def _plain(value: Any) -> Any:
    """An argument without tensors; None where it is tensors and nothing else."""
    if isinstance(value, Made):
        return "tensor"
    if type(value) in (tuple, list) and any(isinstance(v, Made) for v in value):
        mixed = tuple("tensor" if isinstance(v, Made) else v for v in value)
        return (
            None
            if all(v == "tensor" for v in mixed if isinstance(v, str))
            and all(isinstance(v, str) for v in mixed)
            else mixed
        )
    return value


def _records(made: Made) -> Iterator[Made]:
    yield from _inside(made.arguments)
    for value in made.keywords.values():
        yield from _inside(value)


def _inside(value: Any) -> Iterator[Made]:
    if isinstance(value, Made):
        yield value
    elif type(value) in (tuple, list):
        for one in value:
            yield from _inside(one)


def name_axes(nodes: Sequence[Node], names: SizeNames) -> None:
    """Name the axes of nodes and of all they were made from: carried, else by size."""
    stack = list(nodes)
    while stack:
        node = stack[-1]
        waiting = [n for n in node.inputs if not n.axes and n.shape]
        if not node.axes and waiting and len(stack) < _DEEPEST:
            stack += waiting
            continue
        stack.pop()
        if not node.axes:
            node.axes = _named(node, names)


def _named(node: Node, names: SizeNames) -> tuple[str, ...]:
    carried = _carried(node, names) if node.inputs else None
    if carried is None or len(carried) != len(node.shape):
        carried = [None] * len(node.shape)
    return tuple(
        name
        if name is not None and UNKNOWN not in name and names.size(name) in (size, None)
        else names.of(size)
        for name, size in zip(carried, node.shape, strict=True)
    )


def _carried(node: Node, names: Any) -> Sequence[str | None] | None:
    try:
        return RULES.get(node.op, elementwise)(node, names)
    except (IndexError, TypeError, ValueError, KeyError, StopIteration):
        return None


class _NoNames:
    """Sizes say nothing where only the way of an axis counts."""

    def of(self, size: int) -> str:
        return UNKNOWN

    def feature(self, size: int) -> str:
        return UNKNOWN

    def size(self, name: str) -> int | None:
        return None


def origin(node: Node, axis: int) -> Node:
    """Follow an axis back to the tensor that first had it."""
    return _way(node, axis)[-1][0]


def moved(node: Node, axis: int) -> Node | None:
    """Follow an axis back to the operation that put it where it stands."""
    way = _way(node, axis)
    for (here, at), (before, was) in itertools.pairwise(way):
        if at - len(here.shape) != was - len(before.shape) and here.op in _LAYOUT:
            return here
    return None


def _way(node: Node, axis: int) -> list[tuple[Node, int]]:
    way = [(node, axis)]
    for _ in range(_DEEPEST):
        before = _before(*way[-1])
        if before is None:
            break
        way.append(before)
    return way


def _before(node: Node, axis: int) -> tuple[Node, int] | None:
    if not node.inputs:
        return None
    kept = [n.axes for n in node.inputs]
    try:
        for i, operand in enumerate(node.inputs):
            operand.axes = tuple(f"m{i}_{j}" for j in range(len(operand.shape)))
        found = _carried(node, _NoNames())
    finally:
        for operand, axes in zip(node.inputs, kept, strict=True):
            operand.axes = axes
    if found is None or len(found) != len(node.shape) or axis >= len(found):
        return None
    mark = found[axis]
    if mark is None or not mark.startswith("m") or not mark[1:].replace("_", "").isdigit():
        return None
    i, j = (int(part) for part in mark[1:].split("_"))
    return node.inputs[i], j
