"""What looks wrong in a recording by itself, whichever relation failed.

Each finder returns suspects that say which rules they would explain. None of them makes a
finding alone: a finding needs a failing relation.
"""

import contextlib
import re
from collections.abc import Callable, Iterator

import numpy as np

from regard.check.cause import odd_weights as weights
from regard.check.cause.explains import EVERY, MIXED, UNUSED, WEIGHED
from regard.check.cause.view import Suspect, View
from regard.check.naming import Names, factors
from regard.check.trace.records import Node

__all__ = ["oddities"]


def oddities(view: View) -> list[Suspect]:
    """Everything odd in the recording, the earliest first; found once a view."""
    if view.odd is None:
        found: list[Suspect] = []
        for finder in _FINDERS if view.trace.nodes else ():
            if view.trace.crash is not None and finder in (_twice, _unused):
                continue  # nothing reaches a result
            # An unusual recording must not lose the findings.
            with contextlib.suppress(IndexError, KeyError, ValueError, TypeError):
                found += finder(view)
        # The earliest is likeliest: what comes after it only carries it on.
        found.sort(key=lambda s: s.node.index if s.node is not None else 0)
        first: dict[tuple[str, int], Suspect] = {}
        for one in found:
            first.setdefault((one.kind, one.span.line), one)
        view.odd = list(first.values())
    return view.odd


def _regrouped(view: View) -> Iterator[Suspect]:
    """A view that keeps the numbers in place and gives an axis another stride."""
    names = view.names
    for node in view.trace.nodes:
        if node.op not in ("view", "reshape", "unflatten", "flatten") or not node.inputs:
            continue
        before = node.inputs[0]
        moved = _moved(before, node, names)
        if not moved:
            continue
        maker = node if not node.arguments.get("inside") else _maker_of_order(before)
        if maker is None:
            continue
        if "batch" in moved and _apart(view):
            continue  # an axis as long as some count of examples is taken for it
        if _is_by_chance(view, before, node):
            continue
        said = " and ".join(moved[:2])
        shown = [", ".join(n.axes) for n in (before, node)]
        what = (
            f"a {node.op} of ({shown[0]}) to ({shown[1]}) cuts across {said}: "
            "it keeps the order of the numbers, not of the axes"
        )
        rule = ""
        if "batch" in moved:
            rule = "RG801"
        elif any("heads" in a for a in (*before.axes, *node.axes)):
            above = view.trace.above(before)
            merged = any(s.weights.index in above for s in view.trace.sites)
            rule = "RG402" if merged else "RG401"
        yield from view.blame(maker, "here", what, kind="regrouped", explains=MIXED, rule=rule)


def _is_by_chance(view: View, before: Node, after: Node) -> bool:
    """Whether axes have their names by these sizes alone, as 16 = 4*heads has.

    A name with a number in it is reckoned from sizes: at others the axes must have it again.
    """
    nodes = (before, after)
    if not any(re.search(r"\d|[-+]", axis) for n in nodes for axis in n.axes if axis != "1"):
        return False
    other = view.recording(view.case.bench(1)).nodes
    if len(other) != len(view.trace.nodes):
        return False
    there = [other[view.trace.nodes.index(n)] for n in nodes]
    return any(a.op == b.op and a.axes != b.axes for a, b in zip(nodes, there, strict=True))


def _apart(view: View) -> bool:
    """Whether examples were seen to stay apart, which a cut across them would end."""
    states = [view.states[n] for n in ("example-alone", "examples-apart") if n in view.states]
    return bool(states) and all(state == "holds" for state in states)


def _moved(before: Node, after: Node, names: Names) -> list[str]:
    """Axes whose stride differs although a view cannot change it."""
    old, new = _strides(before, names), _strides(after, names)
    return [name for name, stride in old.items() if name in new and new[name] != stride]


