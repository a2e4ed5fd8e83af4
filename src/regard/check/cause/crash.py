"""Who is to blame for a crash: the operand at fault, and where its wrong axis came from."""

from collections.abc import Iterator
from dataclasses import replace

from regard.check.cause.odd import oddities
from regard.check.cause.view import Suspect, View
from regard.check.naming import factors
from regard.check.relations.base import Verdict
from regard.check.sizes import names_in
from regard.check.trace.records import Node, Trace
from regard.check.trace.signatures import ELEMENTWISE

__all__ = ["crash", "culprit", "meeting"]

_ODD_BEFORE = frozenset({"idle", "diagonal", "regrouped", "tiled", "alone"})
_RECURRENT = frozenset({"gru", "lstm", "rnn_tanh", "rnn_relu", "gru_cell", "lstm_cell"})
_LAYERS = frozenset({"linear", "conv1d", "conv2d"})
_SAME = frozenset(
    {"view", "reshape", "transpose", "permute", "T", "mT", "unsqueeze", "squeeze", "getitem"}
    | {"flatten", "unflatten", "chunk", "split", "unbind", "softmax", "tanh", "masked_fill"}
    | {"div", "mul", "dropout", "expand", "contiguous", "movedim", "relu"}
)
_MEETS = frozenset({"matmul", "bmm", "mm", "linear", "einsum", "baddbmm", "inner", "dot"})


