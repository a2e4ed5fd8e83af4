"""Where a mask goes wrong: not applied, wrong pattern, polarity or axis, too late."""

import re
from collections.abc import Iterator
from typing import Literal

import numpy as np

from regard.check.cause.view import Suspect, View
from regard.check.probe import Mask
from regard.check.relations.base import Verdict
from regard.check.trace.records import Node, Site
from regard.check.trace.weighing import over, told_axis

__all__ = ["causal", "late", "masks", "numerics"]

Pattern = Literal["keep", "drop", "neither"]
_APPLIES = frozenset({"masked_fill", "where", "add", "sub", "mul", "setitem", "baddbmm"})
_TURNS = frozenset({"invert", "to", "eq", "ne", "lt", "le", "gt", "ge", "sub", "mul", "where"})
_DRAWS = frozenset(
    {"tril", "triu", "lt", "le", "gt", "ge", "setitem", "tri", "triu_indices", "tril_indices"}
    | {"and", "or", "where", "invert", "eq", "ne", "fill", "masked_fill"}
)
_KEEP = re.compile(
    r"(^|_)(keep|real|valid|allowed?|seen|visible|attend|present|is_token)(_|s?$)"
)
_DROP = re.compile(
    r"(^|_)(drop|pad(ded|ding)?|ignored?|blocked|masked|outside|forbid\w*)(_|s?$)"
)
_VIEWS = frozenset(
    {"unsqueeze", "getitem", "view", "reshape", "transpose", "permute", "expand", "T", "mT"}
    | {"repeat", "repeat_interleave", "squeeze"}
)


