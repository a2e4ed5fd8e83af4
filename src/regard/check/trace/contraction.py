"""Every product that sums over axes, written as one einsum equation.

The letters of an operand stand for its axes in order; leading axes that both operands share
by broadcasting get equal letters.
"""

import string
from collections.abc import Callable, Sequence
from typing import Any

from regard.check.trace.records import Node

__all__ = ["equation"]


def equation(op: str, inputs: Sequence[Node], arguments: dict[str, Any]) -> str | None:
    """Return ``"abc,adc->abd"`` for a contraction of two operands, None for anything else.

    An ellipsis is spelled out; an axis of size 1 that meets a longer one keeps the letter of
    the longer. For ``linear`` the weight is the second operand, a bias is left out.
    """
    if op == "einsum":
        return _einsum(str(arguments.get("equation", "")), inputs)
    if len(inputs) < 2:
        return None
    if op in ("baddbmm", "addmm"):
        inputs = inputs[1:]
    left, right = (len(n.shape) for n in inputs[:2]) if len(inputs) > 1 else (0, 0)
    if op == "tensordot":
        return _tensordot(left, right, arguments.get("dims", 2))
    rule = _RULES.get(op)
    return rule(left, right) if rule is not None and left and right else None


def _matmul(left: int, right: int) -> str:
    if left == 1 and right == 1:
        return "y,y->"
    if left == 1:
        lead = _letters(right - 2, 0)
        return f"y,{lead}yz->{lead}z"
    if right == 1:
        lead = _letters(left - 1, 0)
        return f"{lead}y,y->{lead}"
    count = max(left, right) - 2
    lead = _letters(count, 0)
    a, b = lead[count - (left - 2) :], lead[count - (right - 2) :]
    return f"{a}xy,{b}yz->{lead}xz"


def _linear(left: int, right: int) -> str:
    rows = _letters(left - 1, 0)
    out = "z" if right == 2 else ""
    return f"{rows}y,{out}y->{rows}{out}"


def _inner(left: int, right: int) -> str:
    mine, its = _letters(left - 1, 0), _letters(right - 1, left)
    return f"{mine}y,{its}y->{mine}{its}"


def _dot(left: int, right: int) -> str | None:
    return _matmul(left, right) if right <= 2 else None


def _letters(count: int, start: int) -> str:
    return string.ascii_letters[start : start + count]


def _einsum(text: str, inputs: Sequence[Node]) -> str | None:
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    if len(operands) != len(inputs):
        return None
    spare = [c for c in string.ascii_letters[::-1] if c not in text]
    counts = [
        len(n.shape) - len(o.replace("...", "")) for o, n in zip(operands, inputs, strict=True)
    ]
    wide = "".join(
        spare[
            : max((c for c, o in zip(counts, operands, strict=True) if "..." in o), default=0)
        ]
    )
    filled = []
    for operand, count in zip(operands, counts, strict=True):
        if "..." not in operand and count:
            return None
        filled.append(operand.replace("...", wide[len(wide) - count :] if count else ""))
    if arrow:
        right = right.replace("...", wide)
    else:
        joined = "".join(filled)
        right = wide + "".join(
            sorted(c for c in set(joined) - set(wide) if joined.count(c) == 1)
        )
    return f"{','.join(filled)}->{right}"


def _tensordot(left: int, right: int, dims: Any) -> str | None:
    if isinstance(dims, int):
        dims = (list(range(left - dims, left)), list(range(dims)))
    try:
        mine, its = ([d] if isinstance(d, int) else list(d) for d in dims)
    except (TypeError, ValueError):
        return None
    a, b = list(_letters(left, 0)), list(_letters(right, left))
    for i, j in zip(mine, its, strict=True):
        b[j] = a[i]
    kept = [c for i, c in enumerate(a) if i not in {m % left for m in mine}]
    kept += [c for j, c in enumerate(b) if j not in {m % right for m in its}]
    return f"{''.join(a)},{''.join(b)}->{''.join(kept)}"


_RULES: dict[str, Callable[[int, int], str | None]] = {
    **dict.fromkeys(("matmul", "bmm", "mm", "mv", "baddbmm", "addmm"), _matmul),
    **{"dot": _dot, "linear": _linear, "inner": _inner, "outer": lambda *_: "a,b->ab"},
}
