"""What was made for a use that it does not get: a layer that no line calls, a mask."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.arithmetic import performed
from regard.check.repair.families.base import Change, change, family
from regard.check.repair.program import Program, Variable

_MASKING = ("attn_mask", "mask", "key_padding_mask")
_FORBIDS = ("key_padding_mask",)


@family("unused")
def layers(program: Program) -> Iterator[Change | None]:
    """Call a layer that no line calls: on what is returned, or in the place of another."""
    for node in program.loads():
        seen = program.seen(node)
        function = program.function(node)
        if seen is None or seen.kind != "float" or function is None:
            continue
        idle = list(_idle_layers(program, function))
        if not idle:
            continue
        for name in idle:
            if _is_returned(program, node):
                yield change(0.9, program.put(node, f"{name}({program.text(node)})"))
        found = program.operation(node)
        if found is None or found.form != "module" or found.operand is None:
            continue
        given = [v for v in program.scope(node) if v.parameter and v.kind == "float"]
        for name in idle:
            for variable in given:
                call = performed(program, found, variable.text, None)
                late = 0.0 if _is_unread(program, variable, function) else 0.2
                yield change(1.0 + late, program.put(node, call.replace(found.name, name, 1)))


def _idle_layers(program: Program, function: ast.AST) -> Iterator[str]:
    """Layers of the module that no expression reads."""
    read = {
        program.text(n)
        for n in ast.walk(program.tree)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)
    }
    for variable in program.attributes(function):
        if variable.kind == "module" and variable.text not in read:
            yield variable.text


def _is_returned(program: Program, node: ast.expr) -> bool:
    """Whether an expression is a result of what is checked, or the first of several."""
    parent, place = program.parents[node]
    if isinstance(parent, ast.Tuple):
        if parent.elts[0] is not node:
            return False
        parent, place = program.parents[parent]
    function = program.function(node)
    name = program.entry.rpartition(".")[2]
    checked = getattr(function, "name", "") in (name, "forward", "__call__")
    return isinstance(parent, ast.Return) and place == "value" and checked


def _is_unread(program: Program, variable: Variable, function: ast.AST) -> bool:
    return not any(
        isinstance(n, ast.Name) and n.id == variable.text and isinstance(n.ctx, ast.Load)
        for n in ast.walk(function)
    )


@family("option")
def masks(program: Program) -> Iterator[Change | None]:
    """Give a library's attention the mask that the code made, instead of another option."""
    for found in program.operations():
        keyword = found.keyword(*_MASKING, "is_causal")
        function = program.function(found.node)
        if keyword is None or function is None:
            continue
        name = str(keyword.arg) if keyword.arg != "is_causal" else "attn_mask"
        if name != keyword.arg and found.keyword(name) is not None:
            continue
        start, end = program.span(keyword)
        for variable in program.scope(found.node):
            if variable.kind != "mask" or program.text(keyword.value) == variable.text:
                continue
            late = 0.0 if _is_unread(program, variable, function) else 0.4
            mine, other = (0.2, 0.0) if name in _FORBIDS else (0.0, 0.2)
            for text, more in ((variable.text, mine), (f"~{variable.text}", other)):
                yield change(1.0 + late + more, (start, end, f"{name}={text}"))
