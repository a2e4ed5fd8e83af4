"""Scores that are made by a squashed sum or pair, as the code writes them."""

import ast
import re
from collections.abc import Mapping

from regard.check.roles.reading import Reading

__all__ = ["activated"]


def activated(reading: Reading) -> tuple[str, str]:
    """Score made by a squashed sum or pair: its kind and the activation."""
    assigned = _assignments(reading)
    for node in reading.walk():
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).split(".")[-1]
        if name not in ("tanh", "relu", "Tanh", "ReLU", "leaky_relu", "sigmoid"):
            continue
        inside = node.args[0] if node.args else getattr(node.func, "value", node)
        if name in ("Tanh", "ReLU"):
            if re.search(r"\b(cat|concatenate|concat)\(", reading.code):
                return "concat", name.lower()
            continue
        text = _expanded(inside, assigned)
        if _is_result(node, reading) or _is_carried(node, reading) or name == "leaky_relu":
            continue  # the leaky one bends sums over features, as graph attention has them
        if re.search(r"\b(cat|concatenate|concat|hstack)\(", text):
            if re.search(r"context|ctx|mixed|softmax|weights", text):
                continue  # the attentional state, which joins context and query
            return "concat", name
        if " + " in text and name in ("tanh", "relu"):
            return "additive", name
    return "", ""


def _is_result(node: ast.AST, reading: Reading) -> bool:
    """Whether an expression is part of what is returned and no score."""
    if reading.call is None:
        return False
    returns = [n for n in ast.walk(reading.call) if isinstance(n, ast.Return)]
    return any(node is inner for r in returns for inner in ast.walk(r)) and not re.search(
        r"softmax", ast.unparse(returns[-1])
    )


def _is_carried(node: ast.Call, reading: Reading) -> bool:
    """Whether an expression makes a state of its own last value, as a recurrence does."""
    return any(
        isinstance(n, ast.Assign)
        and n.value is node
        and {ast.unparse(t) for t in n.targets}
        & {i.id for i in ast.walk(node) if isinstance(i, ast.Name)}
        for n in reading.walk()
    )


def _assignments(reading: Reading) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in reading.walk():
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)
    return found


def _expanded(node: ast.AST, assigned: Mapping[str, list[ast.expr]], depth: int = 3) -> str:
    """Text of an expression with the local names in it written out."""
    text = ast.unparse(node)
    if depth == 0:
        return text
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in assigned:
            for value in assigned[inner.id]:
                text += "; " + _expanded(value, assigned, depth - 1)
    return text
