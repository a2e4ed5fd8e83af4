"""Axes: which one a call works on, axes that are named nowhere, axes exchanged."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Operation, Program

# Where a method takes its axis, counted after the operand.
POSITION: dict[str, int] = {
    **dict.fromkeys(("softmax", "log_softmax", "sum", "mean", "max", "min", "amax", "amin"), 0),
    **dict.fromkeys(("argmax", "argmin", "any", "all", "cumsum", "cumprod", "prod"), 0),
    **dict.fromkeys(("unsqueeze", "squeeze", "expand_dims", "cat", "stack", "concatenate"), 0),
    **dict.fromkeys(("concat", "flip", "unbind", "size", "norm", "std", "var", "softmin"), 0),
    **dict.fromkeys(("logsumexp", "select", "index_select", "gather", "sort", "argsort"), 0),
    **dict.fromkeys(("unflatten", "narrow", "take_along_axis"), 0),
    **dict.fromkeys(("split", "chunk", "repeat_interleave", "tensor_split", "roll"), 1),
    **dict.fromkeys(("repeat", "array_split", "take", "normalize"), 1),
}
_PAIRS = ("transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "flatten")
_REDUCING = ("sum", "mean", "max", "min", "amax", "amin", "prod", "any", "all", "logsumexp")
_NAMED = ("dim", "axis", "axes", "dims", "start_dim", "end_dim", "dim0", "dim1")
_JOINS = ("cat", "stack", "concatenate", "concat")
_PRODUCTS = ("matmul", "bmm", "dot", "mm", "einsum", "baddbmm")
_SHAPERS = ("view", "reshape", "flatten", "unflatten", "contiguous")


def shown(axis: int, rank: int, like: int | None = None) -> str:
    """An axis as people write it: the last is -1, others as the old one was counted.

    >>> shown(3, 4), shown(2, 4), shown(2, 4, like=-1), shown(1, 4, like=-3)
    ('-1', '2', '-2', '1')
    """
    if axis == rank - 1 and (like is None or like < 0 or like != rank):
        return "-1"
    if like is not None and like < 0 and axis >= rank - 2:
        return str(axis - rank)
    return str(axis)


def alternatives(rank: int | None, value: int | None) -> list[str]:
    """Every other axis of a tensor; of one of unknown rank, the usual ones."""
    if rank is None:
        return [str(a) for a in (-1, 0, 1, 2, -2, 3) if a != value]
    old = None if value is None else value % rank if rank and -rank <= value < rank else None
    axes = [a for a in (rank - 1, *range(rank - 1)) if a != old]
    return list(dict.fromkeys(shown(a, rank, value) for a in axes))


@family("axis")
def axes(program: Program) -> Iterator[Change | None]:
    """Another axis for a call that names one."""
    for found in program.operations():
        rank = _rank_inside(program, found)
        for node in _axis_arguments(program, found):
            value = literal(node)
            if isinstance(value, int):
                for place, text in enumerate(alternatives(rank, value)):
                    yield change(1.0 + 0.02 * place, program.put(node, text))
                if rank is None or not -rank <= value < rank or found.form == "plain":
                    yield change(1.2, program.put(node, str(value + 1)))
                    yield change(1.2, program.put(node, str(value - 1)))
            elif isinstance(node, ast.Tuple | ast.List):
                numbers = [(e, literal(e)) for e in node.elts]
                for element, number in numbers:
                    if isinstance(number, int):
                        for text in alternatives(rank, number):
                            yield change(1.2, program.put(element, text))


@family("axis")
def default_axes(program: Program) -> Iterator[Change | None]:
    """Another axis as the default of a function of the file."""
    for function in program.functions():
        arguments = function.args
        named = [*arguments.args, *arguments.kwonlyargs]
        defaults = [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]
        for argument, default in zip(named[-len(defaults) :], defaults, strict=False):
            if argument.arg in _NAMED and isinstance(literal(default), int):
                for text in alternatives(None, int(literal(default) or 0)):
                    yield change(1.6, program.put(default, text))


def _axis_arguments(program: Program, found: Operation) -> Iterator[ast.expr]:
    for keyword in found.node.keywords:
        if keyword.arg in _NAMED:
            yield keyword.value
    if found.name in _PAIRS:
        yield from found.args
        if found.form == "method" and found.name == "flatten" and not found.args:
            return
    at = POSITION.get(found.name)
    if at is not None and at < len(found.args):
        yield found.args[at]
    if found.form == "library" and found.name.endswith("Softmax") and found.operand is not None:
        yield found.operand
    own = program.parameters(found)
    if own:
        for name, node in zip(own, found.node.args, strict=False):
            if name in _NAMED:
                yield node


def _rank_inside(program: Program, found: Operation) -> int | None:
    """Axes of the tensor that a call works on; one more where it makes a new axis."""
    node: ast.AST | None = found.operand
    if found.name in _JOINS and isinstance(node, ast.List | ast.Tuple) and node.elts:
        node = node.elts[0]
    rank = program.rank(node)
    if rank is None and found.name in _JOINS:
        return program.rank(found.node)
    if found.name in ("unsqueeze", "expand_dims", "stack") and rank is not None:
        return rank + 1
    return rank


@family("missing-axis")
def missing_axes(program: Program) -> Iterator[Change | None]:
    """Name an axis where a call names none, and keep it where a quotient needs it."""
    for found in program.operations():
        node, rank = found.operand, program.rank(found.operand)
        known = found.name in POSITION and found.name not in ("size", "repeat", "sort", "split")
        if not known or node is None:
            continue
        if found.form == "plain" and found.name not in program.aliases:
            continue
        word = "axis" if _numpy(program, found) else "dim"
        keep = "keepdims" if word == "axis" else "keepdim"
        at = POSITION[found.name]
        if found.keyword("dim", "axis") is not None or len(found.args) > at:
            if found.name in _REDUCING and found.keyword("keepdim", "keepdims") is None:
                yield change(1.0, argument(program, found, f"{keep}=True"))
            continue
        for axis in range(rank if rank is not None else 3):
            text = shown(axis, rank or 3)
            if found.name == "squeeze":
                if rank is None or axis in _units(program, node):
                    yield change(0.9, argument(program, found, text))
            elif found.name not in ("unsqueeze", "expand_dims"):
                yield change(1.0, argument(program, found, f"{word}={text}"))
            if found.name in _REDUCING:
                start, end, whole = argument(program, found, f"{word}={text}, {keep}=True")
                yield change(1.1, (start, end, whole))
                if found.name in ("max", "min") and word == "dim":
                    yield change(1.2, (start, end, f"{whole}.values"))


@family("missing-axis")
def missing_axes_of_several(program: Program) -> Iterator[Change | None]:
    """Name the axis of calls that stand in one statement, as for a query and its key."""
    calls: dict[tuple[int, str], list[Operation]] = {}
    for found in program.operations("normalize", "softmax", "norm"):
        given = found.keyword("dim", "axis") is not None
        if found.operand is not None and not given and len(found.args) <= POSITION[found.name]:
            line = program.statement(found.node).lineno
            calls.setdefault((line, found.name), []).append(found)
    for alike in calls.values():
        ranks = {program.rank(found.operand) for found in alike if found.operand is not None}
        rank = next(iter(ranks)) if len(ranks) == 1 else None
        if len(alike) < 2 or rank is None:
            continue
        for axis in range(rank):
            word = "axis" if _numpy(program, alike[0]) else "dim"
            text = f"{word}={shown(axis, rank)}"
            yield change(1.2, *(argument(program, found, text) for found in alike))


@family("missing-axis")
def missing_axes_of_layers(program: Program) -> Iterator[Change | None]:
    """Name the axis of a softmax layer that names none."""
    for found in program.operations():
        if found.form == "library" and found.name.endswith("Softmax") and not found.node.args:
            for text in ("-1", "1", "0", "2"):
                yield change(1.0, argument(program, found, f"dim={text}"))


def _units(program: Program, node: ast.AST) -> set[int]:
    """Axes that were of size one."""
    seen = program.seen(node)
    shapes = seen.shapes if seen is not None else []
    return {i for shape in shapes for i, n in enumerate(shape) if n == 1}


def _numpy(program: Program, found: Operation) -> bool:
    if found.form == "library":
        owner = found.node.func
        name = program.text(owner).partition(".")[0]
        return program.aliases.get(name, "").startswith("numpy")
    return not program.is_torch


def argument(program: Program, found: Operation, text: str) -> tuple[int, int, str]:
    """Add an argument at the end of a call."""
    start, end = program.span(found.node)
    whole = program.source[start:end]
    inside = whole[:-1].rstrip()
    comma = "" if inside.endswith(("(", ",")) else ", "
    comma = " " if inside.endswith(",") else comma
    return start, end, f"{inside}{comma}{text})"


def without(program: Program, given: ast.keyword) -> tuple[int, int, str]:
    """Leave out a named argument and the comma before it."""
    start, end = program.span(given)
    return len(program.source[:start].rstrip().removesuffix(",")), end, ""


@family("transpose")
def transposes(program: Program) -> Iterator[Change | None]:
    """Exchange two axes before they meet others."""
    for node in program.loads():
        rank = program.rank(node)
        turned = isinstance(node, ast.Attribute) and node.attr in ("T", "mT")
        if rank is None or rank < 2 or turned or not _meets(program, node):
            continue
        cost = 1.3 if isinstance(node, ast.Name) else 1.6
        for text in exchanged(program, rank):
            last = rank == 2 or text in (".transpose(1, 2)", ".mT", ".swapaxes(1, 2)")
            yield change(cost if last else cost + 0.3, program.after(node, text))


@family("transpose")
def untransposes(program: Program) -> Iterator[Change | None]:
    """Leave an exchange of axes out, or bring them into another order."""
    for node in program.loads():
        found = program.operation(node)
        moves = found is not None and found.name in ("transpose", "permute", "swapaxes", "t")
        if found is not None and moves and found.operand is not None:
            yield change(1.6, program.put(node, program.text(found.operand)))
            yield from _permutations(program, found)
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            yield change(1.2, program.put(node, program.text(node.value)))


def _permutations(program: Program, found: Operation) -> Iterator[Change | None]:
    values = [literal(a) for a in _permuted(found)]
    nodes = _permuted(found)
    if len(values) < 3 or any(not isinstance(v, int) for v in values) or len(values) > 5:
        return
    for other in itertools.permutations(values):
        moved = sum(a != b for a, b in zip(values, other, strict=True))
        if not moved or (len(values) == 5 and moved > 3):
            continue
        start, end = program.span(nodes[0])[0], program.span(nodes[-1])[1]
        cost = 1.0 if moved == 2 else 1.3
        yield change(cost, (start, end, ", ".join(str(v) for v in other)))


def _permuted(found: Operation) -> list[ast.expr]:
    args = list(found.args)
    if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
        args = list(args[0].elts)
    return args


def exchanged(program: Program, rank: int) -> list[str]:
    """Ways to write the exchange of two axes of a tensor in this file's library."""
    if rank == 2:
        return [".T"]
    name = "transpose" if program.is_torch else "swapaxes"
    pairs = list(itertools.combinations(range(rank), 2))
    # Of four axes the first is nearly always the batch.
    pairs.sort(key=lambda p: (p[0] == 0 and rank > 3, p[1] - p[0]))
    return [f".{name}({a}, {b})" for a, b in pairs]


