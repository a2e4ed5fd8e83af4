"""Where the shapes of a failed operation disagree, and which operand is to blame."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.check.live.nodes import LiveNode, moved, origin
from regard.check.trace.contraction import equation
from regard.check.trace.records import Node
from regard.check.trace.signatures import ELEMENTWISE

__all__ = ["Clash", "Culprit", "clash_of", "culprit_of"]

_TURNED = 4  # axes whose orders are tried


@dataclass(frozen=True)
class Clash:
    """Two axes that had to be of one size: axis ``first_axis`` of operand ``first``, ..."""

    first: int
    first_axis: int
    second: int
    second_axis: int


@dataclass(frozen=True)
class Culprit:
    """The operand at fault.

    ``made`` first had the wrong axis, ``turned`` is the operation that put it where it stands.
    ``order`` is the only order of the operand's axes in which the shapes go together, None in
    it for a new axis of size 1; that says nothing about meaning.
    """

    operand: int
    made: Node
    turned: Node | None = None
    order: tuple[int | None, ...] | None = None


def clash_of(node: Node) -> Clash | None:
    """Return the first pair of axes that disagree in an operation that raised."""
    return next(_clashes(node.op, node, [n.shape for n in node.inputs]), None)


def culprit_of(node: Node, clash: Clash) -> Culprit | None:
    """Return the operand at fault, or None where both have equal right.

    It is the only one that fits with its axes in another order or with one put in; of two, the
    one whose axes were turned; else the one whose axis was computed rather than given.
    """
    places = {clash.first: clash.first_axis, clash.second: clash.second_axis}
    made = {i: origin(node.inputs[i], axis) for i, axis in places.items()}
    turned = {i: moved(node.inputs[i], axis) for i, axis in places.items()}
    fitting = {i: forms for i in places if (forms := list(_fitting(node, i)))}
    if len(fitting) == 2 and node.op in ELEMENTWISE:
        # A mask that lacks an axis, rather than scores that lie the wrong way round.
        put_in = {i: f for i, f in fitting.items() if any(None in order for order in f)}
        fitting = {i: [o for o in f if None in o] for i, f in put_in.items()} or fitting
    if len(fitting) == 2:
        # Either could be turned; one was.
        fitting = {i: forms for i, forms in fitting.items() if turned[i] is not None}
    if len(fitting) == 1:
        ((index, forms),) = fitting.items()
        return Culprit(index, made[index], turned[index], forms[0] if len(forms) == 1 else None)
    computed = [i for i in places if made[i].inputs and not getattr(made[i], "learned", False)]
    if node.op == "linear":
        computed = [i for i in computed if i == 0]
    return Culprit(computed[0], made[computed[0]]) if len(computed) == 1 else None


def _clashes(op: str, node: Node, shapes: Sequence[tuple[int, ...]]) -> Iterator[Clash]:
    if op in ("cat", "stack"):
        yield from _joined(op, node, shapes)
        return
    written = _equation(op, node, shapes)
    if written is not None:
        # A bias comes first in `addmm` and last in `linear`.
        count, added = written.count(",") + 1, op in ("addmm", "baddbmm")
        ends = len(shapes) - count if added else 0
        for clash in _contracted(written, shapes[ends : ends + count]):
            yield Clash(
                clash.first + ends, clash.first_axis, clash.second + ends, clash.second_axis
            )
        return
    if op in ELEMENTWISE:
        for i, first in enumerate(shapes):
            for j in range(i + 1, len(shapes)):
                second = shapes[j]
                for back in range(1, min(len(first), len(second)) + 1):
                    if first[-back] != second[-back] and 1 not in (first[-back], second[-back]):
                        yield Clash(i, len(first) - back, j, len(second) - back)
    if op == "scaled_dot_product_attention" and len(shapes) >= 3:
        query, key, value = shapes[:3]
        if query[-1] != key[-1]:
            yield Clash(0, len(query) - 1, 1, len(key) - 1)
        if len(key) > 1 and len(value) > 1 and key[-2] != value[-2]:
            yield Clash(1, len(key) - 2, 2, len(value) - 2)


def _equation(op: str, node: Node, shapes: Sequence[tuple[int, ...]]) -> str | None:
    stand_ins = [LiveNode(0, "input", shape=shape) for shape in shapes]
    try:
        return equation(op, stand_ins, node.arguments)
    except (IndexError, ValueError, TypeError):
        return None


def _contracted(written: str, shapes: Sequence[tuple[int, ...]]) -> Iterator[Clash]:
    left, _, right = written.partition("->")
    parts = left.split(",")
    where: dict[str, tuple[int, int]] = {}
    found = []
    for i, (letters, shape) in enumerate(zip(parts, shapes, strict=False)):
        for axis, (letter, size) in enumerate(zip(letters, shape, strict=False)):
            if letter not in where:
                where[letter] = (i, axis)
                continue
            j, other = where[letter]
            before = shapes[j][other]
            # Leading axes of size 1 stretch; the summed one does not.
            if size != before and (letter not in right or 1 not in (size, before)):
                found.append((letter in right, Clash(j, other, i, axis)))
    found.sort(key=lambda pair: pair[0])  # the summed axis says most
    yield from (clash for _, clash in found)


def _joined(op: str, node: Node, shapes: Sequence[tuple[int, ...]]) -> Iterator[Clash]:
    if not shapes:
        return
    dim = node.arguments.get("dim", 0)
    rank = len(shapes[0])
    for i, shape in enumerate(shapes[1:], 1):
        if len(shape) != rank:
            continue
        for axis in range(rank):
            joins = op == "cat" and isinstance(dim, int) and axis == dim % rank
            if shape[axis] != shapes[0][axis] and not joins:
                yield Clash(0, axis, i, axis)


def _fitting(node: Node, index: int) -> Iterator[tuple[int | None, ...]]:
    """Orders of one operand's axes in which the shapes go together."""
    shapes = [n.shape for n in node.inputs]
    shape = shapes[index]
    rank = len(shape)
    orders: list[tuple[int | None, ...]] = []
    if 2 <= rank <= _TURNED and node.op != "linear":
        same = tuple(range(rank))
        orders += [order for order in itertools.permutations(same) if order != same]
    if node.op in ELEMENTWISE and rank + 1 == max(len(s) for s in shapes):
        orders += [
            (*range(at), None, *range(at, rank)) for at in range(rank + 1) if at or rank == 1
        ]
    for order in orders:
        changed = tuple(1 if i is None else shape[i] for i in order)
        tried = [changed if i == index else s for i, s in enumerate(shapes)]
        if next(_clashes(node.op, node, tried), None) is None:
            yield order
