"""Masks: polarity, number type, where they come from, where and when they are applied."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, is_constant, literal
from regard.check.repair.program import Operation, Program, Variable
from regard.check.repair.families.slices import _short

_SOFTMAX = ("softmax", "log_softmax")
_MASKS = (
    *("keep", "drop", "keep_int", "drop_int", "keep_uint8", "keep_float01", "drop_float01"),
    "additive",
)
_DROPS = ("drop", "drop_int", "drop_float01")
_FILLED = ("masked_fill", "masked_fill_", "where")
_ATTENTION = "scaled_dot_product_attention"


@family("polarity")
def polarity(program: Program) -> Iterator[Change | None]:
    """Turn a mask round, or make it boolean first."""
    for node in program.loads():
        parent, place = program.parents[node]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield change(1.0, program.put(node, program.text(node.operand)))
            inner = program.seen(node.operand)
            if inner is None or inner.kind != "mask":
                operand = program.at(node.operand)
                yield change(1.0, program.put(node, f"~{_boolean(program, operand)}"))
                yield change(1.1, program.put(node, f"{program.at(node.operand, 6)} == 0"))
                yield change(1.6, program.put(node, f"1 - {program.at(node.operand, 11)}"))
            continue
        found = program.operation(node)
        if found is not None and found.operand is not None:
            if found.name == "logical_not":
                yield change(1.0, program.put(node, program.text(found.operand)))
            if found.name in ("bool", "astype") or (
                found.name == "to" and "bool" in program.text(node)
            ):
                operand = program.at(found.operand, 6)
                yield change(1.1, program.put(node, f"{operand} == 0"))
                yield change(1.5, program.put(node, f"{operand} != 0"))
                yield change(1.5, program.put(node, f"{operand} > 0"))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            if literal(node.left) == 1:
                yield change(1.0, program.put(node, program.text(node.right)))
        if isinstance(parent, ast.UnaryOp):
            continue
        if isinstance(parent, ast.Attribute | ast.Subscript) and place == "value":
            # The whole expression is turned, not its first part.
            continue
        seen = program.seen(node)
        if seen is not None and seen.kind == "mask":
            yield change(1.1, program.put(node, f"~{program.at(node, 12)}"))
        elif seen is not None and seen.is_tensor and isinstance(node, ast.Name | ast.Subscript | ast.Call):
            named = _is_mask(program, node) or _used_as_mask(program, node)
            if named:
                text = program.at(node, 6)
                yield change(1.3, program.put(node, f"{text} == 0"))
                yield change(1.4, program.put(node, f"{text} != 0"))
                yield change(1.5, program.put(node, _boolean(program, program.at(node))))
                yield change(1.6, program.put(node, f"1 - {program.at(node, 11)}"))


def _is_mask(program: Program, node: ast.expr) -> bool:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    kinds = program.contract.kinds
    return any("mask" in n.lower() or kinds.get(n, "") in _MASKS for n in names)


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


@family("mask-late")
def late(program: Program) -> Iterator[Change | None]:
    """Mask the scores instead of the weights, or let the weights sum to one again."""
    for node in program.loads():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            found = program.operation(node)
            if found is None or found.name != "masked_fill" or found.operand is None:
                continue
            weights, mask = found.operand, found.args[0] if found.args else None
            if mask is None:
                continue
            drops = True
        else:
            weights, mask, drops = node.left, node.right, False
            if not _masky(program, mask):
                weights, mask = mask, weights
            if not _masky(program, mask):
                continue
        soft = _softmax_of(program, weights)
        whole = program.at(node, 12)
        axis = _axis_of(program, soft)
        total = _sum(program, program.at(node), axis)
        yield change(1.5, program.put(node, f"{whole} / {total}"))
        if soft is None or soft.operand is None:
            continue
        text = filled(program, soft.operand, program.text(mask), drops=drops, node=mask)
        again = _again(program, soft, text)
        yield change(1.4, program.put(node, again))


def _masky(program: Program, node: ast.expr) -> bool:
    seen = program.seen(node)
    return (seen is not None and seen.kind == "mask") or _is_mask(program, node)


def _softmax_of(program: Program, node: ast.expr) -> Operation | None:
    """The softmax that made an expression: itself, or the last assignment of its name."""
    found = program.operation(node)
    if found is not None and found.name in _SOFTMAX:
        return found
    if not isinstance(node, ast.Name):
        return None
    function, line = program.function(node), node.lineno
    best: Operation | None = None
    for other in program.operations(*_SOFTMAX):
        statement = program.statement(other.node)
        if program.function(other.node) is not function or statement.lineno >= line:
            continue
        if isinstance(statement, ast.Assign) and statement.value is other.node:
            if any(isinstance(t, ast.Name) and t.id == node.id for t in statement.targets):
                best = other
    return best


def _axis_of(program: Program, soft: Operation | None) -> str:
    if soft is None:
        return "-1"
    named = soft.keyword("dim", "axis")
    if named is not None:
        return program.text(named.value)
    return program.text(soft.args[0]) if soft.args else "-1"


def _sum(program: Program, text: str, axis: str) -> str:
    if not text.endswith(")") or text.startswith("(") is False:
        text = text if text.isidentifier() else f"({text})" if " " in text else text
    if program.is_torch:
        return f"{text}.sum(dim={axis}, keepdim=True)"
    return f"{text}.sum(axis={axis}, keepdims=True)"


def _again(program: Program, soft: Operation, text: str) -> str:
    whole = program.text(soft.node)
    assert soft.operand is not None  # noqa: S101
    start = program.span(soft.node)[0]
    a, b = program.span(soft.operand)
    if soft.form == "method":
        tail = program.source[b : program.span(soft.node)[1]]
        return text + tail[tail.index(".") :]
    return whole[: a - start] + text + whole[b - start :]


def filled(
    program: Program,
    scores: ast.expr,
    mask: str,
    *,
    drops: bool,
    node: ast.expr | None = None,
    kind: str = "",
) -> str:
    """Scores with minus infinity where a mask forbids."""
    seen = program.seen(node)
    kind = kind or (seen.kind if seen is not None else "")
    name = mask.partition("[")[0]
    tight = mask if mask.replace("_", "a").replace(".", "a").isalnum() or mask.endswith("]") else f"({mask})"
    if kind == "mask":
        drop = tight if drops else f"~{tight}"
    else:
        drop = f"{tight} != 0" if drops else f"{tight} == 0"
    del name
    if program.is_torch:
        return f'{program.at(scores)}.masked_fill({drop}, float("-inf"))'
    np = program.alias("numpy") or "np"
    return f"{np}.where({drop}, -{np}.inf, {program.text(scores)})"


@family("mask-missing")
def missing(program: Program) -> Iterator[Change | None]:
    """Apply a mask that is passed and not used, at the scores."""
    for found in program.operations(*_SOFTMAX):
        if found.operand is None:
            continue
        shape = _shape(program, found.operand)
        for mask in _passed(program, found.node):
            for index in placements(mask, shape):
                for drops in _polarities(program, mask):
                    text = filled(
                        program, found.operand, mask.text + index, drops=drops, kind=mask.kind
                    )
                    wrong = drops != _polarities(program, mask)[0]
                    yield change(1.6 + 0.8 * wrong, _at_operand(program, found, text))
    for node in _scores_by_hand(program):
        shape = _shape(program, node)
        found_by = program.operation(node)
        for mask in _passed(program, node):
            for index in placements(mask, shape):
                drops = _polarities(program, mask)[0]
                text = filled(program, node, mask.text + index, drops=drops, kind=mask.kind)
                yield change(1.8, program.put(node, text))
                if found_by is not None and found_by.name == "exp" and not drops:
                    product = f"{program.at(node, 11)} * {mask.text}{index}"
                    yield change(1.7, program.put(node, product))
    for found in program.operations(_ATTENTION):
        if found.keyword("attn_mask") is not None or len(found.args) > 2:
            continue
        query, key = program.seen(found.operand), program.seen(found.args[0] if found.args else None)
        shape = None
        if query is not None and key is not None and query.shape and key.shape:
            shape = (*query.shape[:-1], key.shape[-2])
        for mask in _passed(program, found.node):
            for index in placements(mask, shape):
                text = mask.text + index
                if mask.kind != "mask" and program.contract.kinds.get(mask.text) != "additive":
                    text = f"{text} != 0"
                for turned in (text, f"~{text}" if mask.kind == "mask" else text):
                    from regard.check.repair.families.axes import argument  # noqa: PLC0415

                    yield change(
                        1.6 + 0.6 * (turned != text),
                        argument(program, found, f"attn_mask={turned}"),
                    )


def _scores_by_hand(program: Program) -> Iterator[ast.expr]:
    """Where a softmax by hand, or by a function of the file, gets its scores; and its exp."""
    names = set()
    for found in program.operations():
        named = found.name in ("exp", *_SOFTMAX) or "softmax" in found.name
        if not named or found.operand is None:
            continue
        if found.name == "exp":
            yield found.node
        names |= {n.id for n in ast.walk(found.operand) if isinstance(n, ast.Name)}
        if found.form == "plain" and not isinstance(found.operand, ast.Name):
            yield found.operand
    for node in program.statements():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            seen = program.seen(node.value)
            if node.targets[0].id in names and seen is not None and seen.kind == "float":
                yield node.value


def _at_operand(program: Program, found: Operation, text: str) -> tuple[int, int, str] | None:
    assert found.operand is not None  # noqa: S101
    return program.put(found.operand, text)


def _passed(program: Program, node: ast.AST) -> Iterator[Variable]:
    for variable in program.scope(node):
        kind = program.contract.kinds.get(variable.text, "")
        local = variable.kind == "mask" or "mask" in variable.text
        if (kind and kind not in ("lengths", "token_ids", "zero_padded")) or local:
            if variable.seen is not None and variable.seen.is_tensor:
                yield variable


def _polarities(program: Program, mask: Variable) -> tuple[bool, bool]:
    drops = program.contract.kinds.get(mask.text, "keep") in _DROPS
    return drops, not drops


def placements(mask: Variable, shape: tuple[int, ...] | None) -> list[str]:
    """Where new axes make a mask fit scores: ``""``, ``[:, None]``, ``[..., None]``."""
    own = mask.seen.shape if mask.seen is not None else None
    if own is None:
        return [""]
    if shape is None:
        return ["", "[:, None]", "[:, None, None]", "[..., None]"][: 4 if len(own) < 4 else 1]
    found = []
    total = len(shape)
    for where in itertools.combinations(range(total), total - len(own)) if total >= len(own) else ():
        rest = iter(own)
        sizes = [1 if i in where else next(rest) for i in range(total)]
        if all(n in (1, m) for n, m in zip(sizes, shape, strict=True)):
            index = ["None" if i in where else ":" for i in range(total)]
            while len(index) > 1 and index[-1] == ":":
                index.pop()
            found.append(f"[{_short(index, total, len(own))}]" if where else "")
    return found


def _shape(program: Program, node: ast.expr) -> tuple[int, ...] | None:
    seen = program.seen(node)
    return seen.shape if seen is not None else None


@family("mask-form")
def forms(program: Program) -> Iterator[Change | None]:
    """Fill the scores instead of multiplying them, keep what ``where`` chose the wrong way."""
    for node in program.loads():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add | ast.Sub):
            for scores, mask in ((node.left, node.right), (node.right, node.left)):
                seen = program.seen(mask)
                if seen is None or not seen.is_tensor or not _masky(program, mask):
                    continue
                for drops in (False, True):
                    text = filled(program, scores, program.text(mask), drops=drops, node=mask)
                    yield change(1.5 + 0.5 * drops, program.put(node, text))
                if isinstance(node.op, ast.Add):
                    one = f"(1 - {program.at(mask, 11)}) * -1e9"
                    yield change(1.9, program.put(node, f"{program.at(scores, 10)} + {one}"))
        found = program.operation(node)
        if found is not None and found.name == "where" and len(found.args) == 2:
            if found.form == "library":
                a, b = found.args
                yield change(
                    1.1,
                    (*program.span(a), program.text(b)),
                    (*program.span(b), program.text(a)),
                )


@family("mask-keyword")
def keywords(program: Program) -> Iterator[Change | None]:
    """The other mask argument of a library's attention."""
    for found in program.operations():
        for keyword in found.node.keywords:
            if keyword.arg in ("attn_mask", "key_padding_mask"):
                other = "key_padding_mask" if keyword.arg == "attn_mask" else "attn_mask"
                start, _ = program.span(keyword)
                yield change(1.3, (start, start + len(keyword.arg), other))
            if keyword.arg == "is_causal" and is_constant(keyword.value, bool):
                yield change(1.1, program.put(keyword.value, str(not keyword.value.value)))  # type: ignore[attr-defined]
