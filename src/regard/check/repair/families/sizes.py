"""Whole numbers that are sizes: of a layer's input, of a view, of a table."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Program

_MOST, _LARGEST = 28, 600


@family("layer-size")
def layer_sizes(program: Program) -> Iterator[Change | None]:
    """Another size for a layer: a sum, product, multiple or part of the sizes in reach."""
    for node in program.loads():
        function = program.function(node)
        seen = program.seen(node)
        if function is None or function.name != "__init__":
            continue
        parent, place = program.parents[node]
        made = isinstance(parent, ast.Call | ast.keyword | ast.Assign)
        made = made or (isinstance(parent, ast.BinOp) and isinstance(node, ast.Name))
        value = literal(node) if literal(node) is not None else seen and seen.value
        if not made or place == "func" or not isinstance(value, int) or isinstance(value, bool):
            continue
        # A written 1 or 2 is a count or a kernel, hardly a size; and kernels grow quickly.
        given = literal(node)
        if given is not None and (given <= 3 or isinstance(parent, ast.Assign)):
            continue
        # Sizes of layers that do not fit crash; code that runs has another mistake.
        late = 0.8 * (program.observed.crash is None and isinstance(parent, ast.Call))
        for text, _, cost in _within(program, node):
            if text != program.text(node):
                yield change(1.2 + cost + late, program.put(node, text))


def _within(program: Program, node: ast.AST) -> list[tuple[str, int, float]]:
    """Sizes that can be said at a place, each value once, the simplest way of saying it."""
    plain = [
        (v.text, v.seen.value)
        for v in program.scope(node)
        if v.kind == "int" and v.seen is not None and isinstance(v.seen.value, int)
    ]
    line = getattr(node, "lineno", 0)
    ready = {
        program.text(t)
        for s in ast.walk(program.tree)
        if isinstance(s, ast.Assign) and s.lineno < line
        for target in s.targets
        for t in ast.walk(target)
        if isinstance(t, ast.Attribute)
    }
    plain = [(t, n) for t, n in plain if not t.startswith("self.") or t in ready]
    found: dict[int, tuple[str, int, float]] = {}
    options: list[tuple[str, int, float]] = [(t, n, 0.0) for t, n in plain]
    for (a, m), (b, n) in itertools.combinations(plain[:6], 2):
        options.append((f"{a} + {b}", m + n, 0.3))
        if m * n <= _LARGEST:  # a layer of a million weights only takes time
            options.append((f"{a} * {b}", m * n, 0.4))
        for x, p, y, q in ((a, m, b, n), (b, n, a, m)):
            if q > 1 and p % q == 0:
                options.append((f"{x} // {y}", p // q, 0.4))
    for a, m in plain[:6]:
        options.append((f"2 * {a}", 2 * m, 0.4))
        options.append((f"3 * {a}", 3 * m, 0.6))
        if m % 2 == 0:
            options.append((f"{a} // 2", m // 2, 0.6))
    for text, value, cost in options:
        if value not in found or cost < found[value][2]:
            found[value] = (text, value, cost)
    return sorted(found.values(), key=lambda o: o[2])[:_MOST]


@family("size")
def sizes(program: Program) -> Iterator[Change | None]:
    """Another size in reach for one that is read from a tensor or a variable."""
    for node in program.loads():
        seen = program.seen(node)
        if seen is None or seen.kind != "int" or literal(node) is not None:
            continue
        function = program.function(node)
        if function is None or function.name == "__init__":
            continue
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            continue
        for text, value, cost in _readable(program, node):
            if value != seen.value and text != program.text(node):
                yield change(1.7 + cost, program.put(node, text))


def _readable(program: Program, node: ast.AST) -> list[tuple[str, int, float]]:
    found: dict[int, tuple[str, int, float]] = {}
    for variable in program.scope(node):
        seen = variable.seen
        if seen is None:
            continue
        options: list[tuple[str, int, float]] = []
        if variable.kind == "int" and isinstance(seen.value, int):
            options.append((variable.text, seen.value, 0.0))
        elif seen.is_tensor and seen.shape and (variable.parameter or len(found) < 12):
            for i, n in enumerate(seen.shape):
                axis = str(i) if i < len(seen.shape) - 1 else "-1"
                text = (
                    f"{variable.text}.size({axis})"
                    if program.is_torch
                    else f"{variable.text}.shape[{axis}]"
                )
                options.append((text, n, 0.4))
        for text, value, cost in options:
            if value not in found or cost < found[value][2]:
                found[value] = (text, value, cost)
    return sorted(found.values(), key=lambda o: o[2])[:_MOST]
