"""Masks: their polarity, their number type, where they come from, how they are passed."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, literal, turned
from regard.check.repair.families.masking import filled, is_mask, masky
from regard.check.repair.program import Program, Variable

_FILLED = ("masked_fill", "masked_fill_", "where")


@family("polarity")
def polarity(program: Program) -> Iterator[Change | None]:
    """Turn a mask round."""
    for node in program.loads():
        parent, place = program.parents[node]
        if isinstance(node, ast.UnaryOp | ast.Tuple) or isinstance(parent, ast.UnaryOp):
            continue
        if isinstance(parent, ast.Attribute | ast.Subscript) and place == "value":
            # The whole expression is turned, not its first part.
            continue
        seen = program.seen(node)
        if seen is None or not seen.is_tensor:
            continue
        if seen.kind == "mask":
            yield change(1.1, program.put(node, f"~{program.at(node, 12)}"))
        elif isinstance(node, ast.Name | ast.Subscript | ast.Call) and (
            is_mask(program, node) or _used_as_mask(program, node)
        ):
            text = program.at(node, 6)
            yield change(1.3, program.put(node, f"{text} == 0"))
            yield change(1.4, program.put(node, f"{text} != 0"))
            yield change(1.5, program.put(node, _boolean(program, program.at(node))))
            yield change(1.6, program.put(node, f"1 - {program.at(node, 11)}"))


@family("polarity")
def unturned(program: Program) -> Iterator[Change | None]:
    """Turn a mask back, or make it boolean before it is turned."""
    for node in program.loads():
        found = program.operation(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield change(1.0, program.put(node, program.text(node.operand)))
            inner = program.seen(node.operand)
            if inner is None or inner.kind != "mask":
                operand = program.at(node.operand)
                yield change(1.0, program.put(node, f"~{_boolean(program, operand)}"))
                yield change(1.1, program.put(node, f"{program.at(node.operand, 6)} == 0"))
                yield change(1.6, program.put(node, f"1 - {program.at(node.operand, 11)}"))
        taken = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        if isinstance(node, ast.BinOp) and taken and literal(node.left) == 1:
            yield change(1.0, program.put(node, program.text(node.right)))
        if found is None or found.operand is None:
            continue
        if found.name == "logical_not":
            yield change(1.0, program.put(node, program.text(found.operand)))
        to_bool = found.name == "to" and "bool" in program.text(node)
        if found.name in ("bool", "astype") or to_bool:
            operand = program.at(found.operand, 6)
            yield change(1.1, program.put(node, f"{operand} == 0"))
            yield change(1.5, program.put(node, f"{operand} != 0"))
            yield change(1.5, program.put(node, f"{operand} > 0"))


def _used_as_mask(program: Program, node: ast.expr) -> bool:
    parent, place = program.parents[node]
    if isinstance(parent, ast.keyword):
        return "mask" in (parent.arg or "")
    found = program.operation(parent)
    return found is not None and found.name in _FILLED and place == "args"


def _boolean(program: Program, text: str) -> str:
    return f"{text}.bool()" if program.is_torch else f"{text}.astype(bool)"


@family("mask-source")
def sources(program: Program) -> Iterator[Change | None]:
    """Read the mask from what tells padding: ids of zero, rows that are zero everywhere."""
    for node in program.loads():
        seen = program.seen(node)
        if seen is not None and seen.kind != "mask":
            continue
        if isinstance(node, ast.Compare | ast.Call) and seen is not None:
            for other in program.scope(node):
                if other.kind == "index" and other.seen is not None:
                    cost = 1.3 if other.seen.shape == seen.shape else 1.9
                    yield change(cost, program.put(node, f"{other.text} != 0"))
                    yield change(cost + 0.2, program.put(node, f"{other.text} == 0"))
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        left, right = node.left, node.comparators[0]
        found = program.operation(left)
        if found is None or found.operand is None or literal(right) != 0:
            continue
        if found.name not in ("sum", "mean", "max", "amax", "prod", "min", "norm"):
            continue
        sign = "==" if isinstance(node.ops[0], ast.Eq) else "!="
        whole, word = program.text(left), "all" if sign == "==" else "any"
        if found.form == "method":
            start = len(program.text(found.operand))
            rest = whole[start:].partition("(")[2]
            inner = program.at(found.operand, 6)
            yield change(1.2, program.put(node, f"({inner} {sign} 0).{word}({rest}"))
            size = f"{program.at(found.operand)}.abs()" if program.is_torch else ""
            np = program.alias("numpy")
            size = size or f"{np}.abs({program.text(found.operand)})"
            yield change(1.3, program.put(node, f"{size}.sum({rest} {sign} 0"))


@family("mask-form")
def forms(program: Program) -> Iterator[Change | None]:
    """Fill the scores instead of multiplying them, keep what ``where`` chose the wrong way."""
    for node in program.loads():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add | ast.Sub):
            for scores, mask in ((node.left, node.right), (node.right, node.left)):
                seen = program.seen(mask)
                if seen is None or not seen.is_tensor or not masky(program, mask):
                    continue
                passed = Variable(program.text(mask), seen)
                for drops in (False, True):
                    text = filled(program, scores, passed, drops=drops)
                    yield change(1.5 + 0.5 * drops, program.put(node, text))
                if isinstance(node.op, ast.Add):
                    one = f"(1 - {program.at(mask, 11)}) * -1e9"
                    yield change(1.9, program.put(node, f"{program.at(scores, 10)} + {one}"))
        found = program.operation(node)
        if found is None or found.name != "where" or found.form != "library":
            continue
        if len(found.args) == 2:
            a, b = found.args
            first, second = (
                (*program.span(a), program.text(b)),
                (*program.span(b), program.text(a)),
            )
            yield change(1.1, first, second)


@family("mask-keyword")
def keywords(program: Program) -> Iterator[Change | None]:
    """The other mask argument of a library's attention."""
    for found in program.operations():
        for keyword in found.node.keywords:
            if keyword.arg in ("attn_mask", "key_padding_mask"):
                other = "key_padding_mask" if keyword.arg == "attn_mask" else "attn_mask"
                start, _ = program.span(keyword)
                yield change(1.3, (start, start + len(keyword.arg), other))
            other_way = turned(keyword.value) if keyword.arg == "is_causal" else None
            if other_way is not None:
                yield change(1.1, program.put(keyword.value, other_way))
