"""Where the shapes of a failed operation disagree, and which operand is to blame."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.check.live.nodes import LiveNode, moved, origin
from regard.check.trace.contraction import equation
from regard.check.trace.records import Node
from regard.check.trace.signatures import ELEMENTWISE

__all__ = ["Clash", "Culprit", "clash_of", "culprit_of", "fitting_orders"]

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
    """Return the operand at fault, or None where nothing tells which.

    It is the only one that fits with its axes in another order or with one put in; of two, the
    one whose axes were turned; else the one whose axis was computed rather than given. What
    stretches has to fit what it is stretched over, a mask its scores. A layer and what it is
    given have equal right, and so have a matrix and what it is multiplied with.
    """
    if node.op == "linear":
        return None
    places = {clash.first: clash.first_axis, clash.second: clash.second_axis}
    made = {i: origin(node.inputs[i], axis) for i, axis in places.items()}
    turned = {i: moved(node.inputs[i], axis) for i, axis in places.items()}
    able = _able(node, clash)
    fitting = {i: orders for i in able if (orders := fitting_orders(node, i))}
    if len(fitting) == 2:
        # Either could be turned; one was.
        fitting = {i: orders for i, orders in fitting.items() if turned[i] is not None}
    computed = [i for i in able if made[i].inputs and not getattr(made[i], "learned", False)]
    if len(fitting) == 1:
        ((index, orders),) = fitting.items()
        other = next(i for i in places if i != index)
        is_matrix = len(node.inputs[index].shape) == 2 < len(node.inputs[other].shape)
        if is_matrix and turned[index] is None and node.op not in ELEMENTWISE:
            is_computed = bool(node.inputs[other].inputs)
            return None if is_computed else Culprit(index, made[index], None, orders[0])
        return Culprit(
            index, made[index], turned[index], orders[0] if len(orders) == 1 else None
        )
    if len(able) == 1:
        return Culprit(able[0], made[able[0]])
    return Culprit(computed[0], made[computed[0]]) if len(computed) == 1 else None


def _able(node: Node, clash: Clash) -> list[int]:
    """Operands that can be at fault at all."""
    pair = [clash.first, clash.second]
    if node.op not in ELEMENTWISE:
        return pair
    ranks = [len(node.inputs[i].shape) for i in pair]
    masks = [node.inputs[i].dtype.endswith("bool") for i in pair]
    if ranks[0] != ranks[1]:
        return [pair[ranks.index(min(ranks))]]
    return [pair[masks.index(True)]] if masks[0] != masks[1] else pair


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


def fitting_orders(node: Node, index: int) -> list[tuple[int | None, ...]]:
    """Return the orders of one operand's axes, one put in, with which the shapes fit."""
    shapes = [n.shape for n in node.inputs]
    shape = shapes[index]
    rank = len(shape)
    orders: list[tuple[int | None, ...]] = []
    if node.op in ELEMENTWISE and rank + 1 == max(len(s) for s in shapes):
        orders = [
            (*range(at), None, *range(at, rank)) for at in range(rank + 1) if at or rank == 1
        ]
    same = tuple(range(rank))
    turned = itertools.permutations(same) if 2 <= rank <= _TURNED else ()
    # A mask that lacks an axis, rather than one that lies the wrong way round.
    found = [order for order in orders if _fits(node, index, order)]
    if found:
        return found
    # Turned so that it stretches over the other's axes, anything small would fit.
    whole = {s for s in shapes if len(s) == rank and node.op in ELEMENTWISE}
    return [
        order
        for order in turned
        if order != same
        and _fits(node, index, order)
        and (not whole or tuple(shape[i] for i in order) in whole)
    ]


def _fits(node: Node, index: int, order: tuple[int | None, ...]) -> bool:
    shapes = [n.shape for n in node.inputs]
    shapes[index] = tuple(1 if i is None else shapes[index][i] for i in order)
    return next(_clashes(node.op, node, shapes), None) is None
