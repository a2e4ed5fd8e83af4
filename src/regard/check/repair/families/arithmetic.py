"""Operators, their operands, roots and functions around an expression."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Operation, Program

_SIGNS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("-", "*"),
    ast.Sub: ("+", "*"),
    ast.Mult: ("/", "+", "-", "@"),
    ast.Div: ("*", "-"),
    ast.FloorDiv: ("*", "/", "%"),
    ast.Mod: ("//",),
    ast.Pow: ("*", "/"),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&",),
    ast.MatMult: ("*",),
}
_LEVELS: dict[str, int] = {
    **{"|": 6, "&": 8, "+": 10, "-": 10, "*": 11, "/": 11, "//": 11, "%": 11, "@": 11},
    **{"**": 13},
}
_PRODUCTS = ("dot", "general", "scaled_dot", "cosine", "none")
_WRAPS = ("tanh", "relu", "exp", "log", "sigmoid", "softmax", "log_softmax", "sqrt", "abs")
_BENDS = ("tanh", "relu", "sigmoid", "gelu", "silu", "leaky_relu", "elu")
_LOOSE = (*_WRAPS, "neg", "float", "contiguous", "nan_to_num", "logical_not", "square")
_SYMBOLS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//"},
    **{ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|"},
}


def joined(program: Program, left: ast.expr, sign: str, right: ast.expr) -> str:
    """Two expressions with an operator between them and the parentheses they need."""
    level = _LEVELS[sign]
    return f"{program.at(left, level)} {sign} {program.at(right, level + 1)}"


_EXTREMES = {"maximum": "minimum", "minimum": "maximum", "logical_or": "logical_and"}
_EXTREMES |= {"logical_and": "logical_or", "fmax": "fmin", "fmin": "fmax"}


@family("operator")
def extremes(program: Program) -> Iterator[Change | None]:
    """The larger of two masks for the smaller one, one mask or the other for both."""
    for found in program.operations(*_EXTREMES):
        func = found.node.func
        if isinstance(func, ast.Attribute):
            end = program.span(func)[1]
            yield change(1.0, (end - len(func.attr), end, _EXTREMES[func.attr]))


@family("operator")
def powers(program: Program) -> Iterator[Change | None]:
    """A quotient that was to be the power: `d ** -1 / 2` is half of a whole power."""
    for node in program.loads():
        left = node.left if isinstance(node, ast.BinOp) else None
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Div)
            and isinstance(left, ast.BinOp)
            and isinstance(left.op, ast.Pow)
            and literal(node.right) is not None
            and literal(left.right) is not None
        ):
            power = f"({program.text(left.right)} / {program.text(node.right)})"
            yield change(1.0, program.put(node, f"{program.at(left.left, 14)} ** {power}"))


@family("operator")
def operators(program: Program) -> Iterator[Change | None]:
    """Another operator, or its operands exchanged."""
    for node in program.loads():
        if not isinstance(node, ast.BinOp) or type(node.op) not in _SIGNS:
            continue
        for place, other in enumerate(_SIGNS[type(node.op)]):
            if other in ("*", "/", "//") and 1 in (literal(node.left), literal(node.right)):
                continue
            if _blends(program, node, other) or _no_matrix(program, node, other):
                continue
            text = joined(program, node.left, other, node.right)
            yield change(1.2 + 0.4 * place, program.put(node, text))
        sign = _SYMBOLS[type(node.op)]
        if sign in ("-", "/", "@", "**", "//"):
            text = joined(program, node.right, sign, node.left)
            yield change(1.1 if sign == "-" else 1.3, program.put(node, text))
        if sign in ("*", "/", "+", "-") and _is_factor(program, node.right):
            # A factor or a shift too many; a mask is a feature and stays.
            yield change(1.8, program.put(node, program.text(node.left)))
        if sign in ("*", "+") and _is_factor(program, node.left):
            yield change(1.8, program.put(node, program.text(node.right)))
        if sign in ("//", "/") and literal(node.right) is None:
            yield change(1.7, program.put(node, program.text(node.left)))


def _blends(program: Program, node: ast.BinOp, other: str) -> bool:
    """Whether a sum of two contents would become their product, which is no usual slip."""
    kinds = [program.seen(n) for n in (node.left, node.right)]
    both = all(s is not None and s.kind == "float" and s.rank not in (None, 0) for s in kinds)
    return both and isinstance(node.op, ast.Add) and other == "*"


def _no_matrix(program: Program, node: ast.BinOp, other: str) -> bool:
    ranks = [program.rank(n) for n in (node.left, node.right)]
    return other == "@" and not all(r is not None and r > 0 for r in ranks)


def _is_factor(program: Program, node: ast.expr) -> bool:
    seen = program.seen(node)
    if literal(node) is not None:
        return True
    if seen is None:
        return False
    return seen.kind in ("int", "real") or (seen.is_tensor and seen.shape in ((), (1,)))


@family("root")
def roots(program: Program) -> Iterator[Change | None]:
    """A square root too few or too many, or a power with the wrong sign."""
    call = _root(program)
    for node in program.loads():
        seen = program.seen(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            value = literal(node.right)
            if isinstance(value, float):
                yield change(1.3, program.put(node, program.text(node.left)))
                yield change(1.5, program.put(node, f"{program.at(node.left, 14)} ** -1.0"))
            continue
        found = program.operation(node)
        if found is not None and found.name in ("sqrt", "rsqrt") and found.operand is not None:
            yield change(1.3, program.put(node, program.text(found.operand)))
            continue
        parent, place = program.parents[node]
        if seen is None or seen.kind not in ("int", "real") or literal(node) is not None:
            continue
        inner = program.at(node, 14)
        if isinstance(parent, ast.Assign):
            yield change(1.7, program.put(node, f"{inner} ** 0.5"))
            yield change(1.7, program.put(node, f"{inner} ** -0.5"))
        if not isinstance(parent, ast.BinOp):
            continue
        if isinstance(parent.op, ast.Div) and place == "right":
            root = f"{call}({program.text(node)})" if call else f"{inner} ** 0.5"
            yield change(1.2, program.put(node, root))
        elif isinstance(parent.op, ast.Mult):
            yield change(1.4, program.put(node, f"{inner} ** -0.5"))
            yield change(1.5, program.put(node, f"{inner} ** 0.5"))


def _root(program: Program) -> str:
    if program.alias("math"):
        return f"{program.alias('math')}.sqrt"
    if program.alias("numpy"):
        return f"{program.alias('numpy')}.sqrt"
    return ""


@family("function")
def functions(program: Program) -> Iterator[Change | None]:
    """A hyperbolic tangent too few, or an elementwise function too many."""
    contract = program.contract
    # A declared product score has no hyperbolic tangent; an attentional state has one.
    curved = contract.score not in _PRODUCTS or any(r.role for r in contract.returns)
    for node in program.loads():
        found = program.operation(node)
        if found is not None and found.operand is not None and found.name in _LOOSE:
            yield change(1.6, program.put(node, program.text(found.operand)))
        seen = program.seen(node)
        if seen is None or seen.kind != "float" or not curved:
            continue
        if found is not None and found.name in _BENDS and found.name != contract.activation:
            end = program.span(found.node.func)[1]
            yield change(1.0, (end - len(found.name), end, contract.activation))
        if not isinstance(node, ast.Call | ast.BinOp | ast.Name):
            continue
        parent, place = program.parents[node]
        if isinstance(parent, ast.Attribute | ast.Subscript) and place == "value":
            continue
        name = "tanh"
        inner = [program.operation(n) for n in (node, parent, *ast.iter_child_nodes(node))]
        if any(i is not None and i.name == name for i in inner):
            continue
        small = isinstance(node, ast.BinOp) or (found is not None and found.form == "module")
        yield change(1.5 if small else 2.1, program.put(node, applied(program, name, node)))


def applied(program: Program, name: str, node: ast.expr) -> str:
    """An elementwise function of an expression, as this file writes such things."""
    for module in ("torch", "numpy"):
        alias = program.alias(module)
        if alias:
            return f"{alias}.{name}({program.text(node)})"
    return f"{program.at(node)}.{name}()"


@family("normalise")
def normalises(program: Program) -> Iterator[Change | None]:
    """Scores that meet the values as they are, or go through another squashing function."""
    for node in program.loads():
        found = program.operation(node)
        seen = program.seen(node)
        rank = seen.rank if seen is not None and seen.kind == "float" else None
        if rank is None or not rank:
            continue
        squashed = found is not None and found.name in ("sigmoid", "relu", "exp")
        parent, place = program.parents[node]
        met = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult)
        met = met or (isinstance(parent, ast.Call) and place == "args")
        base = found.operand if squashed and found is not None else node
        if base is None or not (squashed or (met and isinstance(node, ast.Name))):
            continue
        if not program.is_torch:
            continue
        for axis in (rank - 1, *range(rank - 1)):
            text = f"{program.at(base)}.softmax(dim={'-1' if axis == rank - 1 else axis})"
            late = 0.3 * (axis != rank - 1)
            yield change((1.3 if squashed else 2.2) + late, program.put(node, text))


@family("reduction")
def reductions(program: Program) -> Iterator[Change | None]:
    """A sum that a product of two tensors lacks, to be a weighted sum."""
    for node in program.loads():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        rank = program.rank(node)
        ranks = [program.rank(n) for n in (node.left, node.right)]
        parent, place = program.parents[node]
        if rank is None or rank < 2 or 0 in ranks or None in ranks or place == "func":
            continue
        if isinstance(parent, ast.BinOp | ast.Attribute | ast.Subscript):
            continue
        word = "dim" if program.is_torch else "axis"
        keep = "keepdim" if program.is_torch else "keepdims"
        for axis in range(rank):
            a = -1 if axis == rank - 1 else axis
            yield change(1.9, program.after(node, f".sum({word}={a})"))
            yield change(2.1, program.after(node, f".sum({word}={a}, {keep}=True)"))


@family("nesting")
def nestings(program: Program) -> Iterator[Change | None]:
    """Exchange two operations: ``f(g(x))`` by ``g(f(x))``, ``f(x) * c`` by ``f(x * c)``."""
    for node in program.loads():
        outer = program.operation(node)
        if outer is not None and outer.operand is not None:
            inner = program.operation(outer.operand)
            if inner is not None and inner.operand is not None:
                deep = performed(program, outer, program.text(inner.operand), inner.operand)
                text = performed(program, inner, deep, None)
                yield change(1.2, program.put(node, text))
            if isinstance(outer.operand, ast.BinOp):
                yield from _out_of(program, node, outer, outer.operand)
        if isinstance(node, ast.BinOp):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                found = program.operation(side)
                if found is None or found.operand is None:
                    continue
                sign = _SYMBOLS.get(type(node.op))
                if sign in ("*", "/", "+", "-"):
                    first = side is node.left
                    a, b = (found.operand, other) if first else (other, found.operand)
                    text = performed(program, found, joined(program, a, sign, b), None)
                    yield change(1.4, program.put(node, text))


def _out_of(
    program: Program, node: ast.expr, outer: Operation, inner: ast.BinOp
) -> Iterator[Change | None]:
    """``f(x * c)`` as ``f(x) * c``."""
    sign = _SYMBOLS.get(type(inner.op))
    if sign not in ("*", "/", "+", "-"):
        return
    done = performed(program, outer, program.text(inner.left), inner.left)
    level = _LEVELS[sign]
    yield change(1.6, program.put(node, f"{done} {sign} {program.at(inner.right, level + 1)}"))
    done = performed(program, outer, program.text(inner.right), inner.right)
    yield change(1.8, program.put(node, f"{program.at(inner.left, level)} {sign} {done}"))


def performed(program: Program, operation: Operation, text: str, node: ast.expr | None) -> str:
    """The operation done to another operand, given as text (and as a node, if it is one)."""
    start, _ = program.span(operation.node)
    assert operation.operand is not None
    a, b = program.span(operation.operand)
    whole = program.text(operation.node)
    if operation.form == "method":
        text = program.at(node) if node is not None else _bracketed(text)
        # The operand's own parentheses, if it has some, are replaced with it.
        func = operation.node.func
        tail = program.source[b : program.span(func)[1]]
        tail = tail[tail.index(".") :] if "." in tail else tail
        rest = program.source[program.span(func)[1] : program.span(operation.node)[1]]
        return f"{text}{tail}{rest}"
    return whole[: a - start] + text + whole[b - start :]


def _bracketed(text: str) -> str:
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return f"({text})"
    simple = ast.Name | ast.Call | ast.Attribute | ast.Subscript
    return text if isinstance(node, simple) else f"({text})"


@family("sign")
def signs(program: Program) -> Iterator[Change | None]:
    """A minus sign too few or too many."""
    for node in program.loads():
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if literal(node) is None:
                yield change(1.3, program.put(node, program.text(node.operand)))
            continue
        seen = program.seen(node)
        if seen is None or seen.kind != "float":
            continue
        parent, place = program.parents[node]
        if isinstance(parent, ast.List | ast.Tuple | ast.BinOp) or (
            isinstance(parent, ast.Call) and place == "args"
        ):
            yield change(1.9, program.put(node, f"-{program.at(node, 12)}"))
