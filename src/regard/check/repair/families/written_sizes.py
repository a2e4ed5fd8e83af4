"""Sizes that stand as numbers or as the wrong tensor's: the start of positions, their count."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Operation, Program

_COUNTS = ("arange", "range", "ones", "zeros", "tri")
_MOST = 12


@family("written-size")
def starts(program: Program) -> Iterator[Change | None]:
    """Where a call of the file's own function is given 0 or 1, a size that is in reach.

    A call that is made for two tensors alike is changed for both.
    """
    for statement in program.statements():
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        own = [o for n in calls if (o := program.operation(n)) and program.definition(o)]
        places = [a for o in own for a in o.node.args if literal(a) in (0, 1)]
        places = [a for a in places if isinstance(literal(a), int)]
        if not places or not own:
            continue
        names = [
            v.text
            for v in program.scope(statement)
            if v.kind == "int" and not v.text.startswith("self.")
        ]
        for name in names[:_MOST]:
            for some in [[p] for p in places] + ([places] if len(places) > 1 else []):
                cost = 1.2 if len(some) == len(places) else 1.5
                yield change(cost, *(program.put(p, name) for p in some))


@family("written-size")
def counts(program: Program) -> Iterator[Change | None]:
    """Count positions by another size: by an axis of a tensor that is in reach."""
    for found in program.operations(*_COUNTS):
        for place in _arguments(found):
            seen = program.seen(place)
            if seen is None or seen.kind != "int" or literal(place) is not None:
                continue
            for text in _axes(program, found):
                if text != program.text(place):
                    yield change(1.2, program.put(place, text))


def _arguments(found: Operation) -> list[ast.expr]:
    first = [found.operand] if found.operand is not None and found.form != "method" else []
    return [*first, *found.args][:2]


def _axes(program: Program, found: Operation) -> Iterator[str]:
    for variable in program.scope(found.node)[:_MOST]:
        seen = variable.seen
        if seen is None or seen.kind != "float" or not seen.rank or "." in variable.text:
            continue
        for axis in range(min(seen.rank, 3)):
            size = f"size({axis})" if program.is_torch else f"shape[{axis}]"
            yield f"{variable.text}.{size}"


@family("written-size")
def layouts(program: Program) -> Iterator[Change | None]:
    """Axes 0 and 1 exchanged in one statement, as from time-first to batch-first."""
    for statement in program.statements():
        places = [
            n
            for n in ast.walk(statement)
            if isinstance(n, ast.Constant) and type(n.value) is int and n.value in (0, 1)
        ]
        inside = [p for p in places if isinstance(program.parents[p][0], ast.Call)]
        if len(inside) > 1 and len({p.value for p in inside}) > 1:
            yield change(1.4, *(program.put(p, str(1 - int(str(p.value)))) for p in inside))


@family("transpose")
def reversed_axes(program: Program) -> Iterator[Change | None]:
    """The last two axes exchanged, where ``.T`` reverses three or more."""
    for node in program.loads():
        if isinstance(node, ast.Attribute) and node.attr == "T":
            rank = program.rank(node.value)
            if rank is not None and rank > 2:
                whole = program.at(node.value)
                text = ".transpose(-2, -1)" if program.is_torch else ".swapaxes(-1, -2)"
                yield change(0.9, program.put(node, whole + text))
