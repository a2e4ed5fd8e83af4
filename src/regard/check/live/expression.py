"""A failure read off a traceback: the failing expression's text, and the frame's variables.

For NumPy, whose operations cannot be followed as they run, and for whatever else was not
followed. Shapes are worked out on stand-ins that hold no numbers; nothing of the user's runs.
"""

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from regard.check.live.frames import (
    Place,
    locals_of,
    operands,
    place_of,
    user_frames,
    user_point,
)
from regard.check.live.nodes import LiveNode
from regard.check.live.note import Failure
from regard.check.live.sizes import names_of_sizes
from regard.check.live.stand_ins import (
    apply,
    contracted,
    nodes_in,
    stand_in,
    write_equation,
)
from regard.check.trace.signatures import named, operation

__all__ = ["Reader", "failure_of"]

_VIEWS = frozenset(
    {"transpose", "swapaxes", "moveaxis", "reshape", "squeeze", "expand_dims", "ravel", "T"}
    | {"mT", "permute", "unsqueeze", "view", "movedim", "matrix_transpose", "flatten", "copy"}
    | {"astype", "contiguous", "float", "double", "detach", "clone", "flip", "broadcast_to"}
)
_MATHS = frozenset(
    {"exp", "log", "tanh", "sqrt", "abs", "absolute", "maximum", "minimum", "where", "negative"}
    | {"sum", "mean", "max", "min", "std", "var", "prod", "any", "all", "concatenate", "stack"}
    | {"cat", "softmax", "sigmoid", "relu", "add", "subtract", "multiply", "divide", "square"}
    | {"logical_not", "isnan", "clip", "repeat", "tile", "masked_fill", "hstack", "vstack"}
)
_PRODUCTS = frozenset({"matmul", "dot", "einsum", "inner", "outer", "bmm", "mm", "tensordot"})
_MAKERS = frozenset({"zeros", "ones", "empty", "full"})
_ALLOWED = _VIEWS | _MATHS | _PRODUCTS
_BINARY = {
    ast.MatMult: "matmul",
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_DEEPEST = 24


def failure_of(error: BaseException, declared: Mapping[str, int]) -> Failure | None:
    """Return the failure behind an exception with a traceback, None if no array is in it."""
    point = user_point(error.__traceback__)
    if point is None:
        return None
    frame, at = point
    place = place_of(frame.f_code, at)
    reader = Reader(frame, place)
    node, texts = reader.failed(place.node)
    if node is None or not any(n.shape for n in node.inputs):
        return None
    sizes = names_of_sizes(list(user_frames(frame)), declared)
    return Failure(node, tuple(texts), place, sizes)


class Reader:
    """Reads an expression in a frame: shapes of arrays, and where their names were bound."""

    def __init__(self, frame: FrameType, place: Place) -> None:
        self.frame, self.place = frame, place
        self._variables = {**frame.f_globals, **locals_of(frame)}
        self._line = place.line  # of the statement that is being read
        self._depth = 0
        self._known: dict[str, LiveNode] = {}

    def failed(self, node: ast.AST | None) -> tuple[LiveNode | None, list[str]]:
        """The operation that raised, with its operands, and their texts."""
        parts = self._operation(node)
        if parts is None:
            return None, []
        op, written, plain, keywords = parts
        inputs, texts = [], []
        for one in written:
            value = self.value(one)
            if isinstance(value, LiveNode):
                inputs.append(value)
                texts.append(_text(one))
        told = named(op, plain, keywords)
        made = LiveNode(0, op, None, tuple(inputs), told)
        write_equation(made)
        return made, texts

    def _operation(
        self, node: ast.AST | None
    ) -> tuple[str, list[ast.expr], list[Any], dict[str, Any]] | None:
        if isinstance(node, ast.BinOp | ast.AugAssign):
            op = _BINARY.get(type(node.op))
            return None if op is None else (op, operands(node), [], {})
        if isinstance(node, ast.Compare):
            return "eq", operands(node), [], {}
        if isinstance(node, ast.Subscript):
            return "getitem", [node.value], [], {}
        if not isinstance(node, ast.Call):
            return None
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        op, _, _ = operation(name)
        plain = [v for a in node.args if (v := self.value(a)) is not None]
        plain = [p for p in plain if not isinstance(p, LiveNode) and not _holds_arrays(p)]
        keywords = {k.arg: self.value(k.value) for k in node.keywords if k.arg}
        rest = {
            k: v for k, v in keywords.items() if v is not None and not isinstance(v, LiveNode)
        }
        return op, operands(node), plain, rest

    def value(self, node: ast.expr) -> Any:
        """A node for an array, a plain value for a number, None for what is not known."""
        if self._depth > _DEEPEST:
            return None
        self._depth += 1
        try:
            return self._read(node)
        except Exception:  # shapes that do not go together, names that are gone
            return None
        finally:
            self._depth -= 1

    def _read(self, node: ast.expr) -> Any:  # noqa: PLR0911 - one line a kind of expression
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._variable(node.id)
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self.value(one) for one in node.elts)
        if isinstance(node, ast.UnaryOp):
            value = self.value(node.operand)
            if isinstance(value, LiveNode):
                return _like("neg", value)
            return -value if isinstance(node.op, ast.USub) else None
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.BinOp):
            op = _BINARY.get(type(node.op), "")
            return self._binary(op, self.value(node.left), self.value(node.right), node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return None

    def _variable(self, name: str) -> Any:
        missing = object()
        value = self._variables.get(name, missing)
        if value is missing:
            return None
        if not _is_array(value):
            return value if _is_plain(value) else None
        if name not in self._known:
            self._known[name] = made = _given(value, name)
            self._bind(name, made)
        return self._known[name]

    def _bind(self, name: str, made: LiveNode) -> None:
        """Find the line that bound a name before the failure, if its shape bears it out."""
        for line, value in self._assignments(name):
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value)):
                return  # made from its own earlier self, which is gone
            here, self._line = self._line, line
            found = self.value(value)
            self._line = here
            if isinstance(found, LiveNode) and found.shape == made.shape:
                made.op, made.inputs, made.arguments = found.op, found.inputs, found.arguments
                made.learned = found.learned
            elif isinstance(value, ast.Call):
                made.op = _text(value.func).rpartition(".")[2] or "call"
            else:
                return
            code = self.frame.f_code
            made.place = Place(code.co_filename, line, code.co_name, _text(value))
            return

    def _assignments(self, name: str) -> Iterator[tuple[int, ast.expr]]:
        """Lines before the failing one that bind a name, the latest first."""
        try:
            lines, first = inspect.getsourcelines(self.frame.f_code)
        except (OSError, TypeError):
            return
        tree = ast.parse(textwrap.dedent("".join(lines)))
        first = max(first, 1)
        found = [
            (statement.lineno + first - 1, statement.value)
            for statement in ast.walk(tree)
            if isinstance(statement, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)
        ]
        before = [pair for pair in found if pair[0] < self._line]
        yield from sorted(before, key=lambda pair: -pair[0])[:1]

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self._owner(node.value)
        if isinstance(owner, LiveNode):
            if node.attr in ("T", "mT"):
                return self._run(node.attr, [owner], [], {}, node)
            return owner.shape if node.attr == "shape" else None
        value = _held(owner, node.attr)
        if _is_array(value):
            made = _given(value, _text(node))
            made.learned = True  # an object keeps it: a table, or what it learns
            return made
        return value if _is_plain(value) else None

    def _owner(self, node: ast.expr) -> Any:
        """What an attribute is taken of: an object, or a node for an array."""
        if isinstance(node, ast.Name):
            value = self._variables.get(node.id)
            return self._variable(node.id) if _is_array(value) else value
        if isinstance(node, ast.Attribute):
            owner = self._owner(node.value)
            if not isinstance(owner, LiveNode):
                value = _held(owner, node.attr)
                if not _is_array(value):
                    return value
        return self.value(node)

    def _binary(self, op: str, left: Any, right: Any, node: ast.expr) -> Any:
        pair = [n for n in (left, right) if isinstance(n, LiveNode)]
        if not pair:
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            return _arithmetic(op, left, right) if numbers else None
        if left is None or right is None:
            return None
        return self._run(op, pair, [], {}, node)

    def _item(self, node: ast.Subscript) -> Any:
        value = self.value(node.value)
        if isinstance(value, tuple):
            index = self.value(node.slice)
            return value[index] if isinstance(index, int) else None
        if not isinstance(value, LiveNode):
            return None
        index = self._index(node.slice)
        made = _like("getitem", value)
        made.shape = tuple(stand_in(value)[index].shape)
        made.arguments = {"index": index}
        return self._placed(made, node)

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(one) for one in node.elts)
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            lower, upper, step = (None if p is None else self.value(p) for p in ends)
            return slice(lower, upper, step)
        if isinstance(node, ast.Constant) and node.value in (None, ...):
            return node.value
        value = self.value(node)
        if not isinstance(value, int):
            raise TypeError
        return value

    def _call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Attribute):
            return None
        name = node.func.attr
        owner = self._owner(node.func.value)
        receiver = [owner] if isinstance(owner, LiveNode) else []
        is_module = isinstance(owner, types.ModuleType) and owner.__name__.partition(".")[
            0
        ] in ("numpy", "torch")
        if name not in _ALLOWED | _MAKERS or not (receiver or is_module):
            return None
        if name in _MAKERS and is_module and node.args:
            return self._made(name, node)
        values = [self.value(a) for a in node.args]
        keywords = {k.arg: self.value(k.value) for k in node.keywords if k.arg}
        if any(v is None and not _is_none(a) for v, a in zip(values, node.args, strict=True)):
            return None
        return self._run(name, [*receiver, *values], [], keywords, node, whole=True)

    def _made(self, name: str, node: ast.Call) -> Any:
        shape = self.value(node.args[0])
        if isinstance(shape, int):
            shape = (shape,)
        if not isinstance(shape, tuple) or not all(isinstance(n, int) for n in shape):
            return None
        made = LiveNode(0, name, None, (), {})
        made.shape, made.dtype = shape, "np:float64"
        return self._placed(made, node)

    def _run(
        self,
        name: str,
        values: list[Any],
        plain: list[Any],
        keywords: dict[str, Any],
        node: ast.expr,
        *,
        whole: bool = False,
    ) -> LiveNode:
        """Run an operation on stand-ins for its shape."""
        inputs = [n for v in values for n in nodes_in(v)]
        op, _, _ = operation(name)
        if op == "permute" or (name == "transpose" and inputs[0].dtype.startswith("np:")):
            op = "permute" if len(values) > 1 or "axes" in keywords else "T"
        told = named(
            op, [v for v in values if not list(nodes_in(v))] if whole else plain, keywords
        )
        made = LiveNode(0, op, None, tuple(inputs), told)
        made.dtype, made.device = inputs[0].dtype, inputs[0].device
        write_equation(made)
        written = told.get("written")
        made.shape = (
            contracted(str(written), inputs)
            if written
            else tuple(apply(name, values, keywords).shape)
        )
        return self._placed(made, node)

    def _placed(self, made: LiveNode, node: ast.expr) -> LiveNode:
        code = self.frame.f_code
        made.place = Place(code.co_filename, self._line, code.co_name, _text(node))
        return made


