"""Where content gets lost, mixed or kept: examples, heads, state, gradients, results."""

import ast
from collections.abc import Iterator

import numpy as np

from regard.check.cause.view import Suspect, View
from regard.check.relations.base import Verdict
from regard.check.trace import record
from regard.check.trace.records import Node, Trace

__all__ = ["kept", "mixed", "returned", "split", "unread", "vanished"]

_RECURRENT = frozenset(
    {"gru", "lstm", "rnn_tanh", "rnn_relu", "gru_cell", "lstm_cell", "rnn_tanh_cell"}
    | {"rnn_relu_cell"}
)
_CUTS = frozenset({"detach", "data", "item", "round", "argmax", "floor", "sign"})


def mixed(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of examples that reach each other: the first node that mixes them."""
    first = _first_leak(view)
    found: list[Suspect] = []
    if first is not None:
        gathered = first.op in ("getitem", "index_select", "gather") and len(first.inputs) > 1
        back = view.text.last_return(view.case.loaded.entry)
        if gathered and back is not None:
            # Sorted on purpose; some results were put back in order, this one was not.
            what = f"`{verdict.about}` is not put back into the order of the arguments"
            node = view.output(verdict.about)
            found.append(Suspect(view.text.whole(back.lineno), node, what, kind="unsorted"))
        axes = ", ".join(first.axes)
        what = f"one example's content reaches another here, in ({axes})"
        found += view.blame(first, "operand", what, kind="leak")
    return found


def returned(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a wrong result: the operation that made it."""
    output = view.output(verdict.about)
    found: list[Suspect] = []
    back = view.text.last_return(view.case.loaded.entry)
    elsewhere = output is None or output.op == "input" or _serves(output, view)
    if elsewhere and back is not None and len(view.contract.out_names) > 1:
        span = view.text.whole(back.lineno)
        found.append(Suspect(span, output, f"another value is returned as `{verdict.about}`"))
    if output is not None:
        names = view.contract.out_names
        axes = ", ".join(output.axes)
        wanted: tuple[str, ...] = ()
        if verdict.about in names:
            wanted = view.contract.out_axes(verdict.about)
        what = f"`{verdict.about}` is made here as ({axes})" if verdict.rule == "RG104" else ""
        found += view.blame(output, "here", what, expected=wanted)
    return found


def _serves(output: Node, view: View) -> bool:
    """Whether a returned tensor is used for another result as well."""
    others = [o for o in view.trace.outputs if o is not None and o is not output]
    return output.index in view.trace.above(*others)


def unread(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of an argument or parameter that does not matter: where it was last used."""
    node = view.named(verdict.about)
    found: list[Suspect] = []
    for span in view.text.unmentioned(view.case.loaded.entry, verdict.about):
        found.append(Suspect(span, node, f"`{verdict.about}` is read nowhere, a sibling twice"))
    for one in view.trace.nodes:
        if one.op in _CUTS and one.index in view.live:
            found += view.blame(one, "here", "no gradient passes this")
    if node is None:
        return found
    for use in sorted(node.uses, key=lambda n: n.index):
        if use.op in _RECURRENT or use.index in view.live:
            found += view.blame(use, "operand" if node.op == "input" else "here")
    return found


def split(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a wrong number of heads: a layer's construction, or the split."""
    del verdict
    found: list[Suspect] = []
    for site in view.trace.sites:
        if site.fused and site.weights.span is not None:
            built = view.text.layer_at(site.weights.span)
            found += [Suspect(built, site.weights)] if built is not None else []
    for node in view.trace.nodes:
        views = node.op in ("view", "reshape", "unflatten") and node.inputs
        if views and "heads" not in node.axes and len(node.shape) > len(node.inputs[0].shape):
            found += view.blame(node, "axis")
    return found


def kept(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of state: recurrent calls, caches, writes into arguments."""
    found: list[Suspect] = []
    for node in view.trace.nodes:
        first = node.inputs[0] if node.inputs else None
        if node.arguments.get("inplace") and first is not None and _is_given(first):
            found += view.blame(node, "here", f"this writes into `{first.name}`")
    if "state" in verdict.relation or "carried" in verdict.message:
        for node in view.trace.nodes:
            if node.op in _RECURRENT:
                found += view.blame(node, "here", "the state of the step before is not passed")
                break
    found += _cached(view)
    for node in view.trace.nodes:
        if node.op in _RECURRENT:
            found += view.blame(node)
            break
    return found


def vanished(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of an axis that is lost at size one: the squeeze on the way."""
    found: list[Suspect] = []
    for size in _units(verdict, view):
        trace = view.recording(view.case.bench(0, **{size: 1}))
        ends = (
            trace.failed.inputs if trace.failed is not None else [o for o in trace.outputs if o]
        )
        chain = sorted(_all_above(ends), key=lambda n: n.index, reverse=True)
        for node in chain:
            if node.op == "squeeze" and node.arguments.get("dim") is None:
                before = node.inputs[0] if node.inputs else None
                gone = len(before.shape) - len(node.shape) if before is not None else 0
                if gone and node.span is not None:
                    what = f"every axis of size 1 is dropped here, at {size} = 1 that one too"
                    found += view.blame(node, "here", what, kind="squeezed")
        if trace.failed is not None and not found:
            found += view.blame(trace.failed)
    return found


def _units(verdict: Verdict, view: View) -> list[str]:
    axes = [
        a for a in view.contract.every_axis if a.startswith(("batch", "T", "layers", "heads"))
    ]
    return sorted(axes, key=lambda a: (a != verdict.about, f"{a} = 1" not in verdict.message))


def _all_above(nodes: Iterator[Node] | list[Node] | tuple[Node, ...]) -> list[Node]:
    found: dict[int, Node] = {}
    stack = list(nodes)
    while stack:
        one = stack.pop()
        if one.index not in found:
            found[one.index] = one
            stack += one.inputs
    return list(found.values())


def _is_given(node: Node) -> bool:
    while node.op in ("view", "transpose", "getitem", "T", "mT", "unsqueeze", "setitem") and (
        node.inputs
    ):
        node = node.inputs[0]
    return node.op == "input"


def _first_leak(view: View) -> Node | None:
    """The first node in which a change of one example moves another."""
    bench, contract = view.bench, view.contract
    args = dict(bench.probe.args)
    changed = False
    for name in bench.probe.floats():
        at = bench.probe.axis(name, "batch")
        if at is None:
            continue
        value = np.array(args[name])
        index = (slice(None),) * at + (0,)
        value[index] = bench.probe.noise(name, value[index].shape, 7)
        args[name], changed = value, True
    if not changed or "batch" not in contract.every_axis:
        return None
    other = record(bench.fresh(), bench.probe, bench.sizes, args=args)
    if not isinstance(other, Trace):
        return None
    for mine, its in zip(view.trace.nodes, other.nodes, strict=False):
        if mine.op != its.op or mine.shape != its.shape:
            return None
        if mine.op == "input" or mine.axes.count("batch") != 1 or mine.span is None:
            continue
        at = mine.axes.index("batch")
        with np.errstate(invalid="ignore"):
            moved = (
                np.abs(np.nan_to_num(mine.value - its.value.astype(mine.value.dtype))) > 1e-6
                if (mine.value.dtype.kind == "f")
                else mine.value != its.value
            )
        rows = np.moveaxis(moved, at, 0).reshape(mine.shape[at], -1).any(1)
        if rows[1:].any():
            return mine
    return None


def _cached(view: View) -> Iterator[Suspect]:
    """A store under a key: the key's making, when what is stored depends on more than it."""
    functions = [n for n in ast.walk(view.text.tree) if isinstance(n, ast.FunctionDef)]
    for function in functions:
        for node in ast.walk(function):
            if not isinstance(node, ast.Assign):
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Subscript) or not isinstance(
                target.value, ast.Attribute
            ):
                continue
            if isinstance(target.slice, ast.Name):
                made = [
                    n
                    for n in ast.walk(function)
                    if isinstance(n, ast.Assign)
                    and any(
                        isinstance(t, ast.Name) and t.id == target.slice.id for t in n.targets
                    )
                ]
                for one in made[-1:]:
                    yield Suspect(
                        view.text.span_of(one),
                        what="what is kept is found again by less than it was made from",
                        kind="cache",
                    )
            yield Suspect(view.text.span_of(node), kind="cache")
        for node in ast.walk(function):
            if isinstance(node, ast.If) and any(
                isinstance(n, ast.Attribute)
                and isinstance(n.value, ast.Name)
                and n.value.id == "self"
                for n in ast.walk(node.test)
            ):
                stores = [
                    n
                    for n in ast.walk(node)
                    if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
                ]
                if stores and function.name != "__init__":
                    yield Suspect(view.text.span_of(node.test), kind="cache")
