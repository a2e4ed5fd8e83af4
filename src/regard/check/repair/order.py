"""Which candidates are tried first: suspect lines, families that a failure speaks of, small."""

import ast
from collections.abc import Iterable, Mapping, Sequence

from regard.check.repair.candidate import Candidate

__all__ = ["HINTS", "feeding", "ordered"]

# Families that usually mend what a rule reports; a rule's group where the rule itself has none.
HINTS: Mapping[str, tuple[str, ...]] = {
    "RG1": ("name", "axis", "transpose", "reshape", "layer-size", "missing-axis", "shape-of"),
    "RG105": ("missing-axis", "axis", "index"),
    "RG106": ("layout", "transpose", "axis"),
    "RG2": ("polarity", "mask-missing", "mask-late", "mask-source", "new-axis", "mask-form"),
    "RG207": ("mask-missing", "option", "mask-source", "mask-form", "new-axis"),
    "RG203": ("triangle", "comparison", "shift", "offset", "option", "shape-of"),
    "RG204": ("triangle", "comparison", "shift", "offset", "number", "pair"),
    "RG206": ("mask-late", "nesting", "mask-form"),
    "RG3": ("axis", "missing-axis", "default", "function", "nesting", "pair"),
    "RG304": ("name", "index", "transpose", "dropout", "order"),
    "RG305": ("function", "name", "own-function", "unused"),
    "RG4": ("reshape", "transpose", "repeat", "axis", "order", "pattern", "anew"),
    "RG403": ("root", "operator", "scale", "name", "nesting", "layer-size", "size", "shape-of"),
    "RG5": ("root", "operator", "scale", "function", "name", "nesting", "number", "layer-size"),
    "RG504": (
        "own-function",
        "function",
        "name",
        "operator",
        "offset",
        "sign",
        "number",
        "axis",
        "written-size",
        "pair",
    ),
    "RG503": ("name", "state", "order"),
    "RG6": ("fill", "row-maximum", "empty-row", "pair"),
    "RG7": ("gradient", "name", "own-function", "unused"),
    "RG8": ("reshape", "layout", "written-size", "repeat", "missing-axis", "axis", "transpose"),
    "RG803": ("dropout", "anew", "cache-key", "in-place", "truth", "index", "name", "state"),
}


def ordered(
    source: str,
    candidates: Sequence[Candidate],
    *,
    lines: Sequence[int] = (),
    feeding: Iterable[int] = (),
    ran: Iterable[int] = (),
    rules: Iterable[str] = (),
) -> list[tuple[float, Candidate]]:
    """Return candidates with their rank, the lowest first.

    Parameters
    ----------
    source : str
        The text that the candidates change.
    lines : sequence of int
        Suspect lines, the most suspect first.
    feeding : iterable of int
        Lines that make what suspect lines read.
    ran : iterable of int
        Lines that ran; a line that did not cannot be what the run showed.
    rules : iterable of str
        Codes of the failures.
    """
    hinted = {name for code in rules for name in (HINTS.get(code) or HINTS.get(code[:3], ()))}
    place = {line: index for index, line in reversed(list(enumerate(lines)))}
    executed, makers = set(ran), set(feeding)
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))

    def line_of(offset: int) -> int:
        low, high = 0, len(starts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if starts[middle] <= offset else (low, middle - 1)
        return low + 1

    ranked = []
    for each in candidates:
        where = [line_of(start) for start, _, _ in each.spans]
        rank = each.cost
        if lines:
            near = min(place.get(line, 99) for line in where)
            fed = any(line in makers for line in where)
            rank += 0.15 * min(near, 4) if near < 99 else 0.3 if fed else 0.7
        if executed and not any(line in executed for line in where):
            rank += 2.5
        if each.kind in hinted:
            rank -= 0.5
        ranked.append((rank, each))
    return sorted(ranked, key=lambda pair: pair[0])


def feeding(tree: ast.Module, lines: Iterable[int]) -> set[int]:
    r"""Lines that bind a name or an attribute which a suspect line reads.

    >>> feeding(ast.parse("a = 1\nb = 2\nc = a"), [3])
    {1}
    """
    suspects = set(lines)
    read = {
        _name(node)
        for node in ast.walk(tree)
        if getattr(node, "lineno", 0) in suspects
        and isinstance(getattr(node, "ctx", None), ast.Load)
    }
    return {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and _name(node) in read - {""}
        and node.lineno not in suspects
    }


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
