"""An operation that raised, or that stretched an axis, told from the records of the run."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from regard.check.live.frames import (
    Place,
    locals_of,
    names_in,
    operands,
    place_of,
    user_frame,
    user_frames,
)
from regard.check.live.ledger import Ledger, Made
from regard.check.live.nodes import LiveNode, call_node, name_axes, node_of, origin
from regard.check.live.note import Failure, shown_axes
from regard.check.live.sizes import names_of_sizes

__all__ = ["failure_in", "stretch_of", "stretch_text"]

_WRITTEN = frozenset(
    {"unsqueeze", "getitem", "view", "reshape", "expand", "input", "unflatten"}
)
_FACTORIES = frozenset({"arange", "linspace", "eye", "zeros", "ones", "full", "tensor"})


def failure_in(
    ledger: Ledger,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    *,
    frame: FrameType | None,
    declared: Mapping[str, int],
) -> Failure | None:
    """Return the failure of a call that raised, seen from the frame that made it."""
    user = user_frame(frame)
    if user is None:
        return None
    tensors = list(_tensors(ledger, (*arguments, *keywords.values())))
    nodes: dict[int, LiveNode] = {}
    inputs = [node_of(ledger.find(tensor), nodes) for tensor in tensors]
    for one, tensor in zip(inputs, tensors, strict=True):
        one.device = str(tensor.device)
    given = ledger.given(arguments)
    named = {key: ledger.given(value) for key, value in keywords.items()}
    node = call_node(function, given, named, inputs)
    place = place_of(user.f_code, user.f_lasti)
    texts = _texts(user, place, tensors, direct=user is frame)
    names = [texts.get(i, "") for i in range(len(tensors))]
    turned = list(node.inputs) != inputs
    names = names[::-1] if turned else names
    frames = list(user_frames(user))
    for outer in frames:
        for key, name in names_in(outer).items():
            made = ledger.peek(key)
            if made is not None and id(made) in nodes:
                nodes[id(made)].name = nodes[id(made)].name or name
    return Failure(node, tuple(names), place, names_of_sizes(frames, declared))


def stretch_text(
    ledger: Ledger, made: Made, frame: FrameType | None, declared: Mapping[str, int]
) -> str:
    """Return a line on an operation that stretched an axis nobody wrote, "" if none did."""
    nodes: dict[int, LiveNode] = {}
    node = node_of(made, nodes)
    frames = list(user_frames(user_frame(frame)))
    for table in _tables(frames):
        record = ledger.peek(id(table))
        if record is not None and id(record) in nodes:
            nodes[id(record)].learned = True
    return stretch_of(node, frames, declared)


def stretch_of(node: LiveNode, frames: Sequence[FrameType], declared: Mapping[str, int]) -> str:
    """Return a line on a node whose operation stretched an axis nobody wrote, or ""."""
    rank, shape = len(node.shape), node.shape
    shapes = [(1,) * (rank - len(n.shape)) + n.shape for n in node.inputs]
    grown = [[a for a in range(rank) if s[a] == 1 and shape[a] > 1] for s in shapes]
    both = sum(bool(axes) and _size(n) > 1 for axes, n in zip(grown, node.inputs, strict=True))
    if not any(
        _is_silent(n, axes, rank, both=both > 1)
        for n, axes in zip(node.inputs, grown, strict=True)
    ):
        return ""
    name_axes([node], names_of_sizes(frames, declared))
    told = " and ".join(shown_axes(n) for n in node.inputs if n.shape)
    place = node.place
    what = f"`{place.text}`" if place and 0 < len(place.text) <= 40 else node.op
    return f"{place} {what} stretches {told} to {shown_axes(node)}"


def _is_silent(node: Any, grown: Sequence[int], rank: int, *, both: bool) -> bool:
    if (
        not grown
        or _size(node) <= 1
        or not node.dtype.removeprefix("np:").startswith(("float", "bfloat", "complex"))
    ):
        return False  # numbers and masks
    missing = rank - len(node.shape)
    if missing:
        if _is_learned(node):
            return False
        return both or len(node.shape) >= 2
    # An axis of size 1 that somebody wrote, or gave, is there to be stretched.
    sources = [origin(node, axis) for axis in grown]
    return both and any(
        s.op not in _WRITTEN and not s.arguments.get("keepdim") for s in sources
    )


def _is_learned(node: Any) -> bool:
    """Whether a tensor comes from parameters and from what the code makes of nothing."""
    stack, seen = [node], set()
    while stack:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if not one.inputs and not getattr(one, "learned", False) and one.op not in _FACTORIES:
            return False
        stack += one.inputs
    return True


def _tables(frames: Sequence[FrameType]) -> Iterator[Any]:
    """Arrays that the objects which run hold: tables of positions, penalties and the like."""
    for frame in frames:
        own = getattr(locals_of(frame).get("self"), "__dict__", None)
        if isinstance(own, dict):
            for value in own.values():
                # Buffers are in a dictionary, and so is what is kept from earlier calls.
                yield from value.values() if type(value) is dict else (value,)


def _size(node: Any) -> int:
    size = 1
    for n in node.shape:
        size *= n
    return size


def _tensors(ledger: Ledger, value: Any) -> Any:
    if ledger.is_tensor(value):
        yield value
    elif type(value) in (tuple, list):
        for one in value:
            yield from _tensors(ledger, one)


def _texts(
    frame: FrameType, place: Place, tensors: Sequence[Any], *, direct: bool
) -> dict[int, str]:
    """Names of operands: the user's variables, else the text that stands at their place."""
    known = names_in(frame)
    found = {i: known[id(t)] for i, t in enumerate(tensors) if id(t) in known}
    written = [one for one in operands(place.node) if not _is_number(one)]
    if not direct and written and isinstance(place.node, ast.Call):
        # A module was called: what it was given comes first, then what is its own.
        receiver = place.node.func
        given = written[1:] if isinstance(receiver, ast.Attribute) else written
        if len(given) == 1:
            found.setdefault(0, _source(given[0]))
        for i, tensor in enumerate(tensors):
            if i not in found and i > 0:
                name = _own_name(frame, receiver, tensor)
                if name:
                    found[i] = name
        return found
    if len(written) == len(tensors) + 1 and isinstance(place.node, ast.Call):
        written = written[1:]  # torch.matmul(a, b): the receiver is the library
    if len(written) == len(tensors):
        for i, one in enumerate(written):
            found.setdefault(i, _source(one))
    return found


def _own_name(frame: FrameType, receiver: ast.expr, tensor: Any) -> str:
    """``self.proj.weight`` for a parameter of the module that was called."""
    value: Any = None
    parts: list[str] = []
    node: ast.expr = receiver
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    value = {**frame.f_globals, **locals_of(frame)}.get(node.id)
    for part in parts:
        value = (getattr(value, "_modules", None) or {}).get(part)
    for key, one in (getattr(value, "_parameters", None) or {}).items():
        if one is tensor:
            return f"{_source(receiver)}.{key}"
    return ""


def _is_number(node: ast.expr) -> bool:
    return all(
        isinstance(n, ast.Constant | ast.UnaryOp | ast.unaryop | ast.BinOp | ast.operator)
        for n in ast.walk(node)
    )


def _source(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 48 else text[:47] + "…"
