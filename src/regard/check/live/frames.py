"""The user's frames, the expression that runs in one of them, and what its values are called.

Everything here only reads: nothing of the user's is called.
"""

import ast
import functools
import inspect
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any

__all__ = [
    "Place",
    "is_library",
    "locals_of",
    "names_in",
    "operands",
    "place_of",
    "user_frame",
    "user_frames",
    "user_point",
]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OWN_REFERENCES = 3  # the frame, a variable, an argument
_TYPED = ("<stdin>", "<string>", "<console>", "<ipython-input", "<doctest")


@dataclass(frozen=True)
class Place:
    """An expression of the user's that ran: where it stands, and its text if there is one."""

    path: str
    line: int
    function: str
    text: str = ""
    node: ast.AST | None = None

    def __str__(self) -> str:
        return f"{_short(self.path)}:{self.line}"


@functools.lru_cache(maxsize=4096)
def is_library(code: CodeType) -> bool:
    """Whether code is of a library or of Python itself, rather than the user's.

    What no file holds is a library's, unless it was typed: PyTorch compiles such code.
    """
    path = code.co_filename
    if path.startswith("<"):
        return not path.startswith(_TYPED)
    return os.path.abspath(path).startswith(_libraries())


@functools.cache
def _libraries() -> tuple[str, ...]:
    keys = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_paths()[key] for key in keys} | {_PACKAGE}
    for name in ("torch", "numpy"):
        path = getattr(sys.modules.get(name), "__file__", None)
        if path:
            folders.add(os.path.dirname(os.path.abspath(path)))
    return tuple(folder + os.sep for folder in folders)


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Return a frame's variables, and leave no copy of them in the frame.

    Before Python 3.13 a frame keeps the dictionary that it hands out, and with it the tensors
    in it, until the function ends. What somebody else holds, as ``locals()``, is left alone,
    and so is a frame that is traced, whose variables are set from that dictionary again.
    """
    held = frame.f_locals
    found = dict(held)
    code = frame.f_code
    is_snapshot = type(held) is dict and bool(code.co_flags & inspect.CO_OPTIMIZED)
    if is_snapshot and frame.f_trace is None and sys.getrefcount(held) <= _OWN_REFERENCES:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            held.pop(name, None)
    return found


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's, or None."""
    while frame is not None and is_library(frame.f_code):
        frame = frame.f_back
    return frame


def user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the user's frames, the innermost first."""
    while frame is not None:
        if not is_library(frame.f_code):
            yield frame
        frame = frame.f_back


def user_point(trace: TracebackType | None) -> tuple[FrameType, int] | None:
    """Return the innermost frame of the user's in a traceback and its last instruction."""
    found = None
    while trace is not None:
        if not is_library(trace.tb_frame.f_code):
            found = (trace.tb_frame, trace.tb_lasti)
        trace = trace.tb_next
    return found


def place_of(code: CodeType, at: int) -> Place:
    """Return the expression of an instruction: the text of its span, parsed."""
    lines = _positions(code)
    line, end_line, column, end_column = (
        lines[at // 2] if 0 <= at // 2 < len(lines) else (None,) * 4
    )
    line = line or code.co_firstlineno
    bare = Place(code.co_filename, line, code.co_name)
    if column is None or end_column is None:
        return bare
    linecache.checkcache(code.co_filename)  # the file may have been edited since
    rows = [
        linecache.getline(code.co_filename, number).encode()
        for number in range(line, (end_line or line) + 1)
    ]
    if not all(rows):
        return bare
    rows[-1] = rows[-1][:end_column]
    rows[0] = rows[0][column:]
    text = b"".join(rows).decode(errors="replace")
    node = _parsed(text)
    return Place(bare.path, line, bare.function, " ".join(text.split()) if node else "", node)


@functools.lru_cache(maxsize=512)
def _positions(code: CodeType) -> list[tuple[int | None, ...]]:
    return list(code.co_positions())


def _parsed(text: str) -> ast.AST | None:
    for source, mode in ((f"({text}\n)", "eval"), (text, "exec")):
        try:
            tree = ast.parse(source, mode=mode)
        except (SyntaxError, ValueError):
            continue
        if isinstance(tree, ast.Expression):
            return tree.body
        assert isinstance(tree, ast.Module)
        return tree.body[0] if len(tree.body) == 1 else None
    return None


def operands(node: ast.AST | None) -> list[ast.expr]:
    """Return what an expression works on, in order: ``a @ b`` and ``a.matmul(b)`` alike."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Subscript):
        return [node.value, node.slice]
    if isinstance(node, ast.Call):
        given = [*node.args, *(k.value for k in node.keywords)]
        given = [
            one
            for value in given
            for one in (value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
        ]
        is_method = isinstance(node.func, ast.Attribute)
        return [node.func.value, *given] if is_method else given  # type: ignore[attr-defined]
    return []


def names_in(frame: FrameType) -> dict[int, str]:
    """Return the names of a frame's values by identity.

    Variables come first, then attributes of what they hold (``self.W``), parameters of its
    modules (``self.proj.weight``) and items of its tuples and lists.
    """
    found: dict[int, str] = {}
    inside: list[tuple[str, Any]] = []
    for name, value in locals_of(frame).items():
        if name.startswith((".", "@")):
            continue
        if name == "self" or hasattr(value, "_parameters"):
            inside.insert(0, (name, value))
        elif isinstance(value, list | tuple) and len(value) <= 16:
            inside += [(f"{name}[{i}]", one) for i, one in enumerate(value)]
        found.setdefault(id(value), name)
    for name, value in inside:
        found.setdefault(id(value), name)
        for dotted, one in _attributes(name, value, 3):
            found.setdefault(id(one), dotted)
    return found


def _attributes(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    own = getattr(value, "__dict__", None)
    if not isinstance(own, dict) or hasattr(value, "shape"):
        return
    tables: list[Mapping[str, Any]] = [own]
    tables += [t for t in map(own.get, ("_parameters", "_buffers", "_modules")) if t]
    for table in tables:
        for key, one in list(table.items()):
            if not key.startswith("_"):
                yield f"{name}.{key}", one
    if depth:
        for key, one in list((own.get("_modules") or {}).items()):
            yield from _attributes(f"{name}.{key}", one, depth - 1)


def _short(path: str) -> str:
    """A path from here if it lies below; a notebook's cell by its number."""
    cell = re.match(r"<ipython-input-(\d+)-", path)
    if cell:
        return f"In[{cell.group(1)}]"
    try:
        shown = os.path.relpath(path)
    except (ValueError, OSError):  # another drive, or the folder is gone
        return path
    return path if path.startswith("<") or shown.startswith("..") else shown
