"""Where and when a mask is applied: at the scores, before the softmax."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.axes import argument
from regard.check.repair.families.base import Change, change, family
from regard.check.repair.families.slices import shortened
from regard.check.repair.observe import Seen
from regard.check.repair.program import Operation, Program, Variable

_SOFTMAX = ("softmax", "log_softmax")
_ADDED = ("additive", "bias")
_MASKS = (
    *("keep", "drop", "keep_int", "drop_int", "keep_uint8", "keep_float01", "drop_float01"),
    "additive",
)
_DROPS = ("drop", "drop_int", "drop_float01")


@family("mask-late")
def late(program: Program) -> Iterator[Change | None]:
    """Mask the scores instead of the weights, or let the weights sum to one again."""
    for node in program.loads():
        weights, mask, drops = _masked(program, node)
        if weights is None or mask is None:
            continue
        soft = _softmax_of(program, weights)
        whole = program.at(node)
        total = _sum(program, whole, _axis_of(program, soft))
        yield change(1.5, program.put(node, f"{program.at(node, 11)} / {total}"))
        if soft is None or soft.operand is None:
            continue
        passed = Variable(program.text(mask), program.seen(mask))
        text = filled(program, soft.operand, passed, drops=drops)
        yield change(1.4, program.put(node, _again(program, soft, text)))


def _masked(program: Program, node: ast.expr) -> tuple[ast.expr | None, ast.expr | None, bool]:
    """Weights, mask, and whether it is True where it forbids: of a product or a fill."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for weights, mask in ((node.left, node.right), (node.right, node.left)):
            if masky(program, mask):
                return weights, mask, False
    found = program.operation(node)
    if found is not None and found.name == "masked_fill" and found.args:
        return found.operand, found.args[0], True
    return None, None, False


def is_mask(program: Program, node: ast.expr) -> bool:
    """Whether an expression is made from something named, or declared, a mask."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    kinds = program.contract.kinds
    return any("mask" in n.lower() or kinds.get(n, "") in _MASKS for n in names)


def masky(program: Program, node: ast.expr) -> bool:
    """Whether an expression is a mask by its name, its declaration or its number type."""
    seen = program.seen(node)
    return (seen is not None and seen.kind == "mask") or is_mask(program, node)


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
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if node.id in names and getattr(statement, "value", None) is other.node:
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
    if program.is_torch:
        return f"{text}.sum(dim={axis}, keepdim=True)"
    return f"{text}.sum(axis={axis}, keepdims=True)"


def _again(program: Program, soft: Operation, text: str) -> str:
    whole = program.text(soft.node)
    assert soft.operand is not None
    start = program.span(soft.node)[0]
    a, b = program.span(soft.operand)
    if soft.form == "method":
        tail = program.source[b : program.span(soft.node)[1]]
        return text + tail[tail.index(".") :]
    return whole[: a - start] + text + whole[b - start :]


def filled(
    program: Program, scores: ast.expr, mask: Variable, index: str = "", *, drops: bool
) -> str:
    """Scores with minus infinity where a mask forbids, or with an additive mask added."""
    text = mask.text + index
    if program.contract.kinds.get(mask.text) in _ADDED and mask.kind == "float":
        return f"{program.at(scores, 10)} + {text}"
    tight = text if is_tight(text) else f"({text})"
    if mask.kind == "mask":
        drop = tight if drops else f"~{tight}"
    else:
        drop = f"{tight} != 0" if drops else f"{tight} == 0"
    if program.is_torch:
        return f'{program.at(scores)}.masked_fill({drop}, float("-inf"))'
    np = program.alias("numpy") or "np"
    return f"{np}.where({drop}, -{np}.inf, {program.text(scores)})"


def is_tight(text: str) -> bool:
    """Whether a text is a name, an attribute, an index or is in parentheses.

    >>> is_tight("mask[:, None]"), is_tight("a < b")
    (True, False)
    """
    node = ast.parse(text, mode="eval").body
    return text.startswith("(") or isinstance(node, ast.Name | ast.Attribute | ast.Subscript)


@family("mask-missing")
def missing(program: Program) -> Iterator[Change | None]:
    """Apply a mask that is passed and not used, at the scores."""
    for found in program.operations(*_SOFTMAX):
        if found.operand is None:
            continue
        scores = found.operand
        for mask, index in _fitting(program, scores, _shape(program, scores)):
            usual, wrong = _polarities(program, mask)
            for drops in (usual, wrong):
                text = filled(program, scores, mask, index, drops=drops)
                yield change(1.6 + 0.8 * (drops == wrong), program.put(scores, text))


@family("mask-missing")
def missing_by_hand(program: Program) -> Iterator[Change | None]:
    """The same where the softmax is written out, or is a function of the file."""
    for node in _scores_by_hand(program):
        found = program.operation(node)
        for mask, index in _fitting(program, node, _shape(program, node)):
            drops = _polarities(program, mask)[0]
            yield change(
                1.8, program.put(node, filled(program, node, mask, index, drops=drops))
            )
            if found is not None and found.name == "exp" and not drops:
                product = f"{program.at(node, 11)} * {mask.text}{index}"
                yield change(1.7, program.put(node, product))


@family("mask-missing")
def missing_in_fused(program: Program) -> Iterator[Change | None]:
    """The same for the library's fused attention."""
    for found in program.operations("scaled_dot_product_attention"):
        if found.keyword("attn_mask") is not None or len(found.args) > 2:
            continue
        query = program.seen(found.operand)
        key = program.seen(found.args[0] if found.args else None)
        shape = None
        if query is not None and key is not None and query.shape and key.shape:
            shape = (*query.shape[:-1], key.shape[-2])
        for mask, index in _fitting(program, found.node, shape):
            text = mask.text + index
            added = program.contract.kinds.get(mask.text) in _ADDED
            if mask.kind != "mask" and not added:
                text = f"{text} != 0"
            yield change(1.6, argument(program, found, f"attn_mask={text}"))
            if mask.kind == "mask":
                yield change(2.2, argument(program, found, f"attn_mask=~{text}"))


