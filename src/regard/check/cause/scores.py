"""Where a score goes wrong: softmax, scale, form, step, layer, positions."""

import ast
from collections.abc import Iterator

import numpy as np

from regard.check.cause.masks import late
from regard.check.cause.view import Suspect, View
from regard.check.relations.base import Verdict
from regard.check.trace.records import Node, Site
from regard.check.trace.weighing import told_axis

__all__ = [
    "attentional",
    "features",
    "layer",
    "positions",
    "query",
    "recomputed",
    "scale",
    "softmax",
    "step",
]

_RECURRENT = ("gru", "lstm", "rnn")
_VIEWS = frozenset(
    {"getitem", "squeeze", "unsqueeze", "view", "reshape", "transpose", "permute", "T", "mT"}
    | {"stack", "cat", "flatten", "unflatten", "identity", "contiguous", "to"}
)
_POSITIONAL = frozenset({"arange", "cos", "sin", "outer", "linspace", "cumsum"})


def softmax(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of weights that are no distribution over the keys."""
    found: list[Suspect] = []
    sites = view.trace.sites
    if verdict.relation == "exponent-rises":
        exponents = [n for n in view.trace.nodes if n.op == "exp" and n.index in view.live]
        found += [s for n in exponents for s in view.blame(n, "operand")]
    for later in sites:
        for earlier in sites:
            if earlier is not later and earlier.weights.index in view.trace.above(later.scores):
                line = earlier.weights.line
                what = f"the scores of this softmax are weights already, of line {line}"
                if not _between_is_content(earlier, later):
                    found += view.blame(later.weights, "here", what, rule="RG302", kind="twice")
    found += late(view)
    output = view.output(view.contract.weights or "")
    if output is None and not sites:
        found += _unweighed(view)
    elif output is not None and not (sites and _from_site(output, view)):
        found += _other_weights(output, view)
    found += _twice_or_changed(output, view)
    return found


def _twice_or_changed(output: Node | None, view: View) -> list[Suspect]:
    """Each softmax, and what changes its weights on the way to the result."""
    found: list[Suspect] = []
    for site in view.trace.sites:
        if output is not None and output is not site.weights:
            changed = [n for n in _chain(output, site.weights) if _unlike(n, site)]
            for node in changed[-1:]:
                found += view.blame(node, "here", "the weights are changed after the softmax")
        found += view.blame(told_axis(site.weights), "axis")
    return found


def _other_weights(output: Node, view: View) -> Iterator[Suspect]:
    """Weights are returned that come from no softmax: where they got their value."""
    entry, sites = view.case.loaded.entry, view.trace.sites
    index = view.contract.out_names.index(view.contract.weights or "")
    span = view.text.returned_as(entry, index)
    maker = _maker(output)
    others = [u for u in output.uses if u.index in view.live]
    back = view.text.last_return(entry)
    if sites and others and back is not None:
        said = "another tensor is returned"
        yield Suspect(view.text.whole(back.lineno), output, said)
    if not sites and maker.op in ("div", "mul"):
        yield from view.blame(maker)
    if span is not None and not sites and span.line != maker.line:
        yield Suspect(span, output, "what is returned as weights is no softmax")
    yield from view.blame(maker)


def _maker(node: Node) -> Node:
    """What made the numbers of a result, through views; the last of them that has a name."""
    while node.inputs and node.op in _VIEWS:
        before = max(node.inputs, key=lambda n: n.index)
        if node.name and node.op not in ("stack", "cat") and not before.name:
            break
        node = before
    return node


def _from_site(output: Node, view: View) -> bool:
    above = view.trace.above(output)
    return any(s.weights.index in above for s in view.trace.sites)


def _unweighed(view: View) -> Iterator[Suspect]:
    """No softmax anywhere and no weights returned: what is summed with the values instead."""
    products = [
        n
        for n in view.trace.nodes
        if n.index in view.live and n.arguments.get("written") and n.op != "linear"
    ]
    for node in products[-1:]:
        for operand in node.inputs:
            if operand.name and set(operand.axes) & view.key_names and operand.span:
                span = view.text.assigned(operand.name, node.line)
                if span is not None:
                    yield Suspect(
                        span, operand, f"`{operand.name}` is no softmax of the scores"
                    )
        yield from view.blame(node)


def scale(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a wrong factor on the scores: the steps that scale, else the product."""
    del verdict
    found: list[Suspect] = []
    for site in view.trace.sites:
        steps = [n for n in site.pre_ops if n.op in ("mul", "div") and _by_number(n)]
        for operand in site.product.inputs[:2] if site.product is not None else ():
            steps += [n for n in _up(operand) if n.op in ("mul", "div") and _by_number(n)]
        found += _wrong_number(site, steps, view)
        for node in steps:
            found += view.blame(node, "here", _factor(site))
        # A factor after the softmax belongs before it.
        for node in site.post_ops:
            if node.op in ("mul", "div") and _by_number(node):
                found += view.blame(node)
        found += view.blame(site.product, "here", _factor(site))
        found += view.blame(site.weights)
    return found


def _wrong_number(site: Site, steps: list[Node], view: View) -> Iterator[Suspect]:
    """A scale of the right form and of the wrong size: where that number is read or kept."""
    if not site.slope or site.slope <= 0:
        return
    feature = features(site)
    for node, axis, line in view.reads():
        size = node.shape[axis]
        if size not in (1, feature) and abs(site.slope * size**0.5 - 1.0) < 1e-2:
            what = f"the scale is taken from the axis {node.axes[axis]}"
            yield Suspect(view.text.whole(line), node, what)
    if feature and abs(site.slope / feature**0.5 - 1.0) < 1e-2:
        return  # divided for multiplied: that is done where the scores are scaled
    for node in steps:
        for number in view.text.numbers_at(node.span) if node.span else ():
            if isinstance(number, ast.Attribute) and getattr(number.value, "id", "") == "self":
                built = view.text.constructor(number.attr)
                if built is not None:
                    yield Suspect(built, node, _factor(site))


def query(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of weights that the query does not reach: where queries and keys meet."""
    del verdict
    found: list[Suspect] = []
    for site in view.trace.sites:
        for node in (site.product, *_up(site.scores)):
            found += view.blame(node)
    return found


def step(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of the wrong state: what hands the query to the score."""
    del verdict
    found: list[Suspect] = []
    for site in view.trace.sites[1:2] or view.trace.sites[:1]:
        above = view.trace.above(site.scores)
        for node in reversed([n for n in view.trace.nodes if n.index in above]):
            if any(_is_state(i) for i in node.inputs) and not _is_state(node):
                what = f"the score reads `{_state_name(node)}`"
                found += view.blame(node, "operand", what)
                break
        found += view.blame(site.product, "operand")
    return found


def layer(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a wrong part of an argument: its first reader."""
    node = view.trace.inputs.get(verdict.about)
    found: list[Suspect] = []
    source = f"input:{verdict.about}"
    above = view.trace.above(*(s.scores for s in view.trace.sites))
    picks = [
        n
        for n in view.trace.nodes
        if n.index in above
        and source in n.sources
        and n.op in ("getitem", "select")
        and _picks(n)
    ]
    for pick in picks[-1:]:
        found += view.blame(pick, "here", f"this is the part of `{verdict.about}` that is read")
    for use in sorted(node.uses, key=lambda n: n.index) if node is not None else ():
        found += view.blame(use, "here", f"this is all that is read of `{verdict.about}`")
    return found


def positions(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of positions: where angles, distances or slopes are made and put in."""
    del verdict
    found: list[Suspect] = []
    for site in view.trace.sites:
        for node in (n for n in site.pre_ops if n.op in ("add", "sub")):
            found += _added(node, view)
    made = [n for n in view.trace.nodes if n.span and not n.sources and n.index in view.live]
    for node in made:
        span = view.text.blame(node, "axis")
        if node.op in _POSITIONAL and span != node.span:
            found.append(Suspect(span, node, "positions run along another axis"))
    for node, axis, line in view.reads():
        name = node.axes[axis]
        if name in ("heads", "batch", "kv_heads", "1") and _used_as_length(line, view):
            what = f"the number of positions is read from the axis {name}"
            found.append(Suspect(view.text.whole(line), node, what))
    for node in made:
        if node.op in ("cos", "sin"):
            found += view.blame(node, "operand")
    return found


def _added(node: Node, view: View) -> Iterator[Suspect]:
    """A step that adds a position bias to the scores, and the making of the bias."""
    for bias in node.inputs:
        for buffer in (b for b in _up_all(bias) if b.op == "buffer"):
            spans = view.text.buffer(buffer.name.removeprefix("self."))
            yield from (Suspect(s, buffer) for s in (*spans[1:], *spans[:1]))
        if bias.sources or bias.span is None:
            continue
        if node.op == "sub" and bias is node.inputs[1] and _falls(bias):
            yield from view.blame(node, "here", "the bias is taken off, not added")
        yield from _bias(bias, view)


def _bias(bias: Node, view: View) -> Iterator[Suspect]:
    """A bias on distance: its slopes if it falls with distance, else its making."""
    above = sorted((n for n in _up_all(bias) if n.span), key=lambda n: n.index)
    slopes = [n for n in above if n.axes in (("heads",), ("kv_heads",))]
    if slopes and _falls(bias):
        yield from view.blame(slopes[-1], "here", "the slopes of the heads are made here")
    products = [n for n in above if n.op == "mul" and len(n.inputs) == 2]
    for node in (*products[-1:], bias):
        yield from view.blame(node)


def recomputed(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of weights that differ from the declared score's and break nothing else."""
    del verdict
    found: list[Suspect] = []
    for site in view.trace.sites:
        steps = [n for n in site.pre_ops if n.op in ("add", "sub", "mul", "div")]
        for node in (*steps, site.product, site.weights):
            found += view.blame(node)
    return found


def attentional(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a result that is made of the right parts in another way."""
    output = view.output(verdict.about)
    return view.blame(_maker(output)) if output is not None else []


def _picks(node: Node) -> bool:
    """Whether an index takes one element of the first axis."""
    if node.op == "select":
        return True
    index = node.arguments.get("index")
    first = index[0] if isinstance(index, tuple) and index else index
    return isinstance(first, int | slice) and len(node.inputs) == 1


def features(site: Site) -> int:
    """How many features the product of query and key sums; 0 where there is none."""
    product = site.product
    if product is None or "written" not in product.arguments:
        return 0
    left, _, right = str(product.arguments["written"]).partition("->")
    letters, operand = left.split(",")[0], product.inputs[-2:][0]
    summed = [n for c, n in zip(letters, operand.shape, strict=False) if c not in right]
    return summed[-1] if summed else 0


def _factor(site: Site) -> str:
    if site.slope is None:
        return ""
    size = features(site)
    return f"scores are {site.slope:.4g} times the product of query and key, of size {size}"


def _by_number(node: Node) -> bool:
    return len(node.inputs) == 1 or any(int(np.prod(i.shape)) == 1 for i in node.inputs)


def _up(node: Node) -> Iterator[Node]:
    """A node and its first operands above it, up to a product."""
    for _ in range(12):
        if node.op == "input" or not node.inputs:
            return
        yield node
        if node.op in ("linear", "matmul", "bmm", "einsum"):
            return
        node = max(node.inputs, key=lambda n: n.index)


def _up_all(node: Node) -> list[Node]:
    found: dict[int, Node] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        if one.index not in found:
            found[one.index] = one
            stack += one.inputs
    return list(found.values())


def _chain(node: Node, root: Node) -> list[Node]:
    """From a node back to a root by operands that come from it, the root left out."""
    found = []
    for _ in range(20):
        if node is root or not node.inputs:
            break
        found.append(node)
        node = next((i for i in node.inputs if i is root), None) or max(
            node.inputs, key=lambda n: n.index
        )
    return found


def _unlike(node: Node, site: Site) -> bool:
    """Whether a step changed the numbers of the weights, not only their order."""
    a, b = np.sort(node.value.ravel()), np.sort(site.weights.value.ravel())
    return a.shape != b.shape or not np.allclose(a, b, atol=1e-6)


def _between_is_content(earlier: Site, later: Site) -> bool:
    """Whether contexts of one attention feed the next: a stack of layers, no softmax twice."""
    node = later.scores
    for _ in range(30):
        if node is earlier.weights:
            return False
        if node.arguments.get("written") is not None or not node.inputs:
            return True
        node = max(node.inputs, key=lambda n: n.index)
    return True


def _is_state(node: Node) -> bool:
    if node.op.startswith(_RECURRENT):
        return True
    if (
        node.op in ("getitem", "squeeze", "unbind", "select", "unsqueeze", "transpose")
        and node.inputs
    ):
        return _is_state(node.inputs[0])
    return node.op == "input" and "T" not in "".join(node.axes) and "batch" in node.axes


def _state_name(node: Node) -> str:
    return next((i.name for i in node.inputs if _is_state(i) and i.name), "another state")


def _falls(bias: Node) -> bool:
    """Whether a position bias is lower for keys farther back: then only its slopes can err."""
    value = bias.value
    if value.ndim < 2 or value.shape[-1] < 2 or value.shape[-2] < 2:
        return False
    far, near = value[..., -1, 0], value[..., -1, -1]
    return bool(np.all(np.nan_to_num(far - near) < 0))


def _used_as_length(line: int, view: View) -> bool:
    text = view.text.line(line)
    return any(w in text for w in ("arange", "[:", "length", "steps", "ones", "range"))
