"""A file with what its expressions were when it ran: kinds, shapes, names in reach, calls."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from regard.check.contract import Contract
from regard.check.repair.observe import Observed, Seen, observe
from regard.check.repair.written import Written

__all__ = ["Operation", "Program", "Variable"]


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


class Program(Written):
    """A text, its tree, and what its expressions were when it ran.

    Parameters
    ----------
    source : str
        The whole file.
    path, entry, contract, seed
        As :func:`regard.check.relations.base.judge` takes them.

    Raises
    ------
    SyntaxError
        If the source is no Python.
    """

    def __init__(
        self, source: str, path: str, entry: str, contract: Contract, *, seed: int = 0
    ) -> None:
        super().__init__(source)
        self.contract, self.entry = contract, entry
        self._bound: dict[ast.AST, dict[str, tuple[int, bool]]] = {}
        self.aliases = dict(_aliases(self.tree))
        self.numbered: dict[ast.AST, int] = {
            n: i for i, n in enumerate(self.nodes) if self._recordable(n)
        }
        self.observed: Observed = observe(
            self.tree,
            self.numbered,
            source,
            path=path,
            entry=entry,
            contract=contract,
            seed=seed,
        )

    def _recordable(self, node: ast.expr) -> bool:
        if isinstance(
            node, ast.Constant | ast.Starred | ast.Slice | ast.Lambda | ast.JoinedStr
        ):
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

    def operation(self, node: ast.AST) -> Operation | None:  # noqa: PLR0911 - as above
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
        kind = {
            ast.Lambda: "<lambda>",
            ast.GeneratorExp: "<genexpr>",
            ast.ListComp: "<listcomp>",
        }
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

    def _bindings(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> dict[str, tuple[int, bool]]:
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
