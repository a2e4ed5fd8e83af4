"""Numbers, comparisons and truth values."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, literal, turned
from regard.check.repair.program import Program
from regard.check.sizes import Sizes
from regard.errors import InputError

_COMPARISONS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Eq: ("!=", ">", "<"),
    ast.NotEq: ("==", ">"),
    ast.Lt: ("<=", ">", ">="),
    ast.LtE: ("<", ">=", ">"),
    ast.Gt: (">=", "<", "<=", "!="),
    ast.GtE: (">", "<=", "<"),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_RANGES = {"clamp", "clamp_", "clip", "clip_"}


@family("number")
def numbers(program: Program) -> Iterator[Change | None]:
    """Replace a number by a neighbour, its negative or another usual one."""
    for node in program.nodes:
        value = literal(node)
        parent, _ = program.parents[node]
        if value is None or literal(parent) is not None:
            continue
        if isinstance(value, int):
            near = [
                value + 1,
                value - 1,
                -value,
                *((0, 1, 2, -1, -2) if abs(value) <= 4 else ()),
            ]
        else:
            near = [-value, *((0.5, -0.5, 1.0) if abs(value) <= 2 else ())]
            if value:
                near.append(1 / value)
        for other in dict.fromkeys(near):
            if other == value or _idle(parent, other) or _leaves_nothing(parent, node, other):
                continue
            small = abs(other - value) <= 1 or other == -value
            yield change(1.2 if small else 1.6, program.put(node, repr(other)))


def _idle(parent: ast.AST, value: float) -> bool:
    """Whether adding, or multiplying by, a number does nothing."""
    if not isinstance(parent, ast.BinOp):
        return False
    if isinstance(parent.op, ast.Add | ast.Sub):
        return value == 0
    return value == 1


def _leaves_nothing(parent: ast.AST, bound: ast.AST, value: float) -> bool:
    """Whether a range of ``clamp`` or ``clip`` would have its ends in the wrong order.

    What comes of it is a constant, of which every relation of weights holds.
    """
    if not isinstance(parent, ast.Call) or not isinstance(parent.func, ast.Attribute):
        return False
    if parent.func.attr not in _RANGES:
        return False
    named = {each.arg: each.value for each in parent.keywords}
    ends = [named.get("min"), named.get("max")]
    if not any(ends):
        ends = list(parent.args[-2:])
    if len(ends) < 2 or None in ends:
        return False
    low, high = (value if end is bound else _computed(end) for end in ends)
    return low is not None and high is not None and low >= high


def _computed(node: ast.expr | None) -> float | None:
    """Return a number that stands there, or that is computed from such."""
    if node is None or any(isinstance(each, ast.Name) for each in ast.walk(node)):
        return None
    try:
        found = Sizes().value(ast.unparse(node))
    except InputError:
        return None
    return found if isinstance(found, int | float) else None


@family("shift")
def shifts(program: Program) -> Iterator[Change | None]:
    """Add or take away one, and change the sign, of a whole number that is no literal."""
    for node in program.loads():
        seen = program.seen(node)
        if seen is None or seen.kind != "int" or literal(node) is not None:
            continue
        if isinstance(node, ast.Name | ast.Attribute):
            parent, place = program.parents[node]
            if isinstance(parent, ast.Assign) or place == "func":
                continue
        text = program.at(node, 10)
        yield change(1.5, program.put(node, f"{text} + 1"))
        yield change(1.5, program.put(node, f"{text} - 1"))
        if isinstance(node, ast.UnaryOp):
            yield change(1.4, program.put(node, f"1 - {program.at(node.operand, 11)}"))
            yield change(1.6, program.put(node, f"{program.at(node.operand, 10)} - 1"))
        else:
            yield change(1.6, program.put(node, f"-{program.at(node, 12)}"))
            yield change(1.7, program.put(node, f"1 - {program.at(node, 11)}"))
            yield change(1.9, program.put(node, f"2 * {program.at(node, 11)}"))
        summed = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
        if isinstance(node, ast.BinOp) and summed and isinstance(literal(node.right), int):
            yield change(1.2, program.put(node, program.text(node.left)))


@family("comparison")
def comparisons(program: Program) -> Iterator[Change | None]:
    """Turn a comparison round, or let it include or exclude equality."""
    for node in program.loads():
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        left, right = program.text(node.left), program.text(node.comparators[0])
        for other in _COMPARISONS.get(type(node.ops[0]), ()):
            yield change(1.2, program.put(node, f"{left} {other} {right}"))
        value = literal(node.comparators[0])
        if value is not None:
            flipped = {0.0: "1", 1.0: "0"}.get(float(value))
            if flipped is not None:
                yield change(1.3, program.put(node.comparators[0], flipped))


@family("truth")
def truths(program: Program) -> Iterator[Change | None]:
    """Turn a truth value round: a literal, a condition, ``and`` or ``or``."""
    for node in program.nodes:
        other = turned(node)
        if other is not None:
            yield change(1.2, program.put(node, other))
        if isinstance(node, ast.BoolOp) and len(node.values) == 2:
            word = "or" if isinstance(node.op, ast.And) else "and"
            a, b = (program.at(v, 5) for v in node.values)
            yield change(1.4, program.put(node, f"{a} {word} {b}"))
    for branch in ast.walk(program.tree):
        if isinstance(branch, ast.If | ast.IfExp | ast.While):
            test = branch.test
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                yield change(1.4, program.put(test, program.text(test.operand)))
            elif not isinstance(test, ast.Compare):
                yield change(1.4, program.put(test, f"not {program.at(test, 4)}"))