def _given(value: Any, name: str) -> LiveNode:
    node = LiveNode(0, "input", name=name)
    node.shape = tuple(int(n) for n in value.shape)
    home = type(value).__module__.partition(".")[0]
    text = str(value.dtype)
    node.dtype = f"np:{text}" if home != "torch" else text.removeprefix("torch.")
    node.device = "" if home != "torch" else str(value.device)
    return node


def _like(op: str, node: LiveNode) -> LiveNode:
    made = LiveNode(0, op, None, (node,), {})
    made.shape, made.dtype, made.device = node.shape, node.dtype, node.device
    return made


def _held(owner: Any, name: str) -> Any:
    """An attribute that is stored; no property is asked."""
    own = getattr(owner, "__dict__", None)
    if not isinstance(own, dict):
        return None
    for table in (own, own.get("_parameters"), own.get("_buffers"), own.get("_modules")):
        if isinstance(table, dict) and name in table:
            return table[name]
    return None


def _is_array(value: Any) -> bool:
    return isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return len(value) <= 16 and all(map(_is_plain, value))
    return isinstance(value, int | float | str | bool | slice)


def _holds_arrays(value: Any) -> bool:
    return any(True for _ in nodes_in(value))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _arithmetic(op: str, left: float, right: float) -> float | None:
    if op == "add":
        return left + right
    if op == "sub":
        return left - right
    return left * right if op == "mul" else None


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:59] + "…"