def _strides(node: Node, names: Names) -> dict[str, int]:
    """How many numbers apart two neighbours on each named axis lie."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    stride = 1
    for axis, size in zip(reversed(node.axes), reversed(node.shape), strict=True):
        inner = 1
        parts = [p for p in factors(axis) if p not in ("1", "?")]
        sizes = [names.size(p) for p in parts]
        if None in sizes or int(np.prod([s or 1 for s in sizes])) != size:
            parts, sizes = [], []
        for part, length in zip(reversed(parts), reversed(sizes), strict=True):
            if not part.isdigit() and not part.startswith("d_"):
                twice |= {part} & set(found)
                found[part] = stride * inner
            inner *= length or 1
        stride *= size
    return {name: s for name, s in found.items() if name not in twice}


def _maker_of_order(node: Node) -> Node | None:
    """The operation of the user that put a product's factors into their order."""
    axes = {a for a in node.axes if len(factors(a)) > 1}
    while node.inputs and axes & set(node.inputs[0].axes):
        node = node.inputs[0]
    return node if node.span is not None else None


def _tiled(view: View) -> Iterator[Suspect]:
    """Repeats of a whole axis that meet, or ought to be, repeats of each of its elements."""
    contract = view.contract
    declared = {
        t
        for a in (*contract.inputs.values(), *(r.axes for r in contract.returns))
        for t in a.split()
    }
    known = {tuple(sorted(factors(t))): t for t in declared if len(factors(t)) > 1}
    for node in view.trace.nodes:
        if node.op not in ("repeat", "repeat_interleave", "cat") or not node.inputs:
            continue
        before = node.inputs[0]
        for axis in node.axes:
            order = factors(axis)
            wanted = known.get(tuple(sorted(order)))
            if len(order) > 1 and wanted is not None and wanted != axis:
                what = f"this makes the axis {axis}, where the code around it has {wanted}"
                expected = tuple(wanted if a == axis else a for a in node.axes)
                yield from view.blame(
                    node, "here", what, kind="tiled", explains=MIXED, expected=expected
                )
        if node.op == "repeat" and len(before.shape) == len(node.shape):
            for name, was, size in zip(before.axes, before.shape, node.shape, strict=True):
                if "kv_heads" in factors(name) and 1 < was < size:
                    what = (
                        "the key/value heads are tiled as a block, so that neighbouring query "
                        "heads read different ones"
                    )
                    yield from view.blame(node, "here", what, kind="tiled", explains=MIXED)


def _twice(view: View) -> Iterator[Suspect]:
    """One tensor joined with itself, or one computed twice where a sibling stays unused."""
    names = view.trace.nodes
    for node in names:
        if node.op in ("cat", "stack") and node.index in view.live:
            ids = [n.index for n in node.inputs]
            # Angles and other tables are doubled on purpose: they come from no argument.
            content = any(s.startswith("input:") for s in node.inputs[0].sources)
            if content and len(set(ids)) == 1 and 1 < len(ids) < 4:
                what = f"`{node.inputs[0].name or 'a tensor'}` is joined with itself"
                yield from view.blame(node, "operand", what, kind="twice", explains=UNUSED)
    unused = [n for n in _dead(view) if n.name]
    for dead in unused:
        siblings = {
            n.index for n in names if n.span == dead.span and n.op == dead.op and n is not dead
        }
        for sibling in (n for n in names if n.index in siblings):
            uses = [u for u in sibling.uses if u.index in view.live]
            alike = [
                u
                for u in uses
                if any(
                    u is not v and u.op == v.op and u.inputs == v.inputs and u.lines != v.lines
                    for v in uses
                )
            ]
            if alike:
                last = max(alike, key=lambda n: n.index)
                what = f"`{sibling.name}` is used twice here and above, `{dead.name}` never"
                line = next(
                    (a for a, b in zip(last.lines, alike[0].lines, strict=False) if a != b),
                    last.line,
                )
                yield Suspect(view.text.whole(line), last, what, kind="twice", explains=UNUSED)


def _dead(view: View) -> list[Node]:
    """Tensors that were made and reach no result, each chain by its last."""
    live = view.live
    return [
        n
        for n in view.trace.nodes
        if n.index not in live
        and n.span is not None
        and not n.uses
        and n.sources
        and not n.arguments.get("inside")
    ]


