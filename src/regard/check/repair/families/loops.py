"""What is kept from step to step and from call to call, and what belongs to the caller."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family
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
        rank = program.rank(node.value) or (known[0].seen.rank if known and known[0].seen else 3)
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
    """Make a new tensor where a caller's is changed."""
    for node in program.statements():
        start, end = program.span(node)
        if isinstance(node, ast.AugAssign) and type(node.op) in _SYMBOLS:
            name, sign = program.text(node.target), _SYMBOLS[type(node.op)]
            yield change(0.9, (start, end, f"{name} = {name} {sign} {program.at(node.value, 12)}"))
        if isinstance(node, ast.Expr):
            found = program.operation(node.value)
            if found is not None and found.form == "method" and found.operand is not None:
                name = program.text(found.operand)
                base = program.seen(found.operand)
                if isinstance(found.operand, ast.Name) and (base is None or base.is_tensor):
                    whole = program.text(node)
                    made = whole.replace(f".{found.name}(", f".{found.name.rstrip('_')}(", 1)
                    yield change(0.9, (start, end, f"{name} = {made}"))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            place, value = node.targets[0], program.text(node.value)
            name, where = program.text(place.value), program.text(place.slice)
            seen = program.seen(place.slice)
            if not isinstance(place.value, ast.Name):
                continue
            if program.is_torch:
                if seen is None or seen.kind in ("mask", "index"):
                    yield change(1.1, (start, end, f"{name} = {name}.masked_fill({where}, {value})"))
            else:
                np = program.alias("numpy") or "np"
                yield change(1.1, (start, end, f"{name} = {np}.where({where}, {value}, {name})"))
    for found in program.operations():
        if found.form == "method" and found.name.endswith("_") and not found.name.startswith("_"):
            func_end = program.span(found.node.func)[1]
            name = found.name
            yield change(1.0, (func_end - len(name), func_end, name.rstrip("_")))
        for keyword in found.node.keywords:
            if keyword.arg == "out":
                a, b = program.span(keyword)
                before = program.source[:a].rstrip()
                a = len(before.removesuffix(","))
                yield change(1.3, (a, b, ""))
    copy = ".clone()" if program.is_torch else ".copy()"
    for node in program.loads():
        seen = program.seen(node)
        parent, place = program.parents[node]
        if seen is not None and seen.is_tensor and isinstance(parent, ast.Assign | ast.Tuple):
            if place in ("value", "elts") and isinstance(node, ast.Name | ast.Subscript | ast.Call):
                yield change(1.7, program.after(node, copy))


@family("cache-key")
def cache_keys(program: Program) -> Iterator[Change | None]:
    """Remember under everything that a result depends on, or look whether it still fits."""
    for node in program.loads():
        parent, place = program.parents[node]
        as_key = isinstance(parent, ast.Subscript) and place == "slice"
        as_key = as_key or (
            isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.In | ast.NotIn)
        )
        as_key = as_key or (isinstance(parent, ast.Assign) and place == "value")
        if as_key and isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            seen = program.seen(node)
            if seen is not None and seen.kind in ("int", "text", "tuple", "other"):
                mine = program.text(node)
                others = [
                    v.text
                    for v in program.scope(node)
                    if v.parameter and v.text != mine and v.kind in ("int", "real", "bool", "text")
                ]
                for n in (1, 2):
                    for some in itertools.combinations(others, n):
                        text = f"({mine}, {', '.join(some)})"
                        # A key that is used at several places is best made at one.
                        once = 0.0 if isinstance(parent, ast.Assign) else 0.6
                        yield change(1.2 + 0.2 * n + once, program.put(node, text))
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
            for a, b in zip(block, block[1:], strict=False):
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
