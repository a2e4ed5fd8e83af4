"""What looks wrong by itself about scores, weights and contexts."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from regard.check.cause.explains import EVERY, NARROW, WEIGHED
from regard.check.cause.view import Suspect, View
from regard.check.naming import carried, factors
from regard.check.relations.layout import layout
from regard.check.trace.records import Site
from regard.check.trace.signatures import ELEMENTWISE
from regard.check.trace.weighing import has_keys_of_its_own, told_axis

__all__ = [
    "bypassed",
    "dropped",
    "inverse",
    "logged",
    "narrowed",
    "stretched",
    "summed_axis",
]

_KEY = re.compile(r"(^|_)(k|ks|keys?|memory|source|enc\w*)(_|$)", re.IGNORECASE)


def summed_axis(view: View) -> Iterator[Suspect]:
    """The softmax runs over one axis, and the values are summed over another."""
    unread = _are_unread(view)
    for which, site in enumerate(view.trace.sites):
        axis, rank = site.axis, len(site.weights.shape)
        names = [site.weights.axes[i] for i in _tuple(axis, rank)]
        wrong = bool(view.key_names) and not _is_keys(names, site, view)
        if wrong and len(view.trace.sites) > 1 and _contracted(site) in _tuple(axis, rank):
            continue  # it sums over what it weighs: attention the other way, beside this one
        if wrong and (unread or not _is_known(names, which, view)):
            continue
        if wrong:
            shown = " and ".join(names)
            what = f"the softmax runs over {shown}, not over {view.contract.key_axis}"
            told = told_axis(site.weights)
            # Inside a layer of the library nobody told the axis: the layer got it transposed.
            swapped = site.fused and names == ["batch"]
            rule = "RG106" if swapped else "RG301"
            for one in view.blame(
                told, "axis", what, kind="softmax-axis", explains=WEIGHED, rule=rule
            ):
                yield replace(one, node=site.weights)
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


def _are_unread(view: View) -> bool:
    """Whether what holds the keys reaches no result: then no axis is to blame."""
    token, contract = view.contract.key_axis or "", view.contract
    holders = [n for n in contract.inputs if token in contract.axes(n)]
    holders = [n for n in holders if contract.kinds.get(n) is None]
    reached = {s for o in view.trace.outputs if o is not None for s in o.sources}
    return bool(holders) and not any(f"input:{n}" in reached for n in holders)


def _is_known(names: Sequence[str], which: int, view: View) -> bool:
    """Whether a softmax's axis has a name of its own, and the same at other sizes.

    A number of the code's own (a kernel's width, how many are picked by rank) has a size
    that a name or a sum of names has as well, by chance.
    """
    parts = [p for n in names for p in factors(n) if p != "1"]
    if not all(p.isidentifier() for p in parts):
        return False
    other = view.recording(view.case.bench(1)).sites
    if which >= len(other):
        return True
    there, axes = other[which], other[which].weights.axes
    return [axes[i] for i in _tuple(there.axis, len(axes))] == list(names)


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
    if any(n == "?" for n in names) or _has_own_keys(site, view):
        return True
    token = view.contract.key_axis or ""
    if token not in site.weights.axes and site.weights.axes.count(view.contract.query_axis) > 1:
        return True  # the queries attend to each other beside
    parts = {p for n in names for p in factors(n)}
    if parts <= view.key_names | {"1"}:
        # A unit axis beside the keys is nothing; a unit axis alone makes every weight 1.
        return parts != {"1"} or all(n != token for n in site.weights.axes)
    declared = {t for a in view.contract.inputs.values() for t in a.split()}
    strange = {"batch", "heads", "kv_heads", "layers", "beam", view.contract.query_axis}
    return bool(set(names) <= declared and not set(names) & strange)


def _has_own_keys(site: Site, view: View) -> bool:
    """Whether the code joins keys of its own to the given ones, as sinks and memories are."""
    token = view.contract.key_axis
    if not token:
        return False
    return has_keys_of_its_own(site, int(view.bench.sizes.value(token)))


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


def stretched(view: View) -> Iterator[Suspect]:
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


def bypassed(view: View) -> Iterator[Suspect]:
    """A context that was made without the weights."""
    site, names = view.site, view.contract.out_names
    if site is None or not view.trace.sites:
        return
    contexts = set(layout(view.bench).contexts())
    for name, output in zip(names, view.trace.outputs, strict=False):
        if output is None or name not in contexts:
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


def narrowed(view: View) -> Iterator[Suspect]:
    """A softmax in fewer bits than the code runs in."""
    if view.contract.dtype not in ("float32", "float64"):
        return
    for site in view.trace.sites:
        if site.weights.dtype in ("float16", "bfloat16"):
            what = f"the softmax is computed in {site.weights.dtype}"
            yield from view.blame(
                site.weights, "here", what, kind="narrow", explains=NARROW, rule="RG603"
            )


def logged(view: View) -> Iterator[Suspect]:
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


def inverse(view: View) -> Iterator[Suspect]:
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


def dropped(view: View) -> Iterator[Suspect]:
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