def masks(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a failing mask relation, about one mask argument."""
    about = verdict.about if verdict.about in view.contract.inputs else _only_mask(view)
    found: list[Suspect] = []
    if verdict.relation == "query-mask-matters":
        return _on_results(about, view)
    steps = list(_applications(view))
    mine = [(site, node, mask) for site, node, mask in steps if _comes_from(mask, about, view)]
    if not mine:  # written number by number, so that its source cannot be followed
        mine = [(site, node, mask) for site, node, mask in steps if not mask.sources]
    if verdict.rule == "RG206" or not mine:
        found += late(view)
    if not mine:
        found += _not_applied(about, steps, view)
        return found
    known = view.bench.probe.masks.get(about)
    for site, node, mask in mine:
        path = _path(mask, about)
        if known is not None:
            found += _wrong_pattern(path, known, view)
        found += _misplaced(site, node, mask, path, view)
    site, node, mask = mine[-1]
    path = _path(mask, about)
    turns = [n for n in path if n.op in _TURNS and n.span is not None]
    drawn = [n for n in path if n.dtype == "bool" and n.span is not None]
    if known is not None:
        found += _misnamed(path, known, view, turned=verdict.rule == "RG201")
    if verdict.rule == "RG201" and turns:
        what = f"`{about}` is read the wrong way round"
        found += view.blame(turns[-1], "here", what)
    for one in (*drawn[:1], *turns[-1:], node):
        found += view.blame(one)
    return found


def causal(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a failing causal or window relation: where the pattern is drawn."""
    found: list[Suspect] = []
    for _, node, mask in _applications(view):
        if mask is node:  # is_causal of a fused call
            found += view.blame(node)
            continue
        chain = sorted(_above(mask), key=lambda n: n.index)
        for buffer in (n for n in chain if n.op == "buffer"):
            found += [Suspect(s, buffer) for s in view.text.buffer(buffer.name[5:])]
        drawn = [n for n in chain if n.op in _DRAWS and n.span and not _scores(n)]
        by_kind = [n for n in drawn if n.op in ("tril", "triu", "lt", "le", "gt", "ge", "tri")]
        for one in (*by_kind[-1:], *drawn[-1:]):
            found += view.blame(one, "axis", f"`{one.name or one.op}` draws another pattern")
        found += view.blame(mask)
        found += view.blame(node)
    if view.site is not None:
        found += view.blame(view.site.weights)
    del verdict
    return found


def late(view: View) -> Iterator[Suspect]:
    """The first step after a softmax that takes weight away."""
    for site in view.trace.sites:
        for node in site.post_ops:
            if node.op in ("mul", "masked_fill", "where", "setitem") and _less(node, site):
                yield from view.blame(
                    node,
                    "here",
                    "the weights are changed after the softmax and sum to 1 no longer",
                    kind="late",
                )


def numerics(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of results that are not finite: the first number that is not, and its maker."""
    found: list[Suspect] = []
    bad = next(
        (n for n in view.trace.nodes if n.value.dtype.kind == "f" and np.isnan(n.value).any()),
        None,
    )
    if bad is not None and _all_forbidden(view):
        return causal(verdict, view)
    fine = view.states.get("results-finite") != "fails"  # only large scores overflow
    for site in view.trace.sites if verdict.rule == "RG602" else ():
        if site.weights.op in ("div", "mul"):
            for node in sorted(_above(site.weights), key=lambda n: n.index, reverse=True):
                if node.op == "exp" and (fine or not _shifted(node, site)):
                    what = "scores are exponentiated without their row's maximum taken off"
                    found += view.blame(node, "here", what)
                    break
    if bad is not None:
        infinite = [
            n
            for n in sorted(_above(bad), key=lambda n: n.index)
            if n.value.dtype.kind == "f" and np.isinf(n.value).any() and n.op != "masked_fill"
        ]
        for one in infinite[:1]:
            found += view.blame(
                one, "here", f"`{one.name or one.op}` is infinite in {one.dtype}"
            )
        found += view.blame(bad, "here", "the first NaN arises here")
    for site in view.trace.sites:
        for node in view.trace.nodes:
            if (
                node.op == "exp"
                and node.index < site.weights.index
                and node.inputs
                and (node.inputs[0].op != "sub")
            ):
                found += view.blame(
                    node, "here", "scores are exponentiated without their maximum taken off"
                )
        fills = [
            n for n in site.pre_ops if n.op in ("masked_fill", "where", "add", "mul", "sub")
        ]
        for node in fills[-1:]:
            found += view.blame(node)
        found += view.blame(told_axis(site.weights))
    return found


def _all_forbidden(view: View) -> bool:
    """Whether some row of scores holds no finite number: its softmax is NaN."""
    for site in view.trace.sites:
        value = site.scores.value
        if (
            isinstance(site.axis, int)
            and value.ndim
            and np.isneginf(value).all(site.axis).any()
        ):
            return True
    return False


def _shifted(node: Node, site: Site) -> bool:
    """Whether an exponent had its maximum over the softmax's own axis taken off."""
    top = next(
        (n for n in _above(node) if n.op in ("max", "max2") and n.index > site.scores.index),
        None,
    )
    if top is None or top.op == "max2" or not isinstance(site.axis, int):
        return top is not None
    dim = over(top.arguments.get("dim"), top.inputs[0])
    return dim is None or dim == site.axis


def _on_results(about: str, view: View) -> list[Suspect]:
    """Suspects of a mask of padded queries, which zeroes results: its last use, the return."""
    found: list[Suspect] = []
    name = f"input:{about}"
    mine = [n for n in view.trace.nodes if name in n.sources and n.index in view.live]
    for node in mine[-1:]:
        found += view.blame(node)
    back = view.text.last_return(view.case.loaded.entry)
    if back is not None:
        found.append(Suspect(view.text.whole(back.lineno)))
    return found


def _only_mask(view: View) -> str:
    kinds = {n: k for n, k in view.contract.kinds.items() if k not in ("weights", "bias")}
    return next(iter(kinds), "")


def _applications(view: View) -> Iterator[tuple[Site, Node, Node]]:
    """Steps that put a mask on scores: the site, the step, what it puts on."""
    for site in view.trace.sites:
        for node in site.pre_ops:
            if node.arguments.get("causal"):
                yield site, node, node
                continue
            if node.op not in _APPLIES or len(node.inputs) < 2:
                continue
            for operand in node.inputs:
                several = operand.dtype == "bool" or int(np.prod(operand.shape)) > 1
                if several and not _scores(operand):
                    yield site, node, operand


def _scores(node: Node) -> bool:
    """Whether a node holds scores: it comes from a product of two contents."""
    return any(
        n.arguments.get("written") is not None and n.op != "linear" and len(n.sources) > 0
        for n in _above(node)
    ) and node.dtype.startswith(("float", "bfloat"))


def _above(node: Node) -> list[Node]:
    found: dict[int, Node] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        if one.index not in found:
            found[one.index] = one
            stack += one.inputs
    return list(found.values())


def _comes_from(mask: Node, about: str, view: View) -> bool:
    source = view.trace.inputs.get(about)
    return source is not None and any(n is source for n in _above(mask))


def _path(mask: Node, about: str) -> list[Node]:
    """Nodes from a mask argument to where it is applied, in order."""
    name = f"input:{about}"
    above = sorted(_above(mask), key=lambda n: n.index)
    path = [n for n in above if name in n.sources and n.op != "input"]
    return path or [n for n in above if n.span is not None]


def _not_applied(
    about: str, steps: list[tuple[Site, Node, Node]], view: View
) -> Iterator[Suspect]:
    others = [(node, mask) for _, node, mask in steps if mask.sources]
    said = f"`{about}` never reaches the scores"
    for node, mask in others:
        # Another mask stands where this one should.
        chain = sorted((n for n in _above(mask) if n.span), key=lambda n: n.index)
        yield from view.blame(chain[0] if chain else node, "operand", said)
    if view.site is not None:
        yield from view.blame(view.site.weights, "here", said)


def _wrong_pattern(path: list[Node], known: Mask, view: View) -> Iterator[Suspect]:
    """The first step after which the mask marks other keys than the argument does."""
    if any(n.op == "getitem" and len(n.inputs) > 1 for n in path):
        return  # sorted: the rows are other examples
    for node in path:
        if node.op == "setitem" and any(
            u.op == "setitem" and u.inputs[:1] == (node,) for u in node.uses
        ):
            continue  # written row by row: the last one counts
        if node.inputs and _pattern(node, known) == "neither":
            name = node.name or "the mask"
            what = f"`{name}` marks other positions than `{known.name}` does"
            yield from view.blame(node, "here", what, kind="pattern")
            return


def _misnamed(path: list[Node], known: Mask, view: View, *, turned: bool) -> Iterator[Suspect]:
    """A mask whose name says the reverse of what it marks."""
    named: Node | None = None
    for node in path:
        marks = _pattern(node, known) if node.inputs else None
        said = "keep" if _KEEP.search(node.name) else "drop" if _DROP.search(node.name) else ""
        if marks not in ("keep", "drop") or not said:
            continue
        named = node
        if said != marks:
            does = "forbids" if marks == "drop" else "allows"
            what = f"`{node.name}` is true where `{known.name}` {does}"
            yield from view.blame(node, "here", what, kind="misnamed")
            return
    if named is not None and turned:
        # The names are right, so that what is done with the last of them is not.
        for use in named.uses[:1]:
            yield from view.blame(use)


def _pattern(node: Node, known: Mask) -> Pattern | None:
    """Whether a two-valued node marks the real keys, the others, or something else."""
    value = node.value
    once = node.axes.count(known.axis) == 1 and node.axes.count("batch") == 1
    if not once or value.size == 0 or not _two_valued(node):
        return None
    at = (node.axes.index("batch"), node.axes.index(known.axis))
    marks = np.moveaxis(value != 0, at, (0, 1))
    marks = marks.reshape(*marks.shape[:2], -1)
    marked = marks[..., 0]
    if marked.shape != known.real.shape or not (marks == marked[..., None]).all():
        return None
    if (marked == known.real).all():
        return "keep"
    return "drop" if (marked == ~known.real).all() else "neither"


def _two_valued(node: Node) -> bool:
    """Whether a node says yes or no: booleans, bytes, or zero and one other number."""
    if node.dtype == "bool" or node.dtype.startswith("uint"):
        return True
    levels = np.unique(node.value)
    return len(levels) <= 2 and bool((levels == 0).any())


def _misplaced(
    site: Site, node: Node, mask: Node, path: list[Node], view: View
) -> Iterator[Suspect]:
    """A mask that lies along another axis of the scores than the keys."""
    if not isinstance(site.axis, int) or len(mask.shape) > len(node.shape):
        return
    # Counted from the end: leading axes may have been merged on the way to the softmax.
    at = site.axis - len(site.weights.shape) + len(mask.shape)
    if at < 0 or mask.shape[at] != 1:
        return
    shaped = [n for n in path if n.op in _VIEWS and n.span is not None]
    axes = ", ".join(mask.axes)
    what = f"the mask has the axes ({axes}): it does not tell one key from another"
    place = shaped[-1] if shaped else node
    yield from view.blame(place, "here", what, kind="misplaced", rule="RG208")


def _less(node: Node, site: Site) -> bool:
    if not isinstance(site.axis, int) or len(node.shape) != len(site.weights.shape):
        return False
    total = node.value.sum(site.axis)
    return bool((np.abs(total - 1.0) > 1e-3).any())
