"""Changes of shape that keep the numbers in the order in which their axes lie.

``view`` and ``reshape`` cut a tensor by counting; they are right only where every axis of the
result is a run of whole axes of the operand, or a part of one. From the observed shapes the
orders in which that is so are found, and the exchange of axes that each of them needs.
"""

import ast
import itertools
import math
from collections.abc import Iterator, Sequence

from regard.check.repair.families.base import Change, change, family, literal
from regard.check.repair.program import Operation, Program

_SHAPERS = ("view", "reshape")


@family("reshape")
def reshapes(program: Program) -> Iterator[Change | None]:
    """Exchange axes before or after a change of shape so that no two are mixed."""
    for found in program.operations("view", "reshape", "flatten", "view_as", "reshape_as"):
        operand = found.operand
        seen = program.seen(operand)
        if operand is None or seen is None or not seen.is_tensor or not seen.shapes:
            continue
        before = seen.shapes[0]
        if found.name in _SHAPERS:
            parts = _parts(found)
            if not parts or any(isinstance(p, ast.Starred) for p in parts):
                yield from _in_place(
                    program, [p for p in parts if not isinstance(p, ast.Starred)]
                )
                yield from _merged_blindly(program, found, before)
                continue
            sizes = _sizes(program, parts, math.prod(before))
            yield from _in_place(program, parts)
            if sizes is not None:
                yield from _split(program, found, parts, sizes, before)
                yield from _merged(program, found, sizes, before)
                yield from _refined(program, found, parts, sizes, before)
        else:
            yield from _merged_blindly(program, found, before)


def _parts(found: Operation) -> list[ast.expr]:
    args = list(found.args)
    if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
        args = list(args[0].elts)
    return args


def _sizes(program: Program, parts: Sequence[ast.expr], total: int) -> list[int] | None:
    found: list[int] = []
    for part in parts:
        value = literal(part)
        if value is None:
            seen = program.seen(part)
            value = seen.value if seen is not None and seen.kind == "int" else None
        if not isinstance(value, int):
            return None
        found.append(value)
    known = math.prod(n for n in found if n != -1)
    if found.count(-1) == 1 and known > 0 and total % known == 0:
        found[found.index(-1)] = total // known
    return found if -1 not in found and math.prod(found) == total else None


def _in_place(program: Program, parts: Sequence[ast.expr]) -> Iterator[Change | None]:
    for a, b in itertools.combinations(parts, 2):
        if program.text(a) != program.text(b):
            yield change(
                1.3,
                (*program.span(a), program.text(b)),
                (*program.span(b), program.text(a)),
            )


def _split(
    program: Program,
    found: Operation,
    parts: Sequence[ast.expr],
    sizes: Sequence[int],
    before: Sequence[int],
) -> Iterator[Change | None]:
    """Cut in the order in which the axes lie, then exchange into the order that is asked."""
    for order in _orders(len(sizes)):
        if not aligned(before, [sizes[i] for i in order]):
            continue
        texts = [program.text(parts[i]) for i in order]
        back = [order.index(i) for i in range(len(order))]
        text = _call(program, found, texts, "reshape") + moved(program, back)
        yield change(1.0 + 0.1 * _far(order), program.put(found.node, text))


def _merged(
    program: Program, found: Operation, sizes: Sequence[int], before: Sequence[int]
) -> Iterator[Change | None]:
    """Exchange axes of the operand so that those which are joined lie side by side."""
    assert found.operand is not None
    for order in _orders(len(before)):
        if not aligned([before[i] for i in order], sizes):
            continue
        operand = program.at(found.operand) + moved(program, order)
        text = _call(program, found, None, "reshape", operand=operand)
        yield change(1.1 + 0.1 * _far(order), program.put(found.node, text))


def _refined(
    program: Program,
    found: Operation,
    parts: Sequence[ast.expr],
    sizes: Sequence[int],
    before: Sequence[int],
) -> Iterator[Change | None]:
    """Cut an axis of the operand into factors, exchange them, and join them anew."""
    factors: list[tuple[str, int]] = []
    groups: list[list[int]] = []
    for part, size in zip(parts, sizes, strict=True):
        inner = list(_factors(program, part)) or [(program.text(part), size)]
        if math.prod(n for _, n in inner) != size:
            return
        groups.append(list(range(len(factors), len(factors) + len(inner))))
        factors += inner
    if len(factors) == len(parts) or len(factors) > 5:
        return
    assert found.operand is not None
    wanted = [i for group in groups for i in group]
    for order in itertools.permutations(wanted):
        if not aligned(before, [factors[i][1] for i in order]) or list(order) == wanted:
            continue
        cut = _call(program, found, [factors[i][0] for i in order], "reshape")
        turned = cut + moved(program, [order.index(i) for i in wanted])
        text = _call(program, found, None, "reshape", operand=turned)
        yield change(
            2.0 + 0.1 * _far([order.index(i) for i in wanted]), program.put(found.node, text)
        )


def _factors(program: Program, part: ast.expr) -> Iterator[tuple[str, int]]:
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        for side in (part.left, part.right):
            inner = list(_factors(program, side))
            seen = program.seen(side)
            value = literal(side) if literal(side) is not None else seen and seen.value
            if inner:
                yield from inner
            elif isinstance(value, int):
                yield program.text(side), value
            else:
                return


def _merged_blindly(
    program: Program, found: Operation, before: Sequence[int]
) -> Iterator[Change | None]:
    """Where the new shape is not spelled out: exchange two axes first."""
    assert found.operand is not None
    for order in _orders(len(before)):
        if _far(order) == 2:
            operand = program.at(found.operand) + moved(program, order)
            name = "reshape" if found.name == "view" else found.name
            text = _call(program, found, None, name, operand=operand)
            yield change(1.4, program.put(found.node, text))


