"""What is added to an exception: the operation in the user's words and in named axes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.check.axes_carried import UNKNOWN
from regard.check.live.clash import Clash, clash_of, culprit_of
from regard.check.live.frames import Place
from regard.check.live.nodes import LiveNode, name_axes, origin
from regard.check.live.sizes import SizeNames
from regard.check.trace.records import Node

__all__ = ["HEAD", "Failure", "note_of", "shown_axes"]

HEAD = "regard: "
_MOST = 8  # operands that are listed
_WIDE = 60


@dataclass(frozen=True)
class Failure:
    """An operation that raised.

    ``names`` are those of the operands in the user's code, "" where there is none; nodes that
    they were made from bear their names themselves.
    """

    node: LiveNode
    names: tuple[str, ...]
    place: Place
    sizes: SizeNames


def note_of(failure: Failure) -> str:
    """Return the note: a headline and one row for each thing that is known."""
    node, place = failure.node, failure.place
    name_axes(node.inputs, failure.sizes)
    what = place.text or node.op
    what = what if len(what) <= _WIDE else what[: _WIDE - 1] + "…"
    inside = "" if place.function == "<module>" else f" in {place.function}"
    lines = [f"{HEAD}`{what}` ({place}{inside})"]
    called = [_called(failure, i) for i in range(len(node.inputs))]
    wide = max((len(name) for name in called[:_MOST]), default=0)
    shown = list(zip(called, node.inputs, strict=True))
    extra = _kinds(node.inputs)
    for (name, operand), more in zip(shown[:_MOST], extra, strict=False):
        label = "" if len(lines) > 1 else "operands"
        lines.append(_row(label, f"{name:<{wide}}  {shown_axes(operand)}{more}"))
    if len(shown) > _MOST:
        lines.append(_row("", f"and {len(shown) - _MOST} more"))
    clash = clash_of(node)
    if node.op in ("view", "reshape") and node.inputs:
        lines += _refilled(node)
    if clash is not None:
        lines.append(_row("clash", _clash_text(node, clash, called)))
        lines += _culprit_rows(failure, clash, called)
    guessed = dict.fromkeys(
        name
        for operand in node.inputs
        for name in operand.axes
        if name not in ("1", UNKNOWN) and failure.sizes.guessed(name)
    )
    if guessed:
        declared = ", ".join(_declarations(guessed, failure.sizes))
        lines.append(_row("named", f"by variables of equal size; or regard.watch({declared})"))
    return "\n".join(lines)


def shown_axes(node: Node) -> str:
    """Return ``(batch=32, T_enc=11, 7)``: names where they are known, sizes always."""
    parts = [
        str(size) if name in ("1", UNKNOWN) else f"{name}={size}"
        for name, size in zip(
            node.axes or (UNKNOWN,) * len(node.shape), node.shape, strict=True
        )
    ]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _clash_text(node: Node, clash: Clash, called: Sequence[str]) -> str:
    ends = [
        f"{_axis(node.inputs[i], axis)}, axis {axis - len(node.inputs[i].shape)} of {called[i]}"
        for i, axis in (
            (clash.first, clash.first_axis),
            (clash.second, clash.second_axis),
        )
    ]
    return f"{ends[0]}, meets {ends[1]}"


def _culprit_rows(failure: Failure, clash: Clash, called: Sequence[str]) -> list[str]:
    node = failure.node
    found = culprit_of(node, clash)
    if found is None:
        return [_row("made", text) for text in _both(failure, clash, called)]
    axis = clash.first_axis if found.operand == clash.first else clash.second_axis
    whose = f"{called[found.operand]}, whose {_axis(node.inputs[found.operand], axis)}"
    own = not found.made.inputs and called[found.operand] == f"`{found.made.name}`"
    how = "is its own" if own else _made(found.made)
    if found.turned is not None:
        how = f"was put there at {_at(found.turned)}"
    rows = [_row("culprit", f"{whose} {how}")]
    if found.order is not None:
        operand = node.inputs[found.operand]
        axes = ", ".join("1" if i is None else _axis(operand, i) for i in found.order)
        rows.append(_row("", f"it would fit as ({axes})"))
    return rows


def _both(failure: Failure, clash: Clash, called: Sequence[str]) -> list[str]:
    """Where each of the two axes was made, when neither operand is more to blame."""
    texts = []
    pairs = ((clash.first, clash.first_axis), (clash.second, clash.second_axis))
    for index, axis in pairs:
        operand = failure.node.inputs[index]
        made = origin(operand, axis)
        if made.inputs or (made.name and called[index] != f"`{made.name}`"):
            texts.append(f"{_axis(operand, axis)} of {called[index]} {_made(made)}")
    return texts


def _made(made: Node) -> str:
    if getattr(made, "place", None) is not None and made.op != "input":
        return f"was made at {_at(made)}"
    return f"came with `{made.name}`" if made.name else "was there from the start"


def _at(made: Node) -> str:
    place = getattr(made, "place", None)
    if place is None:
        return made.op
    return f"{place}: `{place.text}`" if 0 < len(place.text) <= _WIDE else str(place)


def _axis(node: Node, axis: int) -> str:
    name = node.axes[axis] if node.axes else UNKNOWN
    return str(node.shape[axis]) if name in ("1", UNKNOWN) else f"{name}={node.shape[axis]}"


def _called(failure: Failure, index: int) -> str:
    name = failure.names[index] if index < len(failure.names) else ""
    if name:
        return f"`{name}`"
    operand = failure.node.inputs[index]
    place = getattr(operand, "place", None)
    if place is not None and operand.op != "input":
        return f"the {operand.op} of line {place.line}"
    return f"operand {index + 1}"


def _refilled(node: Node) -> list[str]:
    shape = node.arguments.get("shape")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) for n in shape):
        return []
    has, asked = math.prod(node.inputs[0].shape), math.prod(abs(n) for n in shape)
    if has == asked:
        return []
    rest = " times the rest (-1)" if -1 in shape else ""
    listed = ", ".join(map(str, shape))
    return [_row("clash", f"{has} numbers do not fill ({listed}), which takes {asked}{rest}")]


def _kinds(nodes: Sequence[Node]) -> list[str]:
    """Number types and devices, where they are not the same for all."""
    types = [n.dtype.removeprefix("np:") for n in nodes]
    devices = [getattr(n, "device", "") for n in nodes]
    texts = []
    for kind, device in zip(types, devices, strict=True):
        more = [kind] if len(set(types)) > 1 and kind else []
        more += [device] if len(set(devices)) > 1 and device else []
        texts.append(f"  {' '.join(more)}" if more else "")
    return texts


def _declarations(names: Mapping[str, None], sizes: SizeNames) -> list[str]:
    single = [part for name in names for part in name.replace("/", "*").split("*")]
    return [f"{n}={sizes.size(n)}" for n in dict.fromkeys(single) if sizes.size(n)][:4]


def _row(label: str, text: str) -> str:
    return f"  {label:<10}{text}".rstrip()
