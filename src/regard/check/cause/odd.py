"""What looks wrong in a recording by itself, whichever relation failed.

Each finder returns suspects that say which rules they would explain. None of them makes a
finding alone: a finding needs a failing relation.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np

from regard.check.cause.view import Suspect, View
from regard.check.naming import Names, carried, factors
from regard.check.trace.records import Node, Site
from regard.check.trace.signatures import ELEMENTWISE
from regard.check.trace.weighing import told_axis

__all__ = ["oddities"]

_KEY = re.compile(r"(^|_)(k|ks|keys?|memory|source|enc\w*)(_|$)", re.IGNORECASE)
MIXED = frozenset(
    {"RG103", "RG106", "RG303", "RG305", "RG401", "RG402", "RG404", "RG504", "RG801", "RG802"}
    | {"RG202", "RG203", "RG204", "RG205", "RG104", "RG304", "RG701"}
)
WEIGHED = MIXED | {"RG301", "RG302", "RG206", "RG201", "RG207", "RG208", "RG501", "RG502"}
EVERY = WEIGHED | {"RG803", "RG102", "RG105", "RG701", "RG503", "RG603"}
NARROW = frozenset({"RG301", "RG303", "RG603", "RG504", "RG304", "RG401", "RG601", "RG602"})
UNUSED = frozenset({"RG701", "RG207", "RG305", "RG304", "RG504", "RG202", "RG201", "RG404"})


def oddities(view: View) -> list[Suspect]:
    """Everything odd in the recording, the more telling first."""
    found: list[Suspect] = []
    if not view.trace.nodes:
        return found
    finders = [_regrouped, _tiled, _summed_axis, _thinned, _dropped, _stale, _stretched]
    finders += [_bypassed, _narrowed, _idle, _logged, _inverse]
    if view.trace.crash is None:
        finders += [_twice, _unused]
    for finder in finders:
        found += finder(view)
    # The earliest is likeliest: what comes after it only carries it on.
    found.sort(key=lambda s: s.node.index if s.node is not None else 0)
    first: dict[tuple[str, int], Suspect] = {}
    for one in found:
        first.setdefault((one.kind, one.span.line), one)
    return list(first.values())


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


def _summed_axis(view: View) -> Iterator[Suspect]:
    """The softmax runs over one axis, and the values are summed over another."""
    for site in view.trace.sites:
        axis, rank = site.axis, len(site.weights.shape)
        names = [site.weights.axes[i] for i in _tuple(axis, rank)]
        wrong = bool(view.key_names) and not _is_keys(names, site, view)
        if wrong:
            shown = " and ".join(names)
            what = f"the softmax runs over {shown}, not over {view.contract.key_axis}"
            told = told_axis(site.weights)
            # Inside a layer of the library nobody told the axis: the layer got it transposed.
            swapped = site.fused and names == ["batch"]
            yield from view.blame(
                told,
                "axis",
                what,
                kind="softmax-axis",
                explains=WEIGHED,
                rule="RG106" if swapped else "RG301",
            )
        summed = _contracted(site)
        if summed is None or wrong or rank < 2:
            continue
        if summed not in _tuple(axis, rank) and _over_queries(site, view):
            what = f"the softmax runs over the axis of queries ({' and '.join(names)})"
            yield from view.blame(
                told_axis(site.weights),
                "axis",
                what,
                kind="softmax-axis",
                explains=WEIGHED,
                rule="RG301",
            )
        elif summed not in _tuple(axis, rank) and site.contraction is not None:
            maker = site.post_ops[-1] if site.post_ops else site.contraction
            maker = maker if maker.line == site.contraction.line else site.contraction
            other = site.weights.axes[summed]
            what = (
                f"values are summed over the axis of queries ({other}), while each query's "
                f"weights sum to 1 over {' and '.join(names)}"
            )
            yield from view.blame(
                maker, "here", what, kind="summed-axis", explains=WEIGHED, rule="RG102"
            )


def _over_queries(site: Site, view: View) -> bool:
    """Whether the softmax, and not the sum over values, took the wrong axis."""
    for relation in ("weights-sum-to-one", "softmax-over-keys"):
        if relation in view.states:
            return view.states[relation] == "fails"
    written = str(site.product.arguments.get("written", "")) if site.product else ""
    left, _, right = written.partition("->")
    operands = left.split(",")
    if len(operands) != 2 or len(right) != len(site.weights.shape):
        return False
    turned = bool(_KEY.search(site.query.name if site.query else ""))
    queries = operands[1] if turned else operands[0]
    keys = operands[0] if turned else operands[1]
    over = [right[i] for i in _tuple(site.axis, len(right))]
    return all(c in queries and c not in keys for c in over)


def _tuple(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    return axis if isinstance(axis, tuple) else (axis,)


def _is_keys(names: Sequence[str], site: Site, view: View) -> bool:
    """Whether a softmax runs over keys, or over other things that one attends to."""
    if any(n == "?" for n in names):
        return True
    token = view.contract.key_axis or ""
    parts = {p for n in names for p in factors(n)}
    if parts <= view.key_names | {"1"}:
        # A unit axis beside the keys is nothing; a unit axis alone makes every weight 1.
        return parts != {"1"} or all(n != token for n in site.weights.axes)
    declared = {t for a in view.contract.inputs.values() for t in a.split()}
    strange = {"batch", "heads", "kv_heads", "layers", "beam", view.contract.query_axis}
    return bool(set(names) <= declared and not set(names) & strange)


def _contracted(site: Site) -> int | None:
    """Which axis of the weights is summed with the values, by marks that travel along."""
    node = site.contraction
    if node is None or site.value is None or not node.inputs:
        return None
    last = site.post_ops[-1] if site.post_ops else site.weights
    marks = [f"#{i}" for i in range(len(site.weights.shape))]
    if node.op == "sum":
        product = node.inputs[0]
        there = carried((*site.post_ops, product), site.weights, marks)
        dims, rank = node.arguments.get("dim"), len(product.shape)
        gone = [d % rank for d in ([dims] if isinstance(dims, int) else dims or [])]
    else:
        there = carried(site.post_ops, site.weights, marks)
        left, _, right = str(node.arguments.get("written", "")).partition("->")
        letters = dict(zip([n.index for n in node.inputs], left.split(","), strict=False))
        gone = [i for i, c in enumerate(letters.get(last.index, "")) if c not in right]
    if there is None:
        return None
    hit = [there[i] for i in gone if there[i].startswith("#")]
    return int(hit[0][1:]) if len(hit) == 1 else None


def _twice(view: View) -> Iterator[Suspect]:
    """One tensor joined with itself, or one computed twice where a sibling stays unused."""
    names = view.trace.nodes
    for node in names:
        if node.op in ("cat", "stack") and node.index in view.live:
            ids = [n.index for n in node.inputs]
            if len(set(ids)) < len(ids) and len(set(ids)) == 1 and len(ids) < 4:
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
    for node in view.trace.nodes:
        if node.op == "const" and "batch" in node.axes and len(node.shape) > 1:
            for use in node.uses:
                name = node.name or "a tensor"
                what = f"{name} was made in an earlier call and is used again"
                yield from view.blame(
                    use, "here", what, kind="stale", explains=EVERY, rule="RG803"
                )


def _stretched(view: View) -> Iterator[Suspect]:
    """Two operands that stretch each other, so that one axis stands there twice."""
    for node in view.trace.nodes:
        if node.op not in ELEMENTWISE or len(node.inputs) < 2 or node.op == "setitem":
            continue
        ranks = {len(n.shape) for n in node.inputs if n.shape}
        if len(ranks) < 2 or any(n.shape == node.shape for n in node.inputs):
            continue
        if not any(s.startswith("input:") for s in node.sources):
            continue  # a table of pairs of positions
        double = next(
            (a for a in node.axes if a not in ("1", "?") and node.axes.count(a) > 1), ""
        )
        if double and all(n.axes.count(double) < 2 for n in node.inputs):
            shown = " and ".join(f"({', '.join(n.axes)})" for n in node.inputs[:2])
            what = f"{shown} stretch each other: {double} stands twice in the result"
            yield from view.blame(
                node, "here", what, kind="stretched", explains=WEIGHED, rule="RG103"
            )


def _bypassed(view: View) -> Iterator[Suspect]:
    """A context that was made without the weights."""
    site, names = view.site, view.contract.out_names
    if site is None or not view.trace.sites:
        return
    for name, output in zip(names, view.trace.outputs, strict=False):
        if output is None or name == view.contract.weights:
            continue
        above = view.trace.above(output)
        if any(s.weights.index in above for s in view.trace.sites):
            continue
        used = [u for s in view.trace.sites for u in s.scores.uses if u.index in above]
        for node in used[:1] or [output]:
            what = f"`{name}` is made without the weights"
            yield from view.blame(
                node, "operand", what, kind="bypassed", explains=WEIGHED, rule="RG304"
            )


def _narrowed(view: View) -> Iterator[Suspect]:
    """A softmax in fewer bits than the code runs in."""
    if view.contract.dtype not in ("float32", "float64"):
        return
    for site in view.trace.sites:
        if site.weights.dtype in ("float16", "bfloat16"):
            what = f"the softmax is computed in {site.weights.dtype}"
            yield from view.blame(
                site.weights, "here", what, kind="narrow", explains=NARROW, rule="RG603"
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


def _logged(view: View) -> Iterator[Suspect]:
    """Weights that are logarithms, where the contract wants weights."""
    if any(r.role == "log_weights" for r in view.contract.returns):
        return
    for site in view.trace.sites:
        logs = [
            n for n in view.trace.nodes if n.op == "log_softmax" and site.scores in n.inputs
        ]
        for node in logs:
            if not any(u.op in ("exp", "gather", "nll_loss") for u in node.uses):
                what = "log_softmax gives logarithms of weights, no weights"
                yield from view.blame(
                    node, "here", what, kind="logged", explains=WEIGHED | {"RG602", "RG601"}
                )


def _inverse(view: View) -> Iterator[Suspect]:
    """Scores in a denominator."""
    for site in view.trace.sites:
        path = site.pre_ops
        for before, node in itertools.pairwise((site.product, *path)):
            if node is None or node.op != "div" or before is None:
                continue
            one = len(node.inputs) == 1 and bool(node.arguments.get("turned"))
            two = len(node.inputs) == 2 and node.inputs[1] is before
            if (one or two) and before in node.inputs:
                what = "a number is divided by the scores, not the scores by a number"
                yield from view.blame(
                    node, "here", what, kind="inverse", explains=WEIGHED | {"RG602", "RG601"}
                )


def _dropped(view: View) -> Iterator[Suspect]:
    """Dropout that is on in evaluation, or before the softmax."""
    for node in view.trace.nodes:
        if node.op != "dropout":
            continue
        p = node.arguments.get("p", 0.5)
        on = bool(node.arguments.get("training", True)) and p
        if on and view.contract.mode == "eval":
            yield from view.blame(
                node,
                "here",
                "dropout is on in evaluation",
                kind="dropout",
                explains=EVERY,
                rule="RG803",
            )
    for site in view.trace.sites:
        for node in site.pre_ops:
            if node.op == "dropout":
                yield from view.blame(
                    node,
                    "here",
                    "dropout acts on the scores: a dropped key gets the weight of score 0",
                    kind="early-dropout",
                    explains=WEIGHED | {"RG803", "RG603"},
                )