def crash(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a run that raised, the likeliest first."""
    trace = view.trace
    failed = trace.failed
    found: list[Suspect] = []
    if failed is None or failed.span is None:
        return [Suspect(view.text.whole(line)) for line in verdict.lines if line]
    what = meeting(failed, trace)
    found += [replace(s, what=what) for s in oddities(view) if s.kind in _ODD_BEFORE]
    if failed.op == "linear" and len(failed.inputs) > 1:
        found += _layer(failed, view, what)
    elif failed.op in _RECURRENT:
        built = view.text.layer_at(failed.span)
        found += [Suspect(built, failed, what)] if built is not None else []
    elif failed.op in _MEETS or len(failed.inputs) > 1:
        found += _pair(failed, view, what)
    found += view.blame(failed, "here", what)
    found += [Suspect(view.text.whole(line), failed, what) for line in verdict.lines if line]
    return found


def meeting(failed: Node, trace: Trace) -> str:
    """Say which axes do not meet, in names."""
    del trace
    if len(failed.inputs) < 2:
        if failed.op in ("view", "reshape") and failed.inputs:
            axes = ", ".join(failed.inputs[0].axes)
            return f"({axes}) cannot be viewed in the shape that is asked for"
        return ""
    left, right = failed.inputs[0], failed.inputs[1]
    if failed.op == "linear":
        return (
            f"{_called(left)} ends in {_last(left)}, and {_called(right)} takes {_last(right)}"
        )
    pair = _clash(failed)
    shown = " and ".join(f"{_called(n)} ({', '.join(n.axes)})" for n in (left, right))
    if pair is None and failed.op in ELEMENTWISE:
        return ""  # the shapes are fine
    if pair is None:
        return f"{shown} do not go together in {failed.op}"
    a, b = pair
    return f"{shown} do not meet in {failed.op}: {a} against {b}"


def culprit(failed: Node) -> tuple[Node | None, tuple[str, ...]]:
    """The operand to show, and the axes it would have if it fitted the other."""
    turned = _turned(failed)
    if turned is not None:
        return turned
    made = [n for n in failed.inputs if n.op not in ("input", "param", "buffer")]
    node = max(made, key=lambda n: n.index, default=next(iter(failed.inputs), None))
    pair = _clash(failed)
    if node is None or pair is None:
        return node, ()
    mine = next((n for n in pair if n in node.axes), "")
    other = pair[1] if mine == pair[0] else pair[0]
    return node, tuple(other if a == mine else a for a in node.axes) if mine else ()


def _turned(failed: Node) -> tuple[Node, tuple[str, ...]] | None:
    """The one operand of a product that would fit with its last two axes exchanged."""
    if failed.op not in ("matmul", "bmm", "mm") or len(failed.inputs) != 2:
        return None
    left, right = failed.inputs
    if min(len(left.axes), len(right.axes)) < 2:
        return None
    fitting = [
        node
        for node, fits in (
            (left, left.axes[-2] == right.axes[-2]),
            (right, right.axes[-1] == left.axes[-1]),
        )
        if fits
    ]
    if len(fitting) != 1:
        return None
    node = fitting[0]
    return node, (*node.axes[:-2], node.axes[-1], node.axes[-2])


def _called(node: Node) -> str:
    return f"`{node.name}`" if node.name else f"the {node.op} of line {node.line}"


def _last(node: Node) -> str:
    return node.axes[-1] if node.axes else "nothing"


def _clash(failed: Node) -> tuple[str, str] | None:
    """The two axes that ought to be one."""
    if len(failed.inputs) < 2:
        return None
    left, right = failed.inputs[0], failed.inputs[1]
    if failed.op in ("matmul", "bmm", "mm") and left.shape and right.shape:
        at = -2 if len(right.shape) > 1 else -1
        if left.shape[-1] != right.shape[at]:
            return left.axes[-1], right.axes[at]
        for a, b, n, m in zip(
            left.axes[-3::-1],
            right.axes[-3::-1],
            left.shape[-3::-1],
            right.shape[-3::-1],
            strict=False,
        ):
            if n != m and 1 not in (n, m):
                return a, b
    for a, b, n, m in zip(
        reversed(left.axes),
        reversed(right.axes),
        reversed(left.shape),
        reversed(right.shape),
        strict=False,
    ):
        if n != m and 1 not in (n, m):
            return a, b
    return None


def _layer(failed: Node, view: View, what: str) -> Iterator[Suspect]:
    """A layer that does not take what it gets: its construction, or what it is given."""
    given, weight = failed.inputs[0], failed.inputs[1]
    wanted, has = set(names_in(_last(weight))), set(names_in(_last(given)))
    parts = {p for p in factors(_last(weight)) if not p.isdigit()}
    unmerged = len(parts) > 1 and any(p in parts for p in given.axes[:-1])
    # An axis before the last, times the last, is what the layer takes.
    takes, last = weight.shape[-1], given.shape[-1] if given.shape else 0
    unmerged = unmerged or any(n > 1 and n * last == takes for n in given.shape[1:-1])
    strange = any(n.startswith(("T", "batch")) for n in has)
    missing = _missing(given, weight, view)
    if unmerged or strange:
        # Axes that the layer sums over still stand apart, or positions among the features.
        origin = _origin(given, _last(given)) if strange else None
        if origin is None and given.name and given.span is not None:
            origin = given
        yield from view.blame(origin or failed, "operand", what)
    elif missing or (wanted - has and has - wanted and "+" in _last(weight)):
        # The layer was made for a content that it does not get.
        joined = list(_stranger(given, wanted))
        for node in joined:
            yield from view.blame(node, "operand", what)
        if not joined:
            yield from view.blame(failed, "operand", what)
    parameter = weight.name.removeprefix("self.").removesuffix(".weight")
    built = view.text.constructor(parameter) if weight.op == "param" else None
    if built is not None:
        yield Suspect(built, weight, what)
    yield from view.blame(given, "here", what)


def _missing(given: Node, weight: Node, view: View) -> bool:
    """Whether an axis that the layer is sized for belongs to a content it never gets."""
    wanted = set(names_in(_last(weight)))
    for name in view.trace.inputs:
        last = view.contract.axes(name)[-1:] if name in view.contract.inputs else ()
        features = set(names_in(last[0])) if last else set()
        if features & wanted and f"input:{name}" not in given.sources:
            return True
    return False


def _stranger(given: Node, wanted: set[str]) -> Iterator[Node]:
    """Parts of a joined tensor whose features the layer was not sized for."""
    node = given
    for _ in range(6):
        if node.op == "cat" or not node.inputs:
            break
        node = node.inputs[0]
    if node.op != "cat":
        return
    for part in node.inputs:
        if not set(names_in(_last(part))) & wanted:
            origin = part
            while origin.inputs and origin.op in ("expand", "repeat", "unsqueeze", "view"):
                if origin.inputs[0].op == "input":
                    break
                origin = origin.inputs[0]
            yield origin if origin.span is not None else node


def _pair(failed: Node, view: View, what: str) -> Iterator[Suspect]:
    """Two operands: the one with an axis that is out of place, where it got that."""
    clash = set(_clash(failed) or ())
    fused = failed.op == "multi_head_attention_forward"
    if _fits_turned(failed):
        yield from view.blame(failed, "here", what)
    for operand in failed.inputs:
        yield from _strange_axis(operand, clash, view, what, fused=fused)
    yield from _wrong_scores(failed, view, what)
    for operand in failed.inputs:
        # A length read from another axis.
        for node, axis, line in view.reads():
            name = node.axes[axis]
            apart = name.startswith(("heads", "kv_heads", "batch"))
            if name in clash and apart and name in operand.axes and not _content(operand):
                yield Suspect(view.text.whole(line), operand, what, kind="length")
    if failed.op in ("masked_fill", "where") and len(failed.inputs) > 1:
        yield from _mask(failed, clash, view, what)
    yield from _built(failed, clash, view, what)


def _strange_axis(
    operand: Node, clash: set[str], view: View, what: str, *, fused: bool
) -> Iterator[Suspect]:
    declared = {t for a in view.contract.inputs.values() for t in a.split()}
    declared |= {t for r in view.contract.returns for t in r.axes.split()}
    heads = next((n for n in ("heads", "kv_heads") if operand.axes.count(n) > 1), "")
    if heads and _product(operand) is not None:
        # Scores between heads: the product's operands have positions where heads belong.
        product = _product(operand)
        for part in product.inputs[:1] if product is not None else ():
            maker: Node | None = part
            while maker is not None and maker.op not in ("view", "reshape", "unflatten"):
                maker = maker.inputs[0] if maker.inputs else None
            yield from view.blame(maker, "here", what, kind="strange")
    if operand.axes.count("batch") > 1:
        node = operand
        while node.inputs and node.inputs[0].axes.count("batch") > 1:
            node = node.inputs[0]
        yield from view.blame(node, "axis", what, kind="strange")
    if "batch" in operand.axes[1:] and operand.axes[0] != "batch" and not fused:
        moved = _moved_batch(operand)
        if moved is not None:
            yield from view.blame(moved, "axis", what, kind="strange")
    for name in operand.axes:
        if name in declared:
            continue
        if _mixes(name) or (name in clash and (_odd(name) or "*" in name)):
            yield from view.blame(_origin(operand, name), "operand", what, kind="strange")
        elif name in clash and not _content(operand):
            yield from view.blame(_origin(operand, name), "here", what, kind="strange")


def _moved_batch(node: Node) -> Node | None:
    """The operation that took the batch axis from the front, where the input had it there."""
    mover: Node | None = None
    while node.inputs:
        before = max(node.inputs, key=lambda n: ("batch" in n.axes, n.index))
        if "batch" not in before.axes:
            return None
        if before.axes.index("batch") == 0 and node.axes.index("batch") != 0:
            mover = node
        node = before
    return mover if node.axes and node.axes[0] == "batch" else None


def _mask(failed: Node, clash: set[str], view: View, what: str) -> Iterator[Suspect]:
    """Scores against a mask of other positions, or with features left in it."""
    scores, mask = failed.inputs[:2] if failed.op != "where" else failed.inputs[1::-1]
    if any(a.startswith("d_") for a in scores.axes):
        return
    over = [a for a in mask.axes if a.startswith("d_")]
    names = [n for n in mask.axes if n in clash]
    for name in (*over, *names):
        if not _content(mask):
            for node, axis, line in view.reads():
                if node.axes[axis] == name:
                    yield Suspect(view.text.whole(line), mask, what, kind="length")
        origin = _origin(mask, name)
        if origin is not None and (over or name.startswith("T")):
            yield from view.blame(origin, "operand", what)
            return


def _product(node: Node) -> Node | None:
    """The product of two contents that a node carries on, if it does."""
    for _ in range(20):
        if node.arguments.get("written") is not None:
            return node if node.op != "linear" else None
        if not node.inputs:
            return None
        node = node.inputs[0]
    return None


def _wrong_scores(failed: Node, view: View, what: str) -> Iterator[Suspect]:
    """Weights or scores without an axis of keys: the product, or what was taken for scores."""
    keys = view.contract.key_axis
    for operand in failed.inputs:
        above = view.trace.above(operand)
        site = next((s for s in view.trace.sites if s.weights.index in above), None)
        masked = failed.op == "masked_fill" and operand is failed.inputs[0]
        if keys is None or keys in operand.axes or not (site or masked):
            continue
        product = _product(site.scores if site else operand)
        features = any(a.startswith("d_") for a in operand.axes[-2:])
        if product is not None and product.line != failed.line:
            yield from view.blame(product, "operand", what, kind="scores")
        elif site is not None and features:
            yield from view.blame(site.weights, "operand", what, kind="scores")


def _built(failed: Node, clash: set[str], view: View, what: str) -> Iterator[Suspect]:
    """An operand that a layer made in a size nothing else has: where the layer was built."""
    if failed.op in ("cat", "stack"):
        return
    for operand in failed.inputs:
        node = _through_views(operand)
        if node.op not in _LAYERS or len(node.axes) < 2:
            continue
        size = node.axes[-1 if node.op == "linear" else 1]
        others = [_through_views(n) for n in failed.inputs if n is not operand]
        features = all(n.startswith("d_") for n in clash)
        against = features and size in clash and any(n.op == "input" for n in others)
        lone = features and size in clash and _is_lone(node, failed, view)
        if against or lone or _unlikely(size):
            weight = next((i for i in node.inputs if i.op == "param"), None)
            name = weight.name.removeprefix("self.").removesuffix(".weight") if weight else ""
            built = view.text.constructor(name) if name else None
            if built is not None:
                yield Suspect(built, weight, what, kind="built")


def _is_lone(node: Node, failed: Node, view: View) -> bool:
    """Whether no other layer takes a layer's size, while one takes what it meets."""
    mine = {i.index for i in node.inputs}
    takes = [p.shape[-1] for p in view.trace.params.values() if p.shape and p.index not in mine]
    sizes = {n.shape[-1] for n in failed.inputs if n.shape} - {node.shape[-1]}
    return node.shape[-1] not in takes and any(s in takes for s in sizes)


def _unlikely(size: str) -> bool:
    """Whether a layer's size is named after something that is no size of features."""
    named = names_in(size)
    return "-" in size or any(n.startswith(("T", "batch")) for n in named)


def _through_views(node: Node) -> Node:
    for _ in range(12):
        if node.op not in _SAME or not node.inputs:
            break
        node = node.inputs[0]
    return node


def _odd(name: str) -> bool:
    """Whether a name adds things of two kinds, or has no meaning."""
    kinds = {"T" if p.startswith("T") else p[:2] for p in names_in(name)}
    return name == "?" or ("+" in name and len(kinds) > 1)


def _fits_turned(failed: Node) -> bool:
    """Whether a product would run with its operands the other way round."""
    if failed.op not in ("matmul", "bmm", "mm") or len(failed.inputs) != 2:
        return False
    left, right = failed.inputs
    if not left.shape or not right.shape:
        return False
    inner = left.shape[-2] if len(left.shape) > 1 else left.shape[0]
    return right.shape[-1] == inner


def _content(node: Node) -> bool:
    return any(s.startswith("input:") for s in node.sources)


def _mixes(name: str) -> bool:
    """Whether an axis is a product of positions and heads, which no attention needs."""
    parts = factors(name)
    return any(p.startswith("T") for p in parts) and any("heads" in p for p in parts)


def _origin(node: Node, name: str) -> Node | None:
    """The operation that gave a tensor an axis of that name."""
    for _ in range(40):
        before = next((i for i in node.inputs if name in i.axes), None)
        if before is None or before.op in ("input", "param", "buffer"):
            return node
        node = before
    return node
