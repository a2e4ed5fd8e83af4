"""NumPy: the user's lines are read before they run, on shapes alone.

NumPy tells nobody of its operations: its operators cannot be replaced, and an array of a
subclass would be handed on into the user's run and stay there. So nothing is put into the run.
Before a line runs, its operations are worked out on stand-ins for the arrays that its names
hold; whatever text does not tell (what a function of the user's returns) is not known. What a
line stretches is told once it has run without raising.
"""

import ast
import contextlib
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

import numpy as np

from regard.check.live.expression import Reader
from regard.check.live.failed import stretch_of
from regard.check.live.frames import Place, is_library, locals_of, user_frames
from regard.check.live.nodes import LiveNode
from regard.check.trace.signatures import ELEMENTWISE, operation

__all__ = ["Lines", "uses_numpy"]

_VISITS = 16  # of a line that are read: shapes may be other ones the next time
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
# What may not run although the line does, or runs under other names.
_APART = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_HEADS = {ast.If: "test", ast.While: "test", ast.For: "iter", ast.Assert: "test"}
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_Told = Callable[[CodeType, int, str], None]


class Lines:
    """Reads the lines of the thread that starts it.

    Parameters
    ----------
    told : callable
        Called with the code, the line and a text for each operation that silently stretched.
    sizes : mapping of str to int
        Names of sizes that the user declared.
    """

    def __init__(self, told: _Told, sizes: Mapping[str, int]) -> None:
        self._told, self._sizes = told, sizes
        self._files: dict[str, dict[int, tuple[ast.expr, ...]]] = {}
        self._visits: dict[tuple[CodeType, int], int] = {}
        self._waiting: dict[int, list[tuple[CodeType, int, str]]] = {}
        self._outer: FrameType | None = None

    def start(self, frame: FrameType | None) -> bool:
        """Start in a frame and all that it calls; False where a debugger or the like reads."""
        if frame is None or sys.gettrace() is not None:
            return False
        self._outer = frame
        sys.settrace(self._called)
        frame.f_trace = self._line
        return True

    def stop(self) -> None:
        """Stop, unless somebody else took over."""
        frame, self._outer = self._outer, None
        if frame is None:
            return
        self._confirm(frame)
        if sys.gettrace() == self._called:
            sys.settrace(None)
        if frame.f_trace == self._line:
            frame.f_trace = None

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        return None if event != "call" or is_library(frame.f_code) else self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        with contextlib.suppress(Exception):  # never into the user's run
            # Before Python 3.13 a frame keeps what it handed out: variables that were deleted
            # since leave that dictionary when it is asked for again.
            _ = frame.f_locals
            if event == "exception":
                self._waiting.pop(id(frame), None)
            else:
                self._confirm(frame)
            if event == "line" and self._outer is not None:
                self._read(frame)
        return self._line

    def _confirm(self, frame: FrameType) -> None:
        for found in self._waiting.pop(id(frame), ()):
            self._told(*found)

    def _read(self, frame: FrameType) -> None:
        key = (frame.f_code, frame.f_lineno)
        seen = self._visits.get(key, 0)
        if seen >= _VISITS:
            return
        path = frame.f_code.co_filename
        if path not in self._files:
            self._files[path] = _operations(path)
        operations = self._files[path].get(frame.f_lineno, ())
        variables = locals_of(frame) if operations else {}
        mine = [o for o in operations if _may_stretch(o, variables, frame.f_globals)]
        self._visits[key] = seen + 1 if operations else _VISITS
        if not mine:
            return
        code = frame.f_code
        reader = Reader(frame, Place(path, frame.f_lineno, code.co_name))
        frames = list(user_frames(frame))
        for expression in mine:
            with np.errstate(all="ignore"):  # stand-ins hold zeros
                node = reader.value(expression)
            if isinstance(node, LiveNode) and _is_numpy(node):
                text = stretch_of(node, frames, self._sizes)
                if text:
                    self._waiting.setdefault(id(frame), []).append((*key, text))


def uses_numpy(frame: FrameType | None) -> bool:
    """Whether a frame knows NumPy by name, or holds an array of it."""
    if frame is None:
        return False
    held = [*frame.f_globals.values(), *locals_of(frame).values()]
    return any(value is np or isinstance(value, np.ndarray) for value in held)


def _operations(path: str) -> dict[int, tuple[ast.expr, ...]]:
    """Elementwise operations of two operands in a file, by the line of their statement."""
    linecache.checkcache(path)  # the file may have been edited since
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[int, tuple[ast.expr, ...]] = {}
    for node in ast.walk(tree):
        head = getattr(node, _HEADS.get(type(node), ""), None)
        if isinstance(node, _SIMPLE) or head is not None:
            inside = tuple(_elementwise(head if head is not None else node))
            if inside:
                line: int = node.lineno  # type: ignore[attr-defined]
                found[line] = found.get(line, ()) + inside
    return found


def _elementwise(node: ast.AST) -> Iterator[ast.expr]:
    """Yield operations that run whenever the line does, inner ones first."""
    if isinstance(node, _APART):
        return
    if isinstance(node, ast.BoolOp):
        yield from _elementwise(node.values[0])
        return
    if isinstance(node, ast.IfExp):
        yield from _elementwise(node.test)
        return
    for one in ast.iter_child_nodes(node):
        yield from _elementwise(one)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, _OPERATORS):
        made = ast.BinOp(node.target, node.op, node.value)
        yield ast.copy_location(made, node)
    elif (isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS)) or (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and len(node.args) > 1
        and operation(node.func.attr)[0] in ELEMENTWISE - {"where"}
    ):
        yield node


def _may_stretch(
    node: ast.expr, variables: Mapping[str, Any], others: Mapping[str, Any]
) -> bool:
    """Whether an array of NumPy's, or something with attributes, is among the names."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            value = variables.get(one.id, others.get(one.id))
            if isinstance(value, np.ndarray) or (
                value is not None and not isinstance(value, int | float | str | tuple | list)
            ):
                return True
    return False


def _is_numpy(node: LiveNode) -> bool:
    given = [n for n in node.inputs if isinstance(n, LiveNode)]
    return len(given) == 2 and all(n.dtype.startswith("np:") for n in given)
