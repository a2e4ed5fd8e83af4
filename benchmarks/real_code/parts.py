"""Classes that are named after attention and are none: seen in the calls that they make."""

import ast
import builtins
import inspect
import textwrap
from typing import Any

__all__ = ["PART", "calls_of", "seen_in"]

PART = "it is no attention: nothing that it calls weighs or multiplies what it is given"
_WEIGHS = frozenset(
    {
        *("softmax", "log_softmax", "softmin", "gumbel_softmax", "Softmax", "Softmin"),
        *("scaled_dot_product_attention", "attention_interface", "eager_attention_forward"),
        *("multi_head_attention_forward", "MultiheadAttention", "logsumexp", "sigmoid"),
        *("matmul", "bmm", "baddbmm", "mm", "einsum", "tensordot", "@", "topk", "argmax"),
    }
)


def seen_in(loaded: Any, kind: Any) -> str:
    """The calls of a class that is no attention, in words; '' for one that may be.

    Calls are followed into the classes and functions of its module. A mixer, an output, a
    table of positions makes none that weighs: no softmax, no attention function, and no
    product of two tensors other than entry by entry.
    """
    calls = calls_of(loaded, kind)
    if calls & _WEIGHS:
        return ""
    shown = sorted(c for c in calls if not hasattr(builtins, c))
    return f"calls {', '.join(shown)}"


def calls_of(loaded: Any, kind: Any) -> set[str]:
    """Names of everything that a class calls, itself or through its module."""
    todo, read, calls = [kind], set[Any](), set[str]()
    while todo:
        each = todo.pop()
        if each in read:
            continue
        read.add(each)
        called, read_too = _names(each)
        calls |= called
        for name in called | read_too:  # a class may be chosen before it is called
            found = vars(loaded).get(name)
            if hasattr(found, "_fields"):
                continue  # a tuple with names has no text of its own
            if isinstance(found, dict):
                todo += [c for c in found.values() if isinstance(c, type)]
            if getattr(found, "__module__", "") == loaded.__name__ and callable(found):
                todo.append(found)
        if isinstance(each, type):
            todo += [b for b in each.__mro__[1:] if b.__module__ == loaded.__name__]
    return calls


def _names(each: Any) -> tuple[set[str], set[str]]:
    """Names of what a text calls, and of all else that it reads."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
    found, others = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            last = node.func
            if isinstance(last, ast.Subscript):
                last = last.value  # one of a table
            found.add(last.attr if isinstance(last, ast.Attribute) else ast.unparse(last))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add("@")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            others.add(node.id)
    return found, others
