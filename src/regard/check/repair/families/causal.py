"""Triangles of a causal mask: which side, which diagonal, which corner."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.axes import argument
from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Operation, Program

_TRIANGLES = ("triu", "tril")


@family("triangle")
def triangles(program: Program) -> Iterator[Change | None]:
    """The other triangle, another diagonal, the lower right corner."""
    for found in program.operations(*_TRIANGLES):
        named = found.keyword("diagonal", "k")
        given = named.value if named is not None else found.args[0] if found.args else None
        other = "tril" if found.name == "triu" else "triu"
        # A band is what both triangles leave.
        if found.form == "method":
            yield change(1.5, program.after(found.node, f".{other}()"))
        else:
            head = program.text(found.node.func)[: -len(found.name)]
            yield change(
                1.5, program.put(found.node, f"{head}{other}({program.text(found.node)})")
            )
        span = _renamed(program, found, other)
        if given is None:
            for k in ("1", "-1", *_corners(program, found)):
                cost = 1.1 if len(k) < 3 else 1.4
                yield change(cost, argument(program, found, k))
                yield change(cost + 0.2, _both(program, found, other, k))
            yield change(1.0, span)
            continue
        whole = program.text(given)
        value = literal(given)
        options = ["0", "1", "-1"] if value is not None else []
        if value is None:
            tight = program.at(given, 11)
            options += [
                f"{whole} + 1",
                f"{whole} - 1",
                f"1 - {tight}",
                f"-{program.at(given, 12)}",
            ]
        options += _corners(program, found)
        for k in options:
            if k != whole:
                yield change(1.0 if len(k) < 3 else 1.3, program.put(given, k))
            place = program.put(given, k)
            if place is not None and span is not None:
                yield change(1.3, span, place)
        if span is not None:
            yield change(1.1, span)
            yield change(1.1, _both(program, found, other, None))


def _renamed(program: Program, found: Operation, name: str) -> tuple[int, int, str] | None:
    end = program.span(found.node.func)[1]
    return end - len(found.name), end, name


def _both(
    program: Program, found: Operation, name: str, k: str | None
) -> tuple[int, int, str] | None:
    """The other triangle with another diagonal, or with none named."""
    if found.operand is None:
        return None
    start, end = program.span(found.node.func)
    head = program.source[start : end - len(found.name)]
    first = program.text(found.operand) if found.form != "method" else ""
    parts = [p for p in (first, k) if p]
    return start, program.span(found.node)[1], f"{head}{name}({', '.join(parts)})"


def _corners(program: Program, found: Operation) -> list[str]:
    """Diagonals that put the triangle into the lower right corner."""
    rows, columns = _rows_and_columns(program, found.operand)
    if rows is None or columns is None or rows == columns:
        return []
    gap = f"{columns} - {rows}"
    return [f"{gap} + 1", gap, f"{gap} - 1"]


def _rows_and_columns(program: Program, node: ast.expr | None) -> tuple[str | None, str | None]:
    if node is None:
        return None, None
    for inner in ast.walk(node):
        made = program.operation(inner)
        if made is None or made.name not in ("ones", "zeros", "full", "new_ones", "ones_like"):
            continue
        shape = list(made.node.args)
        if shape and isinstance(shape[0], ast.Tuple | ast.List):
            shape = list(shape[0].elts)
        if len(shape) >= 2:
            return program.text(shape[-2]), program.text(shape[-1])
    return None, None


@family("offset")
def offsets(program: Program) -> Iterator[Change | None]:
    """Count positions from where the newest ones stand, by a difference of two lengths."""
    for node in program.loads():
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = program.seen(node.left), program.seen(node.comparators[0])
            if left is None or right is None or "index" not in (left.kind, right.kind):
                continue
            gaps = _gaps(program, node)
            for place in (node.left, node.comparators[0]):
                seen = program.seen(place)
                if seen is None or seen.kind != "index":
                    continue
                text = program.at(place, 10)
                for gap in gaps:
                    yield change(1.7, program.put(place, f"{text} + {gap}"))
                    yield change(1.8, program.put(place, f"{text} - ({gap})"))
                yield change(1.6, program.put(place, f"{text} + 1"))
                yield change(1.6, program.put(place, f"{text} - 1"))


@family("offset")
def ranges(program: Program) -> Iterator[Change | None]:
    """Count from one, or from where the newest positions stand, instead of from zero."""
    for found in program.operations("arange"):
        args = [a for a in (found.operand, *found.args) if a is not None]
        counts = [v.text for v in program.scope(found.node) if v.kind == "int"]
        if len(args) == 1:
            n, (start, end) = program.at(args[0], 10), program.span(args[0])
            yield change(1.2, (start, end, f"1, {n} + 1"))
            for gap in _gaps(program, found.node):
                yield change(1.6, (start, end, f"{gap}, {gap} + {n}"))
            for text in counts:
                if text != n:
                    yield change(1.5, (start, end, f"{text}, {text} + {n}"))
        if len(args) == 2:
            n = program.at(args[1], 10)
            start, end = program.span(args[0])[0], program.span(args[1])[1]
            if literal(args[0]) == 1:
                yield change(1.3, (start, end, program.text(args[1]).removesuffix(" + 1")))
            for text in counts:
                yield change(1.7, (start, end, f"{text}, {text} + {n}"))


def _gaps(program: Program, node: ast.AST) -> list[str]:
    """Differences of two whole numbers in reach that were positive when the code ran."""
    known = [
        (v.text, v.seen.value)
        for v in program.scope(node)
        if v.kind == "int" and v.seen is not None
    ]
    return [
        f"{a} - {b}" for a, m in known for b, n in known if isinstance(m, int) and m > n > 0
    ][:6]
