"""Which axes each operation hands on, and where: one rule an operation.

A rule gives the axes of the result, None where only the size can tell.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # nodes are made by the trace, which uses this
    from regard.check.trace.records import Node

__all__ = ["RULES", "UNKNOWN", "elementwise"]

UNKNOWN = "?"


class _Names(Protocol):
    def of(self, size: int) -> str: ...

    def feature(self, size: int) -> str: ...

    def size(self, name: str) -> int | None: ...


def elementwise(node: "Node", names: _Names) -> list[str | None]:
    """Axes of operands that broadcast, aligned from the last; a constant's count least."""
    found: list[str | None] = [None] * len(node.shape)
    operands = sorted(node.inputs, key=lambda n: n.op in ("const", "param"))
    for operand in operands:
        if len(operand.shape) > len(node.shape):
            continue
        shift = len(node.shape) - len(operand.shape)
        for i, (name, size) in enumerate(zip(operand.axes, operand.shape, strict=True)):
            at = i + shift
            if found[at] is None and size == node.shape[at] and (name != "1" or size == 1):
                found[at] = name
    return found


def _first(node: "Node", names: _Names) -> list[str | None]:
    return list(node.inputs[0].axes)


def _reversed(node: "Node", names: _Names) -> list[str | None]:
    return list(reversed(node.inputs[0].axes))


def _last_two(node: "Node", names: _Names) -> list[str | None]:
    axes = list(node.inputs[0].axes)
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return list(axes)


def _transpose(node: "Node", names: _Names) -> list[str | None]:
    axes = list(node.inputs[0].axes)
    i, j = _at(node, "dim0", "arg0"), _at(node, "dim1", "arg1")
    axes[i], axes[j] = axes[j], axes[i]
    return list(axes)


def _permute(node: "Node", names: _Names) -> list[str | None]:
    axes = node.inputs[0].axes
    return [axes[i] for i in node.arguments["dims"]]


def _movedim(node: "Node", names: _Names) -> list[str | None]:
    rank = len(node.shape)
    source, target = (
        [d % rank for d in (v if isinstance(v, tuple | list) else (v,))]
        for v in (node.arguments["source"], node.arguments["destination"])
    )
    rest = iter(i for i in range(rank) if i not in source)
    order = [source[target.index(i)] if i in target else next(rest) for i in range(rank)]
    return [node.inputs[0].axes[i] for i in order]


def _unsqueeze(node: "Node", names: _Names) -> list[str | None]:
    axes: list[str | None] = list(node.inputs[0].axes)
    axes.insert(_at(node, "dim") % len(node.shape), "1")
    return axes


def _reduce(node: "Node", names: _Names) -> list[str | None]:
    axes: list[str | None] = list(node.inputs[0].axes)
    dim, rank = node.arguments.get("dim"), len(node.inputs[0].shape)
    dims = range(rank) if dim is None else (dim,) if isinstance(dim, int) else dim
    gone = {d % rank for d in dims}
    if node.arguments.get("keepdim"):
        return ["1" if i in gone else a for i, a in enumerate(axes)]
    return [a for i, a in enumerate(axes) if i not in gone]


def _squeeze(node: "Node", names: _Names) -> list[str | None]:
    before = node.inputs[0]
    dim, rank = node.arguments.get("dim"), len(before.shape)
    dims = range(rank) if dim is None else (dim,) if isinstance(dim, int) else dim
    gone = {d % rank for d in dims if before.shape[d % rank] == 1}
    return [a for i, a in enumerate(before.axes) if i not in gone]


def _written(node: "Node", names: _Names) -> list[str | None] | None:
    text = node.arguments.get("written")
    if not isinstance(text, str):
        return None
    left, _, right = text.partition("->")
    of: dict[str, str] = {}
    operands = node.inputs[-2:] if node.op in ("baddbmm", "addmm") else node.inputs
    for letters, operand in zip(left.split(","), operands, strict=False):
        for letter, name, size in zip(letters, operand.axes, operand.shape, strict=False):
            if size != 1 or letter not in of:
                of[letter] = name
    return [of.get(letter) for letter in right]


def _view(node: "Node", names: _Names) -> list[str | None]:
    """Match runs of old axes with runs of new ones that hold as many numbers."""
    before = node.inputs[0]
    old, new = before.shape, node.shape
    found: list[str | None] = [None] * len(new)
    i = j = 0
    while i < len(old) and j < len(new):
        run_i, run_j = [i], [j]
        while (a := math.prod(old[k] for k in run_i)) != (
            b := math.prod(new[k] for k in run_j)
        ):
            if a < b and run_i[-1] + 1 < len(old):
                run_i.append(run_i[-1] + 1)
            elif b < a and run_j[-1] + 1 < len(new):
                run_j.append(run_j[-1] + 1)
            else:
                return found
        _match(before, node, (run_i, run_j), found, names)
        i, j = run_i[-1] + 1, run_j[-1] + 1
    for k, size in enumerate(new):
        if size == 1:
            found[k] = "1"
    return found


