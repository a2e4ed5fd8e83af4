"""Who is to blame for a crash: the operand at fault, and where its wrong axis came from."""

from collections.abc import Iterator

from regard.check.cause.view import Suspect, View
from regard.check.naming import factors
from regard.check.relations.base import Verdict
from regard.check.sizes import names_in
from regard.check.trace.records import Node, Trace

__all__ = ["crash", "meeting"]

_MEETS = frozenset({"matmul", "bmm", "mm", "linear", "einsum", "baddbmm", "inner", "dot"})


def crash(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a run that raised, the likeliest first."""
    trace = view.trace
    failed = trace.failed
    found: list[Suspect] = []
    if failed is None or failed.span is None:
        return [Suspect(view.text.whole(line)) for line in verdict.lines if line]
    what = meeting(failed, trace)
    if failed.op == "linear" and len(failed.inputs) > 1:
        found += _layer(failed, view, what)
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
    if pair is None:
        return f"{shown} do not go together in {failed.op}"
    a, b = pair
    return f"{shown} do not meet in {failed.op}: {a} against {b}"


def _called(node: Node) -> str:
    return f"`{node.name}`" if node.name else f"the {node.op} of line {node.line}"


def _last(node: Node) -> str:
    return node.axes[-1] if node.axes else "nothing"


def _clash(failed: Node) -> tuple[str, str] | None:
    """The two axes that ought to be one."""
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
    """A layer that does not take what it gets: its construction, unless content is missing."""
    given, weight = failed.inputs[0], failed.inputs[1]
    missing = _missing(given, weight, view)
    parameter = weight.name.removeprefix("self.").removesuffix(".weight")
    built = view.text.constructor(parameter) if weight.op == "param" else None
    wanted = set(names_in(_last(weight)))
    has = set(names_in(_last(given)))
    if missing or (wanted and has and wanted - has and has - wanted and _sum(weight)):
        # The layer's size is a sum of two contents; one of them is not what was joined.
        for node in _stranger(given, wanted, view):
            yield from view.blame(node, "operand", what)
    if built is not None:
        yield Suspect(built, weight, what)
    yield from view.blame(given, "here", what)


def _sum(weight: Node) -> bool:
    return "+" in _last(weight)


def _missing(given: Node, weight: Node, view: View) -> bool:
    """Whether an axis that the layer is sized for belongs to a content it never gets."""
    wanted = set(names_in(_last(weight)))
    for name in view.trace.inputs:
        last = view.contract.axes(name)[-1:] if name in view.contract.inputs else ()
        features = set(names_in(last[0])) if last else set()
        if features & wanted and f"input:{name}" not in given.sources:
            return True
    return False


def _stranger(given: Node, wanted: set[str], view: View) -> Iterator[Node]:
    """Parts of a joined tensor whose features the layer was not sized for."""
    node = given
    for _ in range(6):
        if node.op == "cat" or not node.inputs:
            break
        node = node.inputs[0]
    for part in node.inputs:
        if not set(names_in(_last(part))) & wanted:
            origin = part
            while origin.inputs and origin.op in ("expand", "repeat", "unsqueeze", "view"):
                first = origin.inputs[0]
                if first.op == "input":
                    break
                origin = first
            yield origin
    del view


def _pair(failed: Node, view: View, what: str) -> Iterator[Suspect]:
    """Two operands: the one with an axis nobody declared, at the place that gave it that."""
    clash = set(_clash(failed) or ())
    declared = {t for a in view.contract.inputs.values() for t in a.split()}
    declared |= {t for r in view.contract.returns for t in r.axes.split()}
    for operand in failed.inputs:
        for name in operand.axes:
            if name in declared or not (name in clash or _mixes(name)):
                continue
            origin = _origin(operand, name)
            if "*" in name or "+" in name or "?" in name:
                yield from view.blame(origin, "operand", what, kind="strange")
    for operand in failed.inputs:
        # A length read from another axis.
        for node, axis, line in view.reads():
            name = node.axes[axis]
            if name in clash and name in operand.axes and not _content(operand):
                yield Suspect(view.text.whole(line), operand, what, kind="length")
    for operand in failed.inputs:
        origin = next((_origin(operand, n) for n in clash if n in operand.axes), None)
        if origin is not None and origin.line != failed.line and operand.dtype == "bool":
            yield from view.blame(origin, "operand", what)


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
        if before is None:
            return node
        if before.op in ("input", "param", "buffer"):
            return node
        node = before
    return node
