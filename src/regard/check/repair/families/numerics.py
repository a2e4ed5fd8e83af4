"""Numbers that a format cannot hold: fill values, exponentials, rows without a key."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.axes import shown
from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Program

_LARGE = 1000.0


@family("fill")
def fills(program: Program) -> Iterator[Change | None]:
    """Another number to fill forbidden scores with."""
    for node in program.loads():
        parent, place = program.parents[node]
        found = program.operation(parent)
        filling = found is not None and found.name in (
            "masked_fill",
            "masked_fill_",
            "where",
            "full",
            "full_like",
        )
        value = literal(node)
        endless = program.text(node) in (
            'float("-inf")',
            "float('-inf')",
            "float('inf')",
            'float("inf")',
        )
        endless = endless or program.text(node).endswith(
            (".inf", ".max", ".min", ".tiny", ".eps")
        )
        large = isinstance(value, float | int) and abs(value) >= _LARGE
        if literal(parent) is not None or not (
            large or endless or (filling and value is not None)
        ):
            continue
        for text in _options(program, found.operand if filling and found else None, place):
            # A large number that is taken away keeps its sign.
            if text != program.text(node) and (
                filling or not large or _negative(program, node)
            ):
                yield change(1.1 if "1e" not in text else 1.3, program.put(node, text))
        if isinstance(value, float | int) and value:
            yield change(1.0, program.put(node, repr(-value)))
        if large and isinstance(value, float) and value > 0:
            yield change(1.2, program.put(node, "1e4"))
            yield change(1.4, program.put(node, "1e9"))
        if (endless and "tiny" in program.text(node)) or program.text(node).endswith(
            ("eps", "max")
        ):
            head = program.text(node).rpartition(".")[0]
            yield change(0.9, program.put(node, f"{head}.min"))


def _negative(program: Program, node: ast.expr) -> bool:
    value = literal(node)
    return (value is not None and value < 0) or program.text(node).startswith("-")


def _options(program: Program, receiver: ast.expr | None, place: str) -> Iterator[str]:
    del place
    if program.is_torch:
        yield 'float("-inf")'
        torch = program.alias("torch")
        if torch and receiver is not None and isinstance(receiver, ast.Name):
            yield f"{torch}.finfo({receiver.id}.dtype).min"
    elif program.alias("numpy"):
        yield f"-{program.alias('numpy')}.inf"
    yield "-1e9"
    yield "-1e4"


@family("row-maximum")
def row_maxima(program: Program) -> Iterator[Change | None]:
    """Take the largest score of each row away before the exponential."""
    for found in program.operations("exp"):
        node = found.operand
        if node is None:
            continue
        rank = program.rank(node) or 2
        plain = node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            inner = program.operation(node.right)
            if inner is not None and inner.name in ("max", "amax"):
                plain = node.left
        text = program.at(plain)
        for axis in range(rank):
            a = shown(axis, rank)
            if program.is_torch:
                top = f"{text}.amax(dim={a}, keepdim=True)"
            else:
                top = f"{text}.max(axis={a}, keepdims=True)"
            body = f"{program.at(plain, 10)} - {top}"
            yield change(1.4 if axis == rank - 1 else 1.7, program.put(node, body))


@family("empty-row")
def empty_rows(program: Program) -> Iterator[Change | None]:
    """Zeros, not NaN, for a query that may attend no key."""
    for found in program.operations("softmax"):
        text = program.at(found.node)
        if program.is_torch:
            yield change(1.8, program.put(found.node, f"{text}.nan_to_num(0.0)"))
    for node in program.loads():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            total = program.operation(node.right)
            if total is not None and total.name == "sum":
                right = f"({program.text(node.right)} + 1e-9)"
                yield change(2.0, program.put(node.right, right))
                np = program.alias("numpy")
                if np:
                    whole = f"{np}.nan_to_num({program.text(node)})"
                    yield change(2.1, program.put(node, whole))