def _fitting(
    program: Program, node: ast.AST, shape: tuple[int, ...] | None
) -> Iterator[tuple[Variable, str]]:
    """Masks in reach with every index of new axes that fits them to scores."""
    for mask in (*_passed(program, node), *_of_lengths(program, node)):
        for index in placements(mask, shape):
            yield mask, index


def _of_lengths(program: Program, node: ast.AST) -> Iterator[Variable]:
    """Masks, True on real positions, made from the lengths that are passed."""
    for variable in program.scope(node):
        if program.contract.kinds.get(variable.text) != "lengths" or variable.seen is None:
            continue
        for other in program.scope(node):
            seen = other.seen
            if seen is None or seen.kind != "float" or seen.rank != 3 or not other.parameter:
                continue
            assert seen.shape is not None
            n, size = seen.shape[1], f"{other.text}.shape[1]"
            library = program.alias("torch") or program.alias("numpy")
            if library is None or variable.seen.shape is None:
                continue
            text = f"({library}.arange({size}) < {variable.text}[:, None])"
            yield Variable(text, Seen("mask", [(*variable.seen.shape, n)]), parameter=True)


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


def _passed(program: Program, node: ast.AST) -> Iterator[Variable]:
    for variable in program.scope(node):
        kind = program.contract.kinds.get(variable.text, "")
        local = variable.kind == "mask" or "mask" in variable.text
        declared = kind and kind not in ("lengths", "token_ids", "zero_padded")
        if (declared or local) and variable.seen is not None and variable.seen.is_tensor:
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
    for where in itertools.combinations(range(total), max(total - len(own), 0)):
        if total < len(own):
            break
        rest = iter(own)
        sizes = [1 if i in where else next(rest) for i in range(total)]
        if all(n in (1, m) for n, m in zip(sizes, shape, strict=True)):
            index = ["None" if i in where else ":" for i in range(total)]
            while len(index) > 1 and index[-1] == ":":
                index.pop()
            found.append(f"[{shortened(index, total, len(own))}]" if where else "")
    return found


def _shape(program: Program, node: ast.expr) -> tuple[int, ...] | None:
    seen = program.seen(node)
    return seen.shape if seen is not None else None