def _meets(program: Program, node: ast.expr) -> bool:
    """Whether an expression is an operand of a product or of a change of shape, or a result."""
    parent, place = program.parents[node]
    outer = program.parents[parent][0] if parent in program.parents else None
    match parent:
        case ast.BinOp():
            return isinstance(parent.op, ast.MatMult)
        case ast.Tuple() | ast.List():
            return isinstance(outer, ast.Return | ast.Call)
        case ast.Return() | ast.Assign():
            whole = isinstance(node, ast.Name | ast.Call | ast.BinOp | ast.Subscript)
            return place == "value" and whole
        case ast.Attribute():
            return isinstance(outer, ast.Call) and parent.attr in (*_PRODUCTS, *_SHAPERS)
        case ast.Call():
            return place == "args"
    return isinstance(parent, ast.GeneratorExp | ast.ListComp | ast.Lambda)


@family("product")
def products(program: Program) -> Iterator[Change | None]:
    """The operands of a matrix product the other way round, one of them turned."""
    for node in program.loads():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            left, right = node.left, node.right
        else:
            found = program.operation(node)
            if found is None or found.name not in _PRODUCTS[:4] or found.operand is None:
                continue
            if len(found.args) != 1:
                continue
            left, right = found.operand, found.args[0]
        for first, second in ((left, right), (right, left)):
            for turn_first, turn_second in ((0, 0), (0, 1), (1, 0), (1, 1)):
                if first is left and not (turn_first and turn_second):
                    continue
                texts = [
                    program.at(n, 15 if turn else 11) + (_turn(program, n) if turn else "")
                    for n, turn in ((first, turn_first), (second, turn_second))
                ]
                if not turn_second:
                    texts[1] = program.at(second, 12)
                cost = 1.8 + 0.3 * (turn_first + turn_second)
                yield change(cost, program.put(node, f"{texts[0]} @ {texts[1]}"))


def _turn(program: Program, node: ast.expr) -> str:
    rank = program.rank(node) or 2
    if rank == 2:
        return ".T"
    name = "transpose" if program.is_torch else "swapaxes"
    return f".{name}({rank - 2}, {rank - 1})" if program.is_torch else f".{name}(-2, -1)"