def _match(
    before: "Node",
    after: "Node",
    runs: tuple[list[int], list[int]],
    found: list[str | None],
    names: _Names,
) -> None:
    (run_i, run_j), new = runs, after.shape
    if len(run_i) == 1 and len(run_j) == 1:
        found[run_j[0]] = before.axes[run_i[0]]
        return
    real = [before.axes[i] for i in run_i if before.shape[i] != 1]
    if len(run_j) == 1:
        joined = "*".join(f"({a})" if "+" in a else a for a in real)
        simple = names.of(new[run_j[0]])
        # (batch, heads) joined is batch*heads, but heads and d_head joined are d_model.
        found[run_j[0]] = simple if "*" not in simple and simple != UNKNOWN else joined
        if UNKNOWN in joined:
            found[run_j[0]] = None
        return
    if len(real) > 1:
        _regroup(before, after, runs, found, names)
        return
    if len(real) == 1 and real[0].isdigit():
        for j in run_j:
            found[j] = names.feature(new[j])  # parts of features are features
    elif len(real) == 1 and "*" in real[0] and "+" not in real[0]:
        parts = real[0].split("*")
        sizes = [names.size(p) for p in parts]
        if sizes == [new[j] for j in run_j if new[j] != 1]:
            for part, j in zip(parts, (j for j in run_j if new[j] != 1), strict=True):
                found[j] = None if part.isdigit() else part


