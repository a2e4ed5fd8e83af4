"""Indices and slices: which part, and where new axes go."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.observe import Seen
from regard.check.repair.program import Program, Variable

_SMALL = 6


@family("slice")
def slices(program: Program) -> Iterator[Change | None]:
    """Another part of an axis: from the other end, the others, every second."""
    for part in ast.walk(program.tree):
        if not isinstance(part, ast.Slice) or program.function(part) is None:
            continue
        bounds = (part.lower, part.upper, part.step)
        lower, upper, step = (program.text(p) if p is not None else "" for p in bounds)
        start, end = program.span(part)
        if lower or upper or step:
            for text, cost in _other_parts(lower, upper, step):
                yield change(cost, (start, end, text))


def _other_parts(lower: str, upper: str, step: str) -> Iterator[tuple[str, float]]:
    if step:
        start = {"": "1", "0": "1", "1": "0"}.get(lower)
        if start is not None:
            yield f"{start}::{step}", 1.0
        yield f":{step}", 1.6
        return
    bound = lower or upper
    if lower and upper:
        return
    negative = bound.removeprefix("-") if bound.startswith("-") else f"-{_tight(bound)}"
    yield (f":{bound}" if lower else f"{bound}:"), 1.1
    yield f"{negative}:", 1.1
    yield f":{negative}", 1.2
    for text in (f"{bound} + 1", f"{bound} - 1"):
        yield (f"{text}:" if lower else f":{text}"), 1.3
    yield "0::2", 1.4
    yield "1::2", 1.5
    yield "::2", 1.6
    yield f":2 * {_tight(bound)}:2", 1.9
    yield f"1:2 * {_tight(bound)}:2", 2.0


def _tight(text: str) -> str:
    return text if text.replace(".", "").replace("_", "").isalnum() else f"({text})"


@family("index")
def indices(program: Program) -> Iterator[Change | None]:
    """Another element of a short axis; an index where there is none; a whole part for one."""
    for node in program.loads():
        if isinstance(node, ast.Subscript):
            yield from _other_elements(program, node)
        seen = program.seen(node)
        parent, place = program.parents[node]
        inside = isinstance(parent, ast.Attribute | ast.Subscript) and place == "value"
        if seen is None or inside or not isinstance(node, ast.Name):
            continue
        if seen.kind in ("tuple", "list"):
            for i in range(min(int(seen.value or 2), 3)):
                yield change(1.6, program.after(node, f"[{i}]"))
        if not seen.is_tensor or not seen.shape:
            continue
        for other in program.scope(node):
            if other.text != node.id and _reorders(other, seen):
                yield change(1.5, program.after(node, f"[{other.text}]"))
        if seen.shape[0] <= _SMALL:
            for text, cost in (("[-1]", 1.7), ("[0]", 1.9), ("[-1:]", 2.0), ("[None]", 2.1)):
                yield change(cost, program.after(node, text))


def _reorders(order: Variable, seen: Seen) -> bool:
    """Whether a variable may be a permutation of the examples, as of a sort by length."""
    mine = order.seen
    if mine is None or mine.kind != "index" or mine.rank != 1 or not mine.shape:
        return False
    return bool(seen.shape) and seen.shape is not None and seen.shape[0] == mine.shape[0]


def _other_elements(program: Program, node: ast.Subscript) -> Iterator[Change | None]:
    base = program.seen(node.value)
    value = literal(node.slice)
    if isinstance(value, int) and not isinstance(program.parents[node][0], ast.Delete):
        size = base.shape[0] if base is not None and base.shape else None
        if base is not None and base.kind in ("tuple", "list"):
            size = int(base.value or 0)
        for other in (-1, 0, 1, -2, 2, 3):
            if other != value and (size is None or -size <= other < size):
                yield change(1.1, program.put(node.slice, str(other)))
        if size is not None and size <= _SMALL and base is not None and base.rank == 3:
            x = program.at(node.value)
            cat, word = _join(program)
            for a, b in ((-2, -1), (0, 1)):
                text = f"{cat}([{x}[{a}], {x}[{b}]], {word}=-1)"
                yield change(1.9, program.put(node, text))
    parent = program.parents[node][0]
    own_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if base is not None and base.is_tensor and not own_shape:
        yield change(2.2, program.put(node, program.text(node.value)))
    if isinstance(node.slice, ast.Name) and not isinstance(parent, ast.Subscript):
        yield change(2.4, program.put(node, program.text(node.value)))


def _join(program: Program) -> tuple[str, str]:
    if program.alias("torch"):
        return f"{program.alias('torch')}.cat", "dim"
    return f"{program.alias('numpy') or 'np'}.concatenate", "axis"


@family("shape-of")
def shapes_of(program: Program) -> Iterator[Change | None]:
    """The size of another axis: ``x.size(1)``, ``x.shape[1]``, ``x.shape[:2]``."""
    for node in program.loads():
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            if node.value.attr != "shape":
                continue
            value, rank = literal(node.slice), program.rank(node.value.value)
            place: ast.expr = node.slice
        else:
            found = program.operation(node)
            if found is None or found.name != "size" or len(found.args) != 1:
                continue
            value, rank = literal(found.args[0]), program.rank(found.operand)
            place = found.args[0]
        if not isinstance(value, int):
            continue
        count = rank or 4
        for other in range(count):
            if other != value % count:
                text = str(other) if value >= 0 else str(other - count)
                yield change(1.0, program.put(place, text))


@family("new-axis")
def new_axes(program: Program) -> Iterator[Change | None]:
    """New axes of size one elsewhere, one more, or one fewer."""
    for node in program.loads():
        base, had = _without_new(program, node)
        if base is None:
            continue
        parent, place = program.parents[node]
        if isinstance(parent, ast.Attribute) and parent.attr in ("unsqueeze",):
            continue
        if isinstance(parent, ast.Subscript) and place == "value":
            continue
        rank = program.rank(base)
        if rank is None or rank > 4:
            continue
        text = program.at(base)
        for total in range(rank, 5):
            if total - rank > 3 or (not had and total == rank):
                continue
            for where in itertools.combinations(range(total), total - rank):
                index = ["None" if i in where else ":" for i in range(total)]
                while len(index) > 1 and index[-1] == ":":
                    index.pop()
                body = text if total == rank else f"{text}[{shortened(index, total, rank)}]"
                cost = (
                    1.1 + 0.2 * abs(total - rank - had) if had else 1.9 + 0.2 * (total - rank)
                )
                yield change(cost, program.put(node, body))


def shortened(index: list[str], total: int, rank: int) -> str:
    """``..., None`` for new axes behind all others.

    >>> shortened([":", ":", "None"], 3, 2)
    '..., None'
    """
    news = index.count("None")
    behind = len(index) == total and all(i == "None" for i in index[-news:])
    if behind and rank > 0 and index[: total - news] == [":"] * (total - news):
        return ", ".join(["...", *["None"] * news])
    return ", ".join(index)


def _without_new(program: Program, node: ast.expr) -> tuple[ast.expr | None, int]:
    """The expression below all its new axes, and how many there are."""
    had = 0
    base: ast.expr = node
    while True:
        found = program.operation(base)
        if found is not None and found.name in ("unsqueeze", "expand_dims"):
            if found.operand is None:
                return None, 0
            base, had = found.operand, had + 1
            continue
        if isinstance(base, ast.Subscript):
            parts = base.slice.elts if isinstance(base.slice, ast.Tuple) else [base.slice]
            plain = [
                p
                for p in parts
                if (isinstance(p, ast.Constant) and p.value in (None, Ellipsis))
                or (isinstance(p, ast.Slice) and not (p.lower or p.upper or p.step))
            ]
            news = sum(isinstance(p, ast.Constant) and p.value is None for p in parts)
            if news and len(plain) == len(parts):
                base, had = base.value, had + news
                continue
        break
    if had:
        return base, had
    seen = program.seen(node)
    parent, _ = program.parents[node]
    # A tensor that meets one of more axes may lack one.
    if seen is None or not seen.is_tensor or not isinstance(node, ast.Name | ast.Call):
        return None, 0
    if isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.MatMult):
        other = parent.right if parent.left is node else parent.left
        mine, theirs = program.rank(node), program.rank(other)
        if mine is not None and theirs is not None and mine < theirs:
            return node, 0
    if seen.kind == "mask" and isinstance(parent, ast.Call | ast.UnaryOp | ast.keyword):
        return node, 0
    return None, 0
