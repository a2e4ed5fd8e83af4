"""A text and its syntax tree, with the exact place of every node and how tightly it binds."""

import ast
import functools
from collections.abc import Iterator

from regard.check.repair.candidate import Span

__all__ = ["Written"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEVELS: dict[type[ast.AST], int] = {
    ast.Tuple: 0,
    ast.NamedExpr: 0,
    ast.Yield: 0,
    ast.Starred: 0,
    ast.Lambda: 1,
    ast.IfExp: 1,
    ast.Compare: 5,
    ast.UnaryOp: 12,
}
_OPERATORS: dict[type[ast.AST], int] = {
    **{ast.Or: 2, ast.And: 3, ast.Not: 4, ast.BitOr: 6, ast.BitXor: 7, ast.BitAnd: 8},
    **{ast.LShift: 9, ast.RShift: 9, ast.Add: 10, ast.Sub: 10, ast.Mult: 11, ast.Div: 11},
    **{ast.FloorDiv: 11, ast.Mod: 11, ast.MatMult: 11, ast.Pow: 13},
}
ATOM = 15


class Written:
    """A text, its tree, and the way back from the tree to the text.

    Parameters
    ----------
    source : str
        The whole file.

    Raises
    ------
    SyntaxError
        If it is no Python.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self._lines = source.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        self.nodes: list[ast.expr] = []
        self._walk(self.tree)

    def _walk(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    self.parents[child] = (node, name)
                    if isinstance(child, ast.expr):
                        self.nodes.append(child)
                    self._walk(child)

    # Places

    def offset(self, line: int, column: int) -> int:
        """Offset of a line (from 1) and a column in UTF-8 bytes, as the tree counts them."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> tuple[int, int]:
        """Offsets where a node starts and ends."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def text(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> str:
        """The node as it is written."""
        start, end = self.span(node)
        return self.source[start:end]

    def at(self, node: ast.expr, level: int = ATOM) -> str:
        """The node as it is written, in parentheses where it would not bind that tightly."""
        text = self.text(node)
        if isinstance(node, ast.GeneratorExp | ast.Tuple) and text.startswith("("):
            return text
        return text if _level(node) >= level else f"({text})"

    def put(self, node: ast.expr, text: str) -> Span | None:
        """Replace an expression, with parentheses where its place asks for them."""
        level = _level_of(text)
        if level is None:
            return None
        start, end = self.span(node)
        if level < self._needs(node) and not self._enclosed(start, end, node):
            text = f"({text})"
        return start, end, text

    def after(self, node: ast.expr, tail: str) -> Span | None:
        """Append to an expression: ``.T``, ``[back]``, ``.transpose(1, 2)``."""
        return self.put(node, self.at(node) + tail)

    def _enclosed(self, start: int, end: int, node: ast.expr) -> bool:
        parent, name = self.parents[node]
        if isinstance(parent, ast.Call) and name in ("args", "keywords"):
            return False
        before, behind = self.source[:start].rstrip()[-1:], self.source[end:].lstrip()[:1]
        return before == "(" and behind == ")"

    def _needs(self, node: ast.expr) -> int:  # noqa: PLR0911 - a table, case by case
        parent, name = self.parents[node]
        match parent:
            case ast.BinOp(op=op):
                level = _OPERATORS[type(op)]
                if isinstance(op, ast.Pow):
                    return level + 1 if name == "left" else 12
                return level if name == "left" else level + 1
            case ast.UnaryOp(op=op):
                return 4 if isinstance(op, ast.Not) else 12
            case ast.BoolOp(op=op):
                return _OPERATORS[type(op)] + 1
            case ast.Compare():
                return 6
            case ast.Attribute():
                return ATOM
            case ast.Subscript():
                return ATOM if name == "value" else 0
            case ast.Call():
                return ATOM if name == "func" else 1
            case ast.IfExp():
                return 1 if name == "orelse" else 2
            case ast.Starred():
                return 6
            case ast.comprehension():
                return 2
            case ast.Assign() | ast.Return() | ast.AugAssign() | ast.Expr():
                return 0
        return 1

    # Structure

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost ``def`` around a node."""
        while node in self.parents:
            node = self.parents[node][0]
            if isinstance(node, _FUNCTIONS):
                return node
        return None

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement around a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node][0]
        return node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node][0]
            yield node

    def statements(self) -> Iterator[ast.stmt]:
        """Every statement inside a function."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and self.function(node) is not None:
                yield node

    def loads(self) -> Iterator[ast.expr]:
        """Every expression that is read inside a function."""
        for node in self.nodes:
            if self.function(node) is None:
                continue
            if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                continue
            yield node


def _level(node: ast.AST) -> int:
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return _OPERATORS[type(node.op)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return 4
    return _LEVELS.get(type(node), ATOM)


@functools.cache
def _level_of(text: str) -> int | None:
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if isinstance(node, ast.Tuple) and node.elts:
            # The span of a tuple has its parentheses in it, if it has some.
            return ATOM if node.elts[0].col_offset > node.col_offset else 0
        return _level(node)
    except (SyntaxError, ValueError):
        return None
