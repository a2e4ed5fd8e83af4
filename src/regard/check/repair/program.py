"""A file as its syntax tree with the exact place of every node, its scopes and its library."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from regard.check.contract import Contract
from regard.check.repair.candidate import Span
from regard.check.repair.observe import Observed, Seen, observe

__all__ = ["Operation", "Program", "Variable"]

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


@dataclass(frozen=True)
class Variable:
    """A name in reach (``state``, ``self.size``) and what it was when the code ran."""

    text: str
    seen: Seen | None
    line: int = 0
    parameter: bool = False

    @property
    def kind(self) -> str:
        """Kind of the value, or ``""`` where it is unknown."""
        return self.seen.kind if self.seen else ""


@dataclass(frozen=True)
class Operation:
    """A call read as one thing done to one operand.

    ``form`` is ``method`` (``x.f(a)``), ``library`` (``torch.f(x, a)``), ``module``
    (``self.f(x, a)``) or ``plain`` (``f(x, a)``). ``args`` are those after the operand.
    """

    node: ast.Call
    name: str
    form: str
    operand: ast.expr | None
    args: tuple[ast.expr, ...]

    def keyword(self, *names: str) -> ast.keyword | None:
        """The keyword argument of one of the names."""
        return next((k for k in self.node.keywords if k.arg in names), None)


class Program:
    """A text, its tree, and what its expressions were when it ran.

    Parameters
    ----------
    source : str
        The whole file.
    path, entry, contract, seed
        As :func:`regard.check.relations.base.judge` takes them.
    """

    def __init__(
        self, source: str, path: str, entry: str, contract: Contract, *, seed: int = 0
    ) -> None:
        self.source, self.contract, self.entry = source, contract, entry
        self.tree = ast.parse(source)
        lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._lines = lines
        self.parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        self.nodes: list[ast.expr] = []
        self._bound: dict[ast.AST, dict[str, tuple[int, bool]]] = {}
        self._walk(self.tree)
        self.numbered = {n: i for i, n in enumerate(self.nodes) if self._recordable(n)}
        self.aliases = dict(_aliases(self.tree))
        self.observed: Observed = observe(
            self.tree, self.numbered, source, path, entry, contract, seed=seed
        )

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

    def _recordable(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant | ast.Starred | ast.Slice | ast.Lambda | ast.JoinedStr):
            return False
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return False
        parent, name = self.parents[node]
        if isinstance(parent, ast.Call) and name == "func":
            return False
        if isinstance(parent, ast.FormattedValue | ast.JoinedStr):
            return False
        if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
            return False
        inside = self.function(node)
        return inside is not None and not isinstance(parent, ast.arguments)

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

    def _needs(self, node: ast.expr) -> int:
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

    def seen(self, node: ast.AST | None) -> Seen | None:
        """What an expression was when it ran, or None where it did not run."""
        if node is None:
            return None
        if isinstance(node, ast.Constant):
            kinds = {bool: "bool", int: "int", float: "real", str: "text"}
            return Seen(kinds.get(type(node.value), "other"), values=[node.value])
        if node not in self.numbered:
            return None
        return self.observed.expressions.get(self.numbered[node])

    def rank(self, node: ast.AST | None) -> int | None:
        """Number of axes of an expression, if it was a tensor."""
        seen = self.seen(node)
        return seen.rank if seen is not None and seen.is_tensor else None

    def operation(self, node: ast.AST) -> Operation | None:
        """Read a call as one operation, or None."""
        if not isinstance(node, ast.Call):
            return None
        func, args = node.func, tuple(node.args)
        if any(isinstance(a, ast.Starred) for a in args[:1]):
            return None
        if isinstance(func, ast.Name):
            return Operation(node, func.id, "plain", args[0] if args else None, args[1:])
        if not isinstance(func, ast.Attribute):
            return None
        owner = self.text(func.value)
        if owner.replace(".", "_").isidentifier() and owner.partition(".")[0] in self.aliases:
            return Operation(node, func.attr, "library", args[0] if args else None, args[1:])
        if owner == "self":
            name = f"self.{func.attr}"
            return Operation(node, name, "module", args[0] if args else None, args[1:])
        return Operation(node, func.attr, "method", func.value, args)

    def operations(self, *names: str) -> Iterator[Operation]:
        """Every call inside a function, of the given names or of any."""
        for node in self.loads():
            found = self.operation(node)
            if found is not None and (not names or found.name in names):
                yield found

    # Names in reach

    def scope(self, node: ast.AST) -> list[Variable]:
        """Names that may stand where the node stands, nearest first."""
        function = self.function(node)
        if function is None:
            return []
        line = getattr(node, "lineno", 0)
        looped = any(isinstance(a, ast.For | ast.While) for a in self.ancestors(node))
        found: dict[str, Variable] = {}
        known = self._names(function)
        for inner in self._inner(node, function):
            for name, seen in self._inner_names(inner).items():
                found.setdefault(name, Variable(name, seen, line))
        for name, (first, parameter) in self._bindings(function).items():
            here = parameter or first < line or (looped and first != line)
            if here and name not in ("self", "cls", "_"):
                found.setdefault(name, Variable(name, known.get(name), first, parameter))
        variables = sorted(found.values(), key=lambda v: -v.line)
        return variables + self.attributes(function)

    def attributes(self, function: ast.AST) -> list[Variable]:
        """Attributes of ``self`` that a method can read."""
        key = _key(function)
        table = self.observed.attributes.get(key, {})
        first = getattr(function, "args", None)
        if first is None or not first.args or first.args[0].arg != "self":
            return []
        return [Variable(f"self.{name}", seen) for name, seen in table.items()]

    def _names(self, function: ast.AST) -> dict[str, Seen]:
        return self.observed.names.get(_key(function), {})

    def _inner(self, node: ast.AST, function: ast.AST) -> Iterator[ast.AST]:
        for outer in self.ancestors(node):
            if outer is function:
                return
            if isinstance(outer, ast.Lambda | ast.GeneratorExp | ast.ListComp):
                yield outer

    def _inner_names(self, inner: ast.AST) -> dict[str, Seen | None]:
        kind = {ast.Lambda: "<lambda>", ast.GeneratorExp: "<genexpr>", ast.ListComp: "<listcomp>"}
        known = self.observed.names.get((kind[type(inner)], getattr(inner, "lineno", 0)), {})
        if isinstance(inner, ast.Lambda):
            names = [a.arg for a in inner.args.args]
        else:
            names = [
                n.id
                for g in getattr(inner, "generators", ())
                for n in ast.walk(g.target)
                if isinstance(n, ast.Name)
            ]
        return {name: known.get(name) for name in names}

    def _bindings(self, function: ast.FunctionDef) -> dict[str, tuple[int, bool]]:
        if function in self._bound:
            return self._bound[function]
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        found = {a.arg: (function.lineno, True) for a in every}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                outer = [a for a in self.ancestors(node) if isinstance(a, ast.comprehension)]
                if not outer and self.function(node) is function:
                    line = min(node.lineno, found.get(node.id, (node.lineno, False))[0])
                    found[node.id] = (line, found.get(node.id, (0, False))[1])
        self._bound[function] = found
        return found

    def functions(self) -> list[ast.FunctionDef]:
        """Functions and methods that the file itself defines."""
        return [n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)]

    def parameters(self, operation: Operation) -> list[str] | None:
        """Parameter names, without ``self``, of a function that the file itself defines."""
        found = self.definition(operation)
        if found is None:
            return None
        names = [a.arg for a in found.args.args]
        return names[1:] if names[:1] == ["self"] else names

    def definition(self, operation: Operation) -> ast.FunctionDef | None:
        """The ``def`` that a call runs, where it stands in the same file."""
        name = operation.name.removeprefix("self.")
        if operation.form not in ("plain", "module"):
            return None
        return next((f for f in self.functions() if f.name == name), None)

    def alias(self, module: str) -> str | None:
        """The name under which a library was imported: ``np`` for ``numpy``."""
        return next((a for a, m in self.aliases.items() if m == module), None)

    @property
    def is_torch(self) -> bool:
        """Whether the file imports PyTorch."""
        return any(m.partition(".")[0] == "torch" for m in self.aliases.values())


def _key(function: ast.AST) -> tuple[str, int]:
    decorators = getattr(function, "decorator_list", [])
    line = min([getattr(function, "lineno", 0), *(d.lineno for d in decorators)])
    return getattr(function, "name", "<lambda>"), line


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


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.asname:
                    yield name.asname, name.name
                else:
                    yield name.name.partition(".")[0], name.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                if name.name[:1].islower() and node.module in ("torch", "torch.nn", "numpy"):
                    yield name.asname or name.name, f"{node.module}.{name.name}"