def _regroup(
    before: "Node",
    after: "Node",
    runs: tuple[list[int], list[int]],
    found: list[str | None],
    names: _Names,
) -> None:
    """Name new axes by the old ones that lie in them, where no old one is cut in the middle.

    From the last axis on, an old axis lies within a new one or is made of whole new ones:
    (batch, T, 54) viewed as (X, 9) has X = batch*T*6. Where that does not come out, sizes
    tell the names, and the strides of these tell that axes were cut.
    """
    old = [(before.axes[i], before.shape[i]) for i in runs[0] if before.shape[i] != 1]
    named: dict[int, list[str]] = {}
    for j in reversed(runs[1]):
        left, parts = after.shape[j], list[str]()
        while left > 1:
            if not old:
                return
            name, size = old[-1]
            if left % size == 0:
                old.pop()
                left //= size
                parts.append(name)
            elif size % left == 0 and _is_feature(name, names):
                old[-1] = (names.feature(size // left), size // left)
                parts.append(names.feature(left))
                left = 1
            else:
                return
        named[j] = parts[::-1]
    if old:
        return
    for j, parts in named.items():
        if len(parts) > 1 and any(set(p) & set("+-/?") for p in parts):
            continue
        simple, joined = names.of(after.shape[j]), "*".join(parts) or "1"
        known = "*" not in simple and simple != UNKNOWN
        found[j] = simple if len(parts) > 1 and known else joined


def _is_feature(name: str, names: _Names) -> bool:
    """Whether an axis is one of features, whose parts are features again."""
    size = names.size(name)
    return size is not None and names.feature(size) == name


def _cat(node: "Node", names: _Names) -> list[str | None]:
    rank = len(node.shape)
    dim = node.arguments.get("dim", 0) % rank
    axes: list[str | None] = list(_fullest(node.inputs))
    simple = names.of(node.shape[dim])
    parts = [n for n in node.inputs if n.shape[dim]]
    if len(parts) == 1:
        axes[dim] = parts[0].axes[dim]  # joined with nothing
        return axes
    if simple.startswith("d_") and simple.isidentifier():
        axes[dim] = simple  # two halves of d_head are d_head again
    elif all(n.axes[dim] == node.inputs[0].axes[dim] for n in node.inputs):
        base = node.inputs[0].axes[dim]
        many: object = len(node.inputs)
        if base == "batch" and names.size("heads") == many:
            many = "heads"  # each head's features, one after the other
        axes[dim] = None if base == "1" else f"{many}*{base}" if _plain(base) else None
    else:
        axes[dim] = "+".join(n.axes[dim] for n in node.inputs)
    return axes


def _fullest(nodes: Sequence["Node"]) -> tuple[str, ...]:
    return max((n.axes for n in nodes), key=lambda a: sum(x not in ("1", UNKNOWN) for x in a))


def _stack(node: "Node", names: _Names) -> list[str | None]:
    axes: list[str | None] = list(_fullest(node.inputs))
    axes.insert(node.arguments.get("dim", 0) % len(node.shape), None)
    return axes


def _cut(node: "Node", names: _Names) -> list[str | None]:
    before = node.inputs[0]
    return [
        name if size == was else None
        for name, size, was in zip(before.axes, node.shape, before.shape, strict=True)
    ]


def _unbind(node: "Node", names: _Names) -> list[str | None]:
    axes: list[str | None] = list(node.inputs[0].axes)
    del axes[node.arguments.get("dim", 0)]
    return axes


def _select(node: "Node", names: _Names) -> list[str | None]:
    axes: list[str | None] = list(node.inputs[0].axes)
    del axes[_at(node, "dim")]
    return axes


def _getitem(node: "Node", names: _Names) -> list[str | None] | None:
    before, index = node.inputs[0], node.arguments.get("index")
    parts = list(index) if isinstance(index, tuple) else [index]
    taken = sum(p is not None and p is not ... for p in parts)
    if parts.count("tensor") > 1:
        return None
    if ... in parts:
        at = parts.index(...)
        parts[at : at + 1] = [slice(None)] * (len(before.shape) - taken)
    else:
        parts += [slice(None)] * (len(before.shape) - taken)
    axes: list[str | None] = []
    old = iter(zip(before.axes, before.shape, strict=True))
    for part in parts:
        if part is None:
            axes.append("1")
            continue
        name, size = next(old)
        if isinstance(part, slice):
            kept = len(range(*part.indices(size)))
            axes.append(name if kept == size else None)
        elif part == "tensor":
            axes += list(node.inputs[-1].axes)
    return axes


def _expand(node: "Node", names: _Names) -> list[str | None]:
    before = node.inputs[0]
    shift = len(node.shape) - len(before.shape)
    found: list[str | None] = [None] * shift
    for name, size, was in zip(before.axes, node.shape[shift:], before.shape, strict=True):
        found.append(name if size == was else None)
    return found


def _repeat(node: "Node", names: _Names) -> list[str | None]:
    found = _expand(node, names)
    before = node.inputs[0]
    shift = len(node.shape) - len(before.shape)
    for i, (size, was) in enumerate(zip(node.shape[shift:], before.shape, strict=True)):
        if size != was and was > 1 and size % was == 0:
            times, base = names.of(size // was), before.axes[i]
            simple = names.of(size)
            if base != "batch" and "*" not in simple and simple != UNKNOWN:
                found[i + shift] = simple
            elif _plain(base) and _plain(times):
                order = (base, times) if node.op == "repeat_interleave" else (times, base)
                found[i + shift] = "*".join(order)
    return found


def _linear(node: "Node", names: _Names) -> list[str | None]:
    weight = next((n for n in node.inputs[1:2] if n.op == "input" and n.axes), None)
    # A layer is built before any sequence comes, so that no length is among its features.
    last = weight.axes[0] if weight is not None else names.feature(node.shape[-1])
    return [*node.inputs[0].axes[:-1], last]


def _chosen(node: "Node", names: _Names) -> list[str | None]:
    """Some of an axis, by rank: how many is a number of the code's own."""
    before = node.inputs[0]
    return [
        name if size == was else str(size)
        for name, size, was in zip(before.axes, node.shape, before.shape, strict=True)
    ]


def _embedding(node: "Node", names: _Names) -> list[str | None]:
    ids = next(n for n in node.inputs if n.dtype.startswith("int"))
    return [*ids.axes, None]


def _at(node: "Node", *keys: str) -> int:
    for key in keys:
        if isinstance(node.arguments.get(key), int):
            value: Any = node.arguments[key]
            return int(value)
    raise KeyError(keys)


def _plain(name: str) -> bool:
    return name not in ("1", UNKNOWN) and not set(name) & set("+-/")


Rule = Callable[["Node", _Names], "list[str | None] | None"]
RULES: dict[str, Rule] = {
    **dict.fromkeys(("matmul", "bmm", "mm", "mv", "dot", "einsum", "inner"), _written),
    **dict.fromkeys(("baddbmm", "addmm", "tensordot", "outer", "vecdot"), _written),
    **dict.fromkeys(
        ("sum", "mean", "max", "min", "std", "var", "logsumexp", "any", "all", "prod"), _reduce
    ),
    **dict.fromkeys(("argmax", "argmin", "norm", "median"), _reduce),
    **dict.fromkeys(("view", "reshape", "flatten", "unflatten"), _view),
    **dict.fromkeys(("chunk", "split", "narrow", "index_select"), _cut),
    **{"T": _reversed, "mT": _last_two, "transpose": _transpose, "permute": _permute},
    **{"movedim": _movedim, "unsqueeze": _unsqueeze, "squeeze": _squeeze, "cat": _cat},
    **{"topk": _chosen, "sort": _first, "argsort": _first},
    **{"stack": _stack, "unbind": _unbind, "select": _select, "getitem": _getitem},
    **{"expand": _expand, "repeat": _repeat, "repeat_interleave": _repeat},
    **{"linear": _linear, "embedding": _embedding, "setitem": _first, "triu": _first},
}