def aligned(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether a reshape between two shapes only joins or cuts whole axes.

    >>> aligned((3, 7, 40), (3, 7, 4, 10)), aligned((3, 7, 40), (3, 4, 7, 10))
    (True, False)
    """
    before, after = ([n for n in shape if n != 1] for shape in (before, after))
    i = j = 0
    while i < len(before) or j < len(after):
        left = right = 1
        first_i, first_j = i, j
        while True:
            if left <= right and i < len(before):
                left *= before[i]
                i += 1
            elif j < len(after):
                right *= after[j]
                j += 1
            else:
                return left == right and min(i - first_i, j - first_j) <= 1
            if left == right and i > first_i and j > first_j:
                break
            if i >= len(before) and j >= len(after):
                return False
        if min(i - first_i, j - first_j) > 1:
            return False
    return True


def moved(program: Program, order: Sequence[int]) -> str:
    """The call that brings axes into another order, in this file's library.

    Two axes exchanged are a ``transpose`` in PyTorch and a ``swapaxes`` in NumPy.
    """
    off = [i for i, j in enumerate(order) if i != j]
    if not off:
        return ""
    if len(off) == 2:
        name = "transpose" if program.is_torch else "swapaxes"
        return f".{name}({off[0]}, {off[1]})"
    name = "permute" if program.is_torch else "transpose"
    return f".{name}({', '.join(map(str, order))})"


def _orders(n: int) -> Iterator[list[int]]:
    if n > 5:
        return
    for order in itertools.permutations(range(n)):
        if list(order) != list(range(n)):
            yield list(order)


def _far(order: Sequence[int]) -> int:
    return sum(i != j for i, j in enumerate(order))


def _call(
    program: Program,
    found: Operation,
    shape: Sequence[str] | None,
    name: str,
    *,
    operand: str | None = None,
) -> str:
    """The call with another shape, or with another operand in front."""
    assert found.operand is not None
    if shape is None:
        args = ", ".join(
            [program.text(a) for a in found.args]
            + [f"{k.arg}={program.text(k.value)}" for k in found.node.keywords if k.arg]
        )
    else:
        args = ", ".join(shape)
    if operand is None:
        operand = program.at(found.operand)
        name = found.name if found.name in _SHAPERS else name
    return f"{operand}.{name}({args})"


@family("reshape")
def copies(program: Program) -> Iterator[Change | None]:
    """Let a view of exchanged axes, which no strides can say, be a copy."""
    if program.observed.crash is None:
        return
    for found in program.operations("view"):
        if found.form == "method":
            end = program.span(found.node.func)[1]
            yield change(0.9, (end - len("view"), end, "reshape"))


@family("cut-anew")
def cuts_anew(program: Program) -> Iterator[Change | None]:
    """Cut in another order instead of exchanging axes after the cut."""
    for outer in program.operations("transpose", "swapaxes", "permute", "movedim"):
        inner = program.operation(outer.operand) if outer.operand is not None else None
        if outer.form != "method" or inner is None or inner.operand is None:
            continue
        if inner.name not in (*_SHAPERS, "unflatten"):
            continue
        start, end = program.span(inner.node)
        whole = program.source[start:end]
        parts = [a for a in inner.args if not isinstance(a, ast.Starred)]
        if parts and isinstance(parts[-1], ast.Tuple | ast.List):
            parts = list(parts[-1].elts)
        yield change(1.6, program.put(outer.node, whole))
        for a, b in itertools.combinations(parts, 2):
            (p, q), (r, s) = program.span(a), program.span(b)
            swapped = whole[: p - start] + program.text(b) + whole[q - start : r - start]
            swapped += program.text(a) + whole[s - start :]
            yield change(1.5, program.put(outer.node, swapped))


@family("repeat")
def repeats(program: Program) -> Iterator[Change | None]:
    """Each element's copies side by side instead of whole copies one after another."""
    for found in program.operations("repeat", "tile"):
        operand, args = found.operand, _parts(found)
        if operand is None or (found.name == "repeat" and not program.is_torch):
            continue
        yield from _in_place(program, args)
        rank = program.rank(operand)
        new = len(args) - rank if rank is not None else 0
        odd = [i for i, a in enumerate(args) if literal(a) != 1 and i >= new]
        for i in odd if len(odd) == 1 else []:
            n = program.text(args[i])
            if program.is_torch:
                text = f"{program.at(operand)}.repeat_interleave({n}, dim={i - new})"
            else:
                np = program.alias("numpy") or "np"
                text = f"{np}.repeat({program.text(operand)}, {n}, axis={i - new})"
            yield change(0.9, program.put(found.node, text))


@family("repeat")
def tiles(program: Program) -> Iterator[Change | None]:
    """Whole copies one after another instead of each element's side by side."""
    for found in program.operations("repeat_interleave", "repeat"):
        if found.operand is None or (found.name == "repeat" and program.is_torch):
            continue
        rank = program.rank(found.operand) or 3
        keyword = found.keyword("dim", "axis")
        at = found.args[1] if len(found.args) > 1 else None
        axis = literal(keyword.value if keyword is not None else at)
        if not isinstance(axis, int) or not found.args or not -rank <= axis < rank:
            continue
        ones = ["1"] * rank
        ones[axis] = program.text(found.args[0])
        shape = ", ".join(ones)
        if program.is_torch:
            text = f"{program.at(found.operand)}.repeat({shape})"
        else:
            np = program.alias("numpy") or "np"
            text = f"{np}.tile({program.text(found.operand)}, ({shape}))"
        yield change(1.1, program.put(found.node, text))
