"""The user's text as a tree: what stands at a span, and who passed a wrong argument on."""

import ast
from collections.abc import Iterator
from functools import cached_property

from regard.check.trace.records import Node, Span

__all__ = ["Text"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Text:
    """A parsed file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.splitlines()
        self.tree = ast.parse(source)

    def line(self, number: int) -> str:
        """One line's text without its indentation."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def quoted(self, span: Span) -> str:
        """The text of a span, on one line."""
        if span.end_line != span.line or not 0 < span.line <= len(self.lines):
            return self.line(span.line)
        return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]

    def span_of(self, node: ast.expr | ast.stmt) -> Span:
        """Span of a tree node, columns in characters."""
        end = node.end_lineno or node.lineno
        return Span(
            node.lineno,
            self._column(node.lineno, node.col_offset),
            end,
            self._column(end, node.end_col_offset or 0),
        )

    def whole(self, number: int) -> Span:
        """Span of a line without its indentation."""
        text = self.lines[number - 1] if 0 < number <= len(self.lines) else ""
        start = len(text) - len(text.lstrip())
        return Span(number, start + 1, number, len(text.rstrip()) + 1)

    def at(self, span: Span) -> ast.expr | None:
        """The expression with exactly this span."""
        for node in self._on(span.line):
            if isinstance(node, ast.expr) and self.span_of(node) == span:
                return node
        return None

    def function_at(self, line: int) -> _Function | None:
        """The innermost function that holds a line."""
        best: _Function | None = None
        for node in self._functions:
            if node.lineno <= line <= (node.end_lineno or node.lineno) and (
                best is None or node.lineno >= best.lineno
            ):
                best = node
        return best

    def calls(self, name: str) -> list[ast.Call]:
        """Every call of a function or method of that name."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                called = node.func
                its = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                if its == name:
                    found.append(node)
        return found

    def blame(self, node: Node, aspect: str) -> Span:
        """Where the wrong thing about a node was written.

        Parameters
        ----------
        node : Node
            A node with a span.
        aspect : {"axis", "operand", "here"}
            What is wrong with it: the axis or another number it was told, what it was given,
            or the operation itself. Inside a helper that only passes its own parameter on,
            the caller wrote it.
        """
        span = node.span or Span(1)
        depth = len(node.lines) - 1
        if aspect == "axis":
            built = self.layer_at(span)
            if built is not None:
                layers = self.calls("Softmax") if node.op == "softmax" else []
                # One that a Sequential was given by a name stands elsewhere.
                return self.span_of(layers[0]) if len(layers) == 1 else built
        while aspect != "here" and depth > 0:
            function = self.function_at(span.line)
            if function is None or not self._passed_on(node, span, function, aspect):
                break
            name = getattr(function, "name", "")
            depth -= 1
            span = self._call_on(node.lines[depth], name)
        return span

    def constructor(self, attribute: str) -> Span | None:
        """Span of what ``self.ATTRIBUTE`` was built with; ``net.0`` opens a Sequential."""
        first, *rest = attribute.split(".")
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Assign):
                continue
            for target in node.targets:
                value = self._value_of(target, first, node.value)
                if value is not None:
                    return self.span_of(self._inside(value, rest))
        return None

    def layer_at(self, span: Span) -> Span | None:
        """Construction of the layer that is called at a span; None where none is."""
        here = self.at(span)
        called = here.func if isinstance(here, ast.Call) else None
        if isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "self":
            return self.constructor(called.attr)
        return None

    def assigned(self, name: str, before: int) -> Span | None:
        """The last assignment to a name at or above a line, in the same function."""
        function = self.function_at(before)
        hits = [
            n
            for n in ast.walk(function or self.tree)
            if isinstance(n, ast.Assign)
            and n.lineno <= before
            and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
        ]
        last = max(hits, key=lambda n: n.lineno, default=None)
        return self.span_of(last) if last is not None else None

    def buffer(self, name: str) -> list[Span]:
        """Where a buffer is registered, and where what goes into it is made."""
        found = []
        for call in self.calls("register_buffer"):
            given = call.args[0] if call.args else None
            if isinstance(given, ast.Constant) and given.value == name:
                found.append(self.span_of(call))
                for part in ast.walk(call):
                    if isinstance(part, ast.Name) and part.id != "self":
                        made = self.assigned(part.id, call.lineno)
                        found += [made] if made is not None else []
        return found

    def numbers_at(self, span: Span) -> list[ast.expr]:
        """Names and attributes of the scale in a product or quotient, right side first."""
        here = self.at(span)
        if not isinstance(here, ast.BinOp):
            return []
        return [n for n in (here.right, here.left) if isinstance(n, ast.Name | ast.Attribute)]

    def unmentioned(self, entry: str, name: str) -> list[Span]:
        """For a parameter that no expression reads: statements that read a sibling twice."""
        function = self.target(entry)
        if function is None:
            return []
        names = {a.arg for a in function.args.args} - {"self"}
        loads = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and n.id in names]
        if name in loads:
            return []
        found = []
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.Return | ast.AugAssign):
                used = [
                    n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in names
                ]
                if any(used.count(n) > 1 for n in used):
                    found.append(self.span_of(node))
        return found

    def returned_as(self, entry: str, index: int) -> Span | None:
        """Where the variable that is returned at a place got its value."""
        back = self.last_return(entry)
        if back is None or back.value is None:
            return None
        parts = back.value.elts if isinstance(back.value, ast.Tuple) else [back.value]
        part = parts[index] if index < len(parts) else None
        if isinstance(part, ast.Call) and part.args and isinstance(part.args[0], ast.Name):
            lists = [c for c in self.calls("append") if _owner_of(c) == part.args[0].id]
            part = lists[-1].args[0] if lists and lists[-1].args else part
        if isinstance(part, ast.Name):
            return self.assigned(part.id, back.lineno)
        return None

    def shape_axes(self, line: int) -> list[int]:
        """The numbers in ``x.shape[0]`` and the like on a line."""
        found = []
        for node in self._on(line):
            if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape":
                try:
                    index = ast.literal_eval(node.slice)
                except ValueError:
                    continue
                if isinstance(index, int):
                    found.append(index)
        return found

    def returned(self, line: int) -> ast.expr | None:
        """The expression of the return statement that stands on a line."""
        for node in self._on(line):
            if isinstance(node, ast.Return):
                return node.value
        return None

    def last_return(self, entry: str) -> ast.Return | None:
        """The last return statement of the entry (of ``forward`` for a class)."""
        name = entry.rsplit(".", maxsplit=1)[-1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return _last_return(_method(node))
        for node in self._functions:
            if getattr(node, "name", "") == name:
                return _last_return(node)
        return None

    def definition(self, entry: str) -> Span:
        """Where the entry is defined."""
        name = entry.rsplit(".", maxsplit=1)[-1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                inner = _method(node) if isinstance(node, ast.ClassDef) else node
                return self.whole((inner or node).lineno)
        return self.whole(1)

    def target(self, entry: str) -> ast.FunctionDef | None:
        """The function that runs when the entry is called."""
        parts = entry.split(".")
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and node.name == parts[-1]:
                return _method(node)
            if isinstance(node, ast.FunctionDef) and node.name == parts[-1]:
                return node
        return None

    @cached_property
    def _functions(self) -> list[_Function]:
        return [n for n in ast.walk(self.tree) if isinstance(n, _Function)]

    def _on(self, line: int) -> Iterator[ast.AST]:
        for node in ast.walk(self.tree):
            if getattr(node, "lineno", None) == line:
                yield node

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="ignore")) + 1

    def _passed_on(self, node: Node, span: Span, function: _Function, aspect: str) -> bool:
        names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
        here = self.at(span)
        if not names or here is None:
            return False
        told: list[ast.expr] = []
        if isinstance(here, ast.Call):
            # A method is given its operand in front of the dot, a function as its first.
            method = isinstance(here.func, ast.Attribute) and _is_value(here.func.value)
            given = here.args if method or not node.inputs else here.args[1:]
            told = [*given, *(k.value for k in here.keywords)]
            operands = (
                [here.func.value] if method and isinstance(here.func, ast.Attribute) else []
            )
            operands += here.args
        elif isinstance(here, ast.BinOp):
            operands = [here.left, here.right]
        else:
            operands = [here]
        used = told if aspect == "axis" else operands
        return any(
            isinstance(n, ast.Name) and n.id in names and not self._reassigned(n.id, function)
            for part in used
            for n in ast.walk(part)
        )

    @staticmethod
    def _reassigned(name: str, function: _Function) -> bool:
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            for n in ast.walk(function)
        )

    def _call_on(self, line: int, name: str) -> Span:
        for node in self._on(line):
            if isinstance(node, ast.Call):
                called = node.func
                its = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                if its == name:
                    return self.span_of(node)
        return self.whole(line)

    @staticmethod
    def _value_of(target: ast.expr, name: str, value: ast.expr) -> ast.expr | None:
        if isinstance(target, ast.Attribute) and target.attr == name:
            return value
        if isinstance(target, ast.Tuple):
            hit = [i for i, t in enumerate(target.elts) if getattr(t, "attr", "") == name]
            if hit and isinstance(value, ast.Tuple) and hit[0] < len(value.elts):
                return value.elts[hit[0]]
            return value if hit else None
        return None

    @staticmethod
    def _inside(value: ast.expr, rest: list[str]) -> ast.expr:
        for part in rest:
            if part.isdigit() and isinstance(value, ast.Call) and int(part) < len(value.args):
                value = value.args[int(part)]
        return value


def _owner_of(call: ast.Call) -> str:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else ""


def _is_value(node: ast.expr) -> bool:
    """Whether what stands before a dot is a value and not a library."""
    libraries = {"torch", "np", "numpy", "F", "nn", "functional", "math", "einops", "self"}
    while isinstance(node, ast.Attribute):
        node = node.value
    return not (isinstance(node, ast.Name) and node.id in libraries)


def _method(node: ast.ClassDef) -> ast.FunctionDef | None:
    methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    return methods.get("forward") or methods.get("__call__")


def _last_return(node: _Function | None) -> ast.Return | None:
    if node is None or isinstance(node, ast.Lambda):
        return None
    found = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
    return max(found, key=lambda n: n.lineno, default=None)
