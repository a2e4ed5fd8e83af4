"""What is kept from step to step and from call to call, and what belongs to the caller."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.axes import without
from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Program

_SYMBOLS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&"},
    **{ast.BitOr: "|", ast.MatMult: "@", ast.Pow: "**", ast.FloorDiv: "//"},
}


@family("collect")
def collects(program: Program) -> Iterator[Change | None]:
    """Keep what every step makes, where each step overwrites the last one's."""
    for node in program.statements():
        looped = any(isinstance(a, ast.For | ast.While) for a in program.ancestors(node))
        if not looped or not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        if not isinstance(target, ast.Name):
            continue
        function = program.function(node)
        known = [v for v in program.scope(node) if v.text == target.id]
        early = function is not None and any(
            isinstance(n, ast.Name) and n.id == target.id and n.lineno < node.lineno
            for n in ast.walk(function)
        )
        if not early:
            continue
        value, name = program.text(node.value), target.id
        rank = program.rank(node.value) or (
            known[0].seen.rank if known and known[0].seen else 3
        )
        if program.is_torch and program.alias("torch"):
            join, word = f"{program.alias('torch')}.cat", "dim"
        else:
            join, word = f"{program.alias('numpy') or 'np'}.concatenate", "axis"
        for axis in range(rank or 3):
            text = f"{join}([{name}, {value}], {word}={axis})"
            yield change(1.4, program.put(node.value, text))
        yield change(1.6, program.put(node.value, f"{name} + {program.at(node.value, 11)}"))
        start, end = program.span(node)
        yield change(1.5, (start, end, f"{name}.append({value})"))


@family("in-place")
def in_place(program: Program) -> Iterator[Change | None]:
    """Make a new tensor by a statement that changes a caller's."""
    for node in program.statements():
        start, end = program.span(node)
        if isinstance(node, ast.AugAssign) and type(node.op) in _SYMBOLS:
            name, sign = program.text(node.target), _SYMBOLS[type(node.op)]
            made = f"{name} = {name} {sign} {program.at(node.value, 12)}"
            yield change(0.9, (start, end, made))
        found = program.operation(node.value) if isinstance(node, ast.Expr) else None
        if found is not None and found.form == "method" and isinstance(found.operand, ast.Name):
            seen = program.seen(found.operand)
            if seen is None or seen.is_tensor:
                whole = program.text(node)
                made = whole.replace(f".{found.name}(", f".{found.name.rstrip('_')}(", 1)
                yield change(0.9, (start, end, f"{found.operand.id} = {made}"))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            made = _filled(program, node.targets[0], program.text(node.value))
            if made:
                yield change(1.1, (start, end, made))


def _filled(program: Program, target: ast.Subscript, value: str) -> str:
    """``x[where] = value`` as an expression that leaves ``x`` alone."""
    if not isinstance(target.value, ast.Name):
        return ""
    name, where, seen = target.value.id, program.text(target.slice), program.seen(target.slice)
    if not program.is_torch:
        return f"{name} = {program.alias('numpy') or 'np'}.where({where}, {value}, {name})"
    if seen is None or seen.kind in ("mask", "index"):
        return f"{name} = {name}.masked_fill({where}, {value})"
    return ""


@family("in-place")
def in_place_calls(program: Program) -> Iterator[Change | None]:
    """Call what makes a new tensor, or work on a copy."""
    for found in program.operations():
        name = found.name
        if found.form == "method" and name.endswith("_") and not name.startswith("_"):
            func_end = program.span(found.node.func)[1]
            yield change(1.0, (func_end - len(name), func_end, name.rstrip("_")))
        for keyword in found.node.keywords:
            if keyword.arg == "out":
                yield change(1.3, without(program, keyword))
    copy = ".clone()" if program.is_torch else ".copy()"
    for node in program.loads():
        seen = program.seen(node)
        parent, place = program.parents[node]
        if seen is None or not seen.is_tensor or place not in ("value", "elts"):
            continue
        simple = isinstance(node, ast.Name | ast.Subscript | ast.Call)
        if simple and isinstance(parent, ast.Assign | ast.Tuple):
            yield change(1.7, program.after(node, copy))


