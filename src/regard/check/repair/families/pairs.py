"""What goes together: sums that one loop rescales alike, an exponential and its maximum."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family
from regard.check.repair.program import Program


@family("pair")
def rescaled(program: Program) -> Iterator[Change | None]:
    """A running sum takes the factor that another one in the same loop takes.

    ``total = total * old + new`` beside ``out = out + more`` in softmax over chunks.
    """
    for loop in ast.walk(program.tree):
        if not isinstance(loop, ast.For | ast.While):
            continue
        sums = [s for s in loop.body if isinstance(s, ast.Assign)]
        factors = [program.text(f) for s in sums for f in _factor(program, s)]
        for statement in sums:
            own = _carried(program, statement)
            if own is None:
                continue
            name = program.text(own)
            for factor in dict.fromkeys(factors):
                inner = factor if factor.replace("_", "").isalnum() else f"({factor})"
                wider = f"{inner}.unsqueeze(-1)" if program.is_torch else f"{inner}[..., None]"
                yield change(1.1, program.put(own, f"{name} * {factor}"))
                yield change(1.1, program.put(own, f"{name} * {wider}"))


def _carried(program: Program, statement: ast.Assign) -> ast.expr | None:
    """The running sum in ``x = x + more``."""
    value, target = statement.value, program.text(statement.targets[0])
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return next((s for s in (value.left, value.right) if program.text(s) == target), None)
    return None


def _factor(program: Program, statement: ast.Assign) -> Iterator[ast.expr]:
    """The factor in ``x = x * factor + more``."""
    value, target = statement.value, program.text(statement.targets[0])
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return
    for side in (value.left, value.right):
        if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult):
            if program.text(side.left) == target:
                yield side.right
            elif program.text(side.right) == target:
                yield side.left


@family("pair")
def shifted(program: Program) -> Iterator[Change | None]:
    """Exponentials that are divided by each other are shifted alike."""
    shifts: dict[str, int] = {}
    places = [f for f in program.operations("exp") if f.operand is not None]
    for found in places:
        inner = found.operand
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            shifts.setdefault(program.text(inner.right), found.node.lineno)
    for found in places:
        inner = found.operand
        assert inner is not None
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            yield change(1.3, program.put(inner, program.text(inner.left)))
            continue
        for shift in shifts:
            yield change(0.9, program.put(inner, f"{program.at(inner, 10)} - {shift}"))


@family("pair")
def reciprocals(program: Program) -> Iterator[Change | None]:
    """Divide one by what was meant as a divisor, or leave that away."""
    for node in program.statements():
        if not isinstance(node, ast.Assign):
            continue
        value, seen = node.value, program.seen(node.value)
        if seen is None or seen.kind != "float":
            continue
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            if isinstance(value.left, ast.Constant):
                yield change(1.6, program.put(value, program.text(value.right)))
        elif isinstance(value, ast.Call):
            yield change(1.6, program.put(value, f"1.0 / {program.text(value)}"))


@family("pair")
def ranked(program: Program) -> Iterator[Change | None]:
    """Sort the other way round, or keep the largest for the smallest."""
    for found in program.operations("sort", "argsort", "topk"):
        word = "largest" if found.name == "topk" else "descending"
        named = found.keyword(word)
        if named is not None and isinstance(named.value, ast.Constant):
            yield change(1.0, program.put(named.value, repr(not named.value.value)))
        elif program.is_torch and named is None:
            end = program.span(found.node)[1] - 1
            comma = "" if program.source[:end].rstrip().endswith(("(", ",")) else ", "
            value = "False" if found.name == "topk" else "True"
            yield change(1.0, (end, end, f"{comma}{word}={value}"))
        elif found.form == "library" and found.name != "topk":
            text = program.text(found.node)
            yield change(1.1, program.put(found.node, f"{text}[..., ::-1]"))


@family("pair")
def types(program: Program) -> Iterator[Change | None]:
    """The number type of what a tensor meets, where two types crash."""
    crash = program.observed.crash
    if crash is None or not program.is_torch or "type" not in crash.message.lower():
        return
    for found in program.operations():
        if found.keyword("dtype") is None and found.name not in ("float", "double", "to"):
            continue
        for other in program.scope(found.node):
            if other.seen is not None and other.seen.kind == "float":
                text = f"{program.text(found.node)}.to({other.text}.dtype)"
                yield change(1.1 if other.parameter else 1.3, program.put(found.node, text))


@family("pair")
def each_of(program: Program) -> Iterator[Change | None]:
    """The element of a loop's turn, where the loop's list is read at one place."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
            continue
        whole = program.text(node.value)
        for loop in program.ancestors(node):
            if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
                continue
            if program.text(loop.iter) == whole:
                yield change(0.9, program.put(node, loop.target.id))


@family("pair")
def windows(program: Program) -> Iterator[Change | None]:
    """The last ``n`` of ``m`` rows for the first ``n``: ``[m - n:m]`` for ``[:n]``."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
            continue
        parts = [p for p in node.slice.elts if isinstance(p, ast.Slice)]
        for part in parts:
            others = [p.upper for p in parts if p is not part and p.upper is not None]
            if part.lower is not None or part.upper is None or part.step is not None:
                continue
            for other in others:
                n, m = program.text(part.upper), program.text(other)
                if n != m:
                    yield change(1.1, (*program.span(part), f"{m} - {n}:{m}"))


@family("pair")
def distances(program: Program) -> Iterator[Change | None]:
    """A distance to both sides for a signed one, where places are taken from each other."""
    for node in program.loads():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
            continue
        seen = program.seen(node)
        if seen is None or not seen.is_tensor or seen.kind not in ("int", "index"):
            continue
        if program.is_torch:
            yield change(1.2, program.put(node, f"({program.text(node)}).abs()"))
        elif program.alias("numpy"):
            text = f"{program.alias('numpy')}.abs({program.text(node)})"
            yield change(1.2, program.put(node, text))
