"""Shapes of operations, worked out on arrays that hold no numbers of their own."""

import sys
from collections.abc import Iterator
from typing import Any

from regard.check.live.nodes import LiveNode
from regard.check.trace.contraction import equation

__all__ = ["apply", "contracted", "nodes_in", "stand_in", "write_equation"]

_LARGEST = 2**24  # numbers a stand-in may stand for
_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "true_divide",
    "pow": "float_power",
    "and": "logical_and",
    "or": "logical_or",
    "xor": "logical_xor",
}


def apply(name: str, values: list[Any], keywords: dict[str, Any]) -> Any:
    """Run a function or method of the arrays' library on stand-ins for the nodes given."""
    stand = [_filled(v) for v in values]
    named_ = {k: _filled(v) for k, v in keywords.items()}
    first = next(n for v in values for n in nodes_in(v))
    if isinstance(values[0], LiveNode) and hasattr(type(stand[0]), name):
        found = getattr(stand[0], name)
        return found(*stand[1:], **named_) if callable(found) else found
    library = sys.modules["torch" if not first.dtype.startswith("np:") else "numpy"]
    return getattr(library, _OPERATORS.get(name, name))(*stand, **named_)


def stand_in(node: LiveNode) -> Any:
    """An array of the node's shape without numbers of its own."""
    if node.dtype.startswith("np:"):
        import numpy as np  # noqa: PLC0415 - the user's code has it already

        size = 1
        for n in node.shape:
            size *= n
        if size > _LARGEST:
            raise MemoryError
        return np.broadcast_to(np.zeros((), np.int8), node.shape)
    torch = sys.modules["torch"]
    return torch.empty(node.shape, device="meta")


def _filled(value: Any) -> Any:
    if isinstance(value, LiveNode):
        return stand_in(value)
    return type(value)(map(_filled, value)) if type(value) in (tuple, list) else value


def write_equation(node: LiveNode) -> None:
    """Note the equation of an operation that sums over an axis."""
    try:
        written = equation(node.op, node.inputs, node.arguments)
    except (IndexError, ValueError, TypeError):
        written = None
    if written is not None:
        node.arguments["written"] = written


def contracted(written: str, inputs: list[LiveNode]) -> tuple[int, ...]:
    """Return the shape of what an equation makes of some arrays.

    Raises
    ------
    ValueError
        They do not go together.
    """
    left, _, right = written.partition("->")
    sizes: dict[str, int] = {}
    for letters, node in zip(left.split(","), inputs, strict=True):
        for letter, size in zip(letters, node.shape, strict=True):
            before = sizes.setdefault(letter, size)
            if size != before and 1 not in (size, before):
                raise ValueError(written)
            sizes[letter] = max(size, before)
    return tuple(sizes[letter] for letter in right)


def nodes_in(value: Any) -> Iterator[LiveNode]:
    """Yield the nodes in a value, in order."""
    if isinstance(value, LiveNode):
        yield value
    elif type(value) in (tuple, list):
        for one in value:
            yield from nodes_in(one)
