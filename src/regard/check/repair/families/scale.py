"""The scale of the scores: missing, twice, of the wrong size, at the wrong place."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.axes import argument, without
from regard.check.repair.families.base import Change, change, family
from regard.check.repair.program import Program

_PRODUCTS = ("matmul", "bmm", "einsum", "dot")


@family("scale")
def scales(program: Program) -> Iterator[Change | None]:
    """Divide a product by the root of the feature size, or pass the scale on."""
    for node in program.loads():
        found = program.operation(node)
        product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        if found is not None and found.name == "scaled_dot_product_attention":
            given = found.keyword("scale")
            for text in _factors(program, node):
                if given is None:
                    yield change(1.0, argument(program, found, f"scale={text}"))
                else:
                    yield change(1.1, program.put(given.value, text))
            if given is not None:
                yield change(0.9, without(program, given))
            continue
        if not product and (found is None or found.name not in _PRODUCTS):
            continue
        parent, _ = program.parents[node]
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult):
            continue
        operands = _operands(node, found.node if found is not None else None)
        sizes = [_last(program, o) for o in operands]
        text = program.at(node, 11)
        for factor in _factors(program, node):
            yield change(1.4, program.put(node, f"{text} * {factor}"))
            yield change(1.6, program.put(node, f"{text} / {factor}"))
        for size in dict.fromkeys(s for s in sizes if s):
            yield change(1.5, program.put(node, f"{text} * {size} ** -0.5"))


def _operands(node: ast.expr, call: ast.Call | None) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left]
    if call is None:
        return []
    args = [a for a in call.args if not isinstance(a, ast.Constant)]
    return args[:1]


def _last(program: Program, node: ast.expr) -> str:
    """The size of the last axis of an operand, written as the file would."""
    base = node
    if not isinstance(base, ast.Name | ast.Attribute):
        return ""
    return (
        f"{program.text(base)}.size(-1)"
        if program.is_torch
        else f"{program.text(base)}.shape[-1]"
    )


def _factors(program: Program, node: ast.AST) -> Iterator[str]:
    """Numbers and unit tensors in reach whose name speaks of a scale, or that are no count."""
    for variable in program.scope(node):
        seen = variable.seen
        if seen is None:
            continue
        one = seen.is_tensor and seen.shape in ((), (1,))
        if seen.kind == "real" or one or "scale" in variable.text:
            yield variable.text