@family("cache-key")
def cache_keys(program: Program) -> Iterator[Change | None]:
    """Remember under everything that a result depends on."""
    for node in program.loads():
        if not _is_key(program, node):
            continue
        seen, mine = program.seen(node), program.text(node)
        if seen is None or seen.kind not in ("int", "text", "tuple", "other"):
            continue
        others = [
            v.text
            for v in program.scope(node)
            if v.parameter and v.text != mine and v.kind in ("int", "real", "bool", "text")
        ]
        # A key that is used at several places is best made at one.
        late = 0.0 if isinstance(program.parents[node][0], ast.Assign) else 0.6
        for n in (1, 2):
            for some in itertools.combinations(others, n):
                text = f"({mine}, {', '.join(some)})"
                yield change(1.2 + 0.2 * n + late, program.put(node, text))


def _is_key(program: Program, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        return False
    parent, place = program.parents[node]
    if isinstance(parent, ast.Compare):
        return isinstance(parent.ops[0], ast.In | ast.NotIn)
    if isinstance(parent, ast.Subscript):
        return place == "slice"
    return isinstance(parent, ast.Assign) and place == "value"


@family("cache-key")
def caches(program: Program) -> Iterator[Change | None]:
    """Look whether what was kept still fits."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
            continue
        if not isinstance(node.test.ops[0], ast.Is) or program.function(node) is None:
            continue
        kept, test = node.test.left, program.text(node.test)
        for text in _stale(program, kept, node):
            yield change(1.5, program.put(node.test, f"{test} or {text}"))


def _stale(program: Program, kept: ast.expr, node: ast.AST) -> Iterator[str]:
    name = program.text(kept)
    function = program.function(node)
    if function is None:
        return
    table = {v.text: v for v in program.scope(node)}
    seen = table[name].seen if name in table else program.seen(kept)
    rank = seen.rank if seen is not None and seen.rank else 2
    for axis in range(rank):
        for variable in table.values():
            if variable.kind == "int" and not variable.text.startswith("self."):
                size = f"{name}.size({axis})" if program.is_torch else f"{name}.shape[{axis}]"
                yield f"{size} != {variable.text}"


@family("statement")
def statements(program: Program) -> Iterator[Change | None]:
    """Exchange two neighbouring statements, or take the last one out of its loop."""
    for node in ast.walk(program.tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block or program.function(block[0]) is None:
                continue
            simple = (ast.Assign, ast.AugAssign, ast.Expr)
            for a, b in itertools.pairwise(block):
                if isinstance(a, simple) and isinstance(b, simple):
                    yield change(
                        1.6,
                        (*program.span(a), program.text(b)),
                        (*program.span(b), program.text(a)),
                    )
            if isinstance(node, ast.For | ast.While) and isinstance(block[-1], ast.Return):
                last = block[-1]
                start = program.span(last)[0]
                line = program.offset(last.lineno, 0)
                outer = program.source[line:start]
                indent = " " * node.col_offset
                if len(block) > 1 and outer.strip() == "":
                    yield change(1.5, (line, start, indent))


@family("index")
def steps(program: Program) -> Iterator[Change | None]:
    """Take the element of the step where a loop takes the same one every time."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Subscript):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        loops = [a for a in program.ancestors(node) if isinstance(a, ast.For)]
        for part in parts:
            if not isinstance(literal(part), int):
                continue
            for loop in loops:
                target = loop.target
                counted = target.elts[0] if isinstance(target, ast.Tuple) else target
                if isinstance(counted, ast.Name) and _counts(loop):
                    yield change(1.0, program.put(part, counted.id))


def _counts(loop: ast.For) -> bool:
    """Whether the variable of a loop, or its first, is a number of the step."""
    name = getattr(getattr(loop.iter, "func", None), "id", "")
    return name == ("enumerate" if isinstance(loop.target, ast.Tuple) else "range")