def _unused(view: View) -> Iterator[Suspect]:
    """A tensor that was made and that nothing uses."""
    for node in _dead(view):
        if node.op in ("max", "sort", "gru", "lstm", "chunk", "split", "unbind", "getitem"):
            continue  # one of several results is commonly left alone
        if node.op in ("size", "dim") or node.dtype.startswith("int"):
            continue
        name = f"`{node.name}`" if node.name else "what this makes"
        yield from view.blame(
            node, "here", f"{name} reaches no result", kind="unused", explains=UNUSED
        )


def _thinned(view: View) -> Iterator[Suspect]:
    """An einsum that reads a diagonal, or sums an axis of one operand by itself."""
    for node in view.trace.nodes:
        written = node.arguments.get("written")
        if node.op != "einsum" or not isinstance(written, str):
            continue
        left, _, right = written.partition("->")
        operands = left.split(",")
        for letters, operand in zip(operands, node.inputs, strict=False):
            again = next((c for c in letters if letters.count(c) > 1), "")
            if again:
                what = f"{again!r} stands twice for one operand: only its diagonal is read"
                yield from view.blame(
                    node, "here", what, kind="diagonal", explains=UNUSED | MIXED
                )
            alone = [c for c in letters if c not in right and left.count(c) == 1]
            names = [operand.axes[letters.index(c)] for c in alone]
            if len(operands) == 2 and alone and names[0] != "1":
                what = f"{names[0]} of `{operand.name or 'one operand'}` is summed by itself"
                rule = "RG404" if "heads" in names[0] else ""
                yield from view.blame(
                    node, "here", what, kind="alone", explains=WEIGHED, rule=rule
                )


def _stale(view: View) -> Iterator[Suspect]:
    """A tensor of an earlier call, with examples of its own."""
    if view.states.get("used-equals-fresh") == "holds":
        return  # made in this call, out of the recording's sight
    for node in view.trace.nodes:
        if node.op == "const" and "batch" in node.axes and len(node.shape) > 1:
            for use in node.uses:
                name = node.name or "a tensor"
                what = f"{name} was made in an earlier call and is used again"
                yield from view.blame(
                    use, "here", what, kind="stale", explains=EVERY, rule="RG803"
                )


def _idle(view: View) -> Iterator[Suspect]:
    """A squeeze of an axis that is not 1, an order of axes that is the old one."""
    for node in view.trace.nodes:
        if not node.inputs or node.inputs[0].shape != node.shape or node.span is None:
            continue
        before, dim = node.inputs[0], node.arguments.get("dim")
        if node.op == "squeeze" and isinstance(dim, int) and before.shape:
            axis = before.axes[dim % len(before.shape)]
            what = f"the axis {axis} is not 1, so that squeezing it does nothing"
        elif node.op == "permute" and _is_order(node.arguments.get("dims")):
            what = "these axes are in this order already"
        elif node.op == "transpose" and len(before.shape) > 1 and _same_two(node):
            what = "an axis is swapped with itself"
        else:
            continue
        yield from view.blame(node, "axis", what, kind="idle", explains=MIXED | {"RG104"})


def _is_order(dims: object) -> bool:
    return isinstance(dims, tuple) and list(dims) == list(range(len(dims)))


def _same_two(node: Node) -> bool:
    dims = [node.arguments.get(k) for k in ("dim0", "dim1")]
    rank = len(node.shape)
    return (
        all(isinstance(d, int) for d in dims)
        and len({d % rank for d in dims if isinstance(d, int)}) == 1
    )


_FINDERS: tuple[Callable[[View], Iterator[Suspect]], ...] = (
    *(_regrouped, _tiled, weights.summed_axis, _thinned, weights.dropped, _stale),
    *(weights.stretched, weights.bypassed, weights.narrowed, _idle, weights.logged),
    *(weights.inverse, _twice, _unused),
)
