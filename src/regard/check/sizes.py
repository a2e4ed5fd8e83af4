"""Sizes of the named axes: chosen so that a size leads back to its name.

Distinct sizes are not enough. Code forms ``batch*heads``, ``2*d_h``, ``d_h+d_s`` and
``T_mem+T_dec``, so these differ from each other and from every plain size too. A set that
coincides on purpose (``T_dec = T_enc``) is made by :meth:`Sizes.with_`.
"""

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from regard.errors import InputError, explain

__all__ = ["SETS", "Sizes", "names_in"]


def _power(base: Any, exponent: Any) -> Any:
    # Whole numbers of any length would take all time and memory there is.
    if abs(exponent) > 64 or abs(base) > 1e6:
        raise ValueError("the power is too large")
    return base**exponent


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: _power,
}
_NAME = re.compile(r"[A-Za-z_]\w*")

# Feature sizes are even, because code halves them; d_model is heads*d_head.
SETS: tuple[Mapping[str, int], ...] = (
    {
        **{"batch": 3, "T_enc": 7, "T_dec": 5, "T": 13, "T_mem": 6, "heads": 4, "kv_heads": 2},
        **{"d_head": 10, "d_s": 28, "d_h": 38, "d_attn": 16, "d_v": 46, "d_emb": 32},
        **{"vocab": 29, "layers": 2, "dirs": 2, "beam": 4, "height": 2, "width": 9},
        **{"d_k": 34, "d_ff": 36, "n_features": 25, "n_classes": 17},
    },
    {
        **{"batch": 4, "T_enc": 11, "T_dec": 3, "T": 13, "T_mem": 5, "heads": 6, "kv_heads": 3},
        **{"d_head": 10, "d_s": 36, "d_h": 46, "d_attn": 16, "d_v": 18, "d_emb": 40},
        **{"vocab": 29, "layers": 3, "dirs": 2, "beam": 2, "height": 2, "width": 7},
        **{"d_k": 34, "d_ff": 28, "n_features": 15, "n_classes": 19},
    },
    {
        **{"batch": 5, "T_enc": 9, "T_dec": 3, "T": 12, "T_mem": 4, "heads": 6, "kv_heads": 2},
        **{"d_head": 16, "d_s": 20, "d_h": 34, "d_attn": 28, "d_v": 14, "d_emb": 44},
        **{"vocab": 43, "layers": 4, "dirs": 2, "beam": 2, "height": 2, "width": 11},
        **{"d_k": 38, "d_ff": 42, "n_features": 19, "n_classes": 21},
    },
)
_FREE = ((47, 53, 59, 61, 67, 71), (43, 53, 59, 61, 67, 71), (47, 51, 53, 57, 61, 63))


def names_in(text: str) -> tuple[str, ...]:
    """Every axis name of an axes text or an expression, in order."""
    if re.fullmatch(r"'[^']*'", text):
        return ()
    return tuple(n for n in _NAME.findall(text) if n != "sqrt")


class Sizes(Mapping[str, int]):
    """Named sizes of one set; a name that no set knows gets a free number of its own."""

    def __init__(self, which: int = 0, fixed: Mapping[str, int] | None = None) -> None:
        self.which = which
        self._fixed = dict(fixed or {})
        self._sizes: dict[str, int] = {**SETS[which], **self._fixed}
        self._free: Iterator[int] = itertools.chain(_FREE[which], itertools.count(73, 2))

    def __getitem__(self, name: str) -> int:
        if name not in self._sizes:
            if name == "d_model":
                return self._sizes["heads"] * self._sizes["d_head"]
            self._sizes[name] = next(self._free)
        return self._sizes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def with_(self, **changes: int) -> "Sizes":
        """Return a set in which some names have other sizes."""
        other = Sizes(self.which, {**self._fixed, **changes})
        for name, size in self._sizes.items():
            other._sizes.setdefault(name, size)
        return other

    def value(self, expression: Any) -> Any:
        """Evaluate an expression of named sizes; ``'text'`` is a text, the rest literals.

        A table becomes an object with these attributes: the ``config`` of a constructor.
        """
        if isinstance(expression, Mapping):
            return SimpleNamespace(**{k: self.value(v) for k, v in expression.items()})
        if not isinstance(expression, str):
            return expression
        if re.fullmatch(r"'[^']*'", expression):
            return expression[1:-1]
        try:
            return self._arithmetic(ast.parse(expression.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ArithmeticError) as error:
            raise InputError(
                explain(
                    "check: an axis is no expression of sizes",
                    expected="names, whole numbers, + - * / // ** and sqrt()",
                    got=repr(expression),
                    because=str(error) or None,
                )
            ) from None

    def _arithmetic(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float()):
                return node.value
            case ast.Name(id=name):
                return self[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._arithmetic(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._arithmetic(left), self._arithmetic(right))
            case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]):
                return math.sqrt(self._arithmetic(argument))
        raise ValueError(f"{ast.unparse(node)} is neither")

    def shape(self, axes: str) -> tuple[int, ...]:
        """Shape of an axes text such as ``"batch heads*d_head"``."""
        return tuple(int(self.value(token)) for token in axes.split())

    def shown(self, names: tuple[str, ...]) -> dict[str, int]:
        """Sizes of the given names only, for a report."""
        return {name: self[name] for name in names}
