"""What a family of edits is, and how the edits of all families become candidates."""

import ast
import contextlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from regard.check.repair.candidate import Candidate, Span, patched
from regard.check.repair.program import Program

_UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)

__all__ = ["Change", "change", "families", "family", "generate"]


@dataclass(frozen=True)
class Change:
    """Spans that are replaced together, and what the change costs (see Candidate)."""

    spans: tuple[Span, ...]
    cost: float


Family = Callable[[Program], Iterable[Change | None]]
families: dict[str, list[Family]] = {}


def family(name: str) -> Callable[[Family], Family]:
    """Register a function under the name of a family, which may have several."""

    def register(function: Family) -> Family:
        families.setdefault(name, []).append(function)
        return function

    return register


def change(cost: float, *spans: Span | None) -> Change | None:
    """Make a change, or None where one of its texts is no expression."""
    if not spans or any(s is None for s in spans):
        return None
    return Change(tuple(s for s in spans if s is not None), cost)


def generate(program: Program, names: Iterable[str] | None = None) -> list[Candidate]:
    """Return every candidate of the families, each text once, cheapest first.

    One wrong idea is often written twice (queries and keys both turned on a wrong axis), so a
    change that fits at several places of a line or of the file is also made at all of them.
    """
    import regard.check.repair.families.every  # noqa: F401, PLC0415 - registers them all

    chosen = list(names) if names is not None else list(families)
    found: dict[str, Candidate] = {}
    for name in chosen:
        changes = [c for c in _safe(name, program) if c is not None]
        for each in [*changes, *_everywhere(program.source, changes)]:
            text = patched(program.source, each.spans)
            if text == program.source:
                continue
            known = found.get(text)
            if known is None or known.cost > each.cost:
                found[text] = Candidate(name, each.spans, each.cost)
    return sorted(found.values(), key=lambda c: c.cost)


def _safe(name: str, program: Program) -> Iterator[Change | None]:
    """A family that meets code it cannot read makes no more candidates; it stops nothing."""
    for function in families[name]:
        with contextlib.suppress(*_UNREADABLE):
            yield from function(program)


def _everywhere(source: str, changes: list[Change]) -> Iterator[Change]:
    alike: dict[tuple[str, str], list[Change]] = defaultdict(list)
    for each in changes:
        if len(each.spans) == 1:
            start, end, text = each.spans[0]
            alike[source[start:end], text].append(each)
    for group in alike.values():
        places = {c.spans[0][:2]: c for c in group}
        if not 2 <= len(places) <= 8:
            continue
        on_line: dict[int, list[Change]] = defaultdict(list)
        for (start, _), each in places.items():
            on_line[source.count("\n", 0, start)].append(each)
        for some in [*on_line.values(), list(places.values())]:
            spans = sorted(c.spans[0] for c in some)
            apart = all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
            if len(spans) > 1 and apart:
                yield Change(tuple(spans), max(c.cost for c in some) + 0.25 * len(spans))


def is_constant(node: ast.AST | None, *types: type) -> bool:
    """Whether a node is a literal of one of the types (a bool is no int)."""
    return isinstance(node, ast.Constant) and type(node.value) in types


def literal(node: ast.AST | None) -> int | float | None:
    """The number that a literal with or without a minus sign stands for."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        return None if value is None else -value
    written = node.value if isinstance(node, ast.Constant) else None
    if isinstance(written, int | float) and not isinstance(written, bool):
        return written
    return None


def turned(node: ast.AST | None) -> str | None:
    """The other truth value of a literal one, as text."""
    value = node.value if isinstance(node, ast.Constant) else None
    return str(not value) if isinstance(value, bool) else None
