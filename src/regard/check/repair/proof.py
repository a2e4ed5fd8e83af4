"""What makes a survivor a proven fix: it keeps what the code offers, and has no rival."""

import ast
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.check.finding import Fix, Proof
from regard.check.relations.base import Verdict, near
from regard.check.repair.candidate import Span
from regard.check.repair.habits import usual

if TYPE_CHECKING:
    from regard.check.repair.search import Survivor

__all__ = ["classes", "fixes", "keeps", "plainness"]

_MOST_CHOICES = 3
_DRAWS = frozenset(
    (
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "bernoulli",
        "multinomial",
        "uniform",
        "normal",
    )
)


def keeps(source: str, text: str) -> bool:
    """Whether an edited text parses and still offers and uses what the original does.

    Functions keep their signatures. A parameter, a layer or a call of dropout that the
    original uses is still used: a repair mends a feature and never deletes it. A draw that
    stays is not made a constant by what stands around it.
    """
    before, after = _offers(source), _offers(text)
    if after is None or before is None:
        return False
    if before[0] != after[0] or not before[1] <= after[1]:
        return False
    if _strands(source, text):
        return False
    around = _draws(source)
    return not around or not _is_muffled(around, _draws(text))


def _strands(source: str, text: str) -> bool:
    """Whether a name that was read is read no more, for another that was read already.

    What the code computes and uses would be computed for nothing. A name that had been left
    aside, as the keys that were meant, takes the other's place rightly.
    """
    before, after = _reads(source), _reads(text)
    lost = [name for name in before if name not in after]
    won = [name for name in after if name not in before]
    return bool(lost) and not won


@functools.lru_cache(maxsize=64)
def _reads(source: str) -> frozenset[str]:
    """Names that functions assign and read, each after its function."""
    found = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        # A place of an array that is written to does not read the array.
        filled = {
            id(n.value)
            for n in ast.walk(function)
            if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)
        }
        # Of what another is like, the shape alone is read.
        filled |= {
            id(a)
            for n in ast.walk(function)
            if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("_like")
            for a in n.args
        }
        names = [
            n for n in ast.walk(function) if isinstance(n, ast.Name) and id(n) not in filled
        ]
        made = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        found |= {f"{function.name}:{name}" for name in made & read}
    return frozenset(found)


def _is_muffled(before: frozenset[tuple[str, str]], after: frozenset[tuple[str, str]]) -> bool:
    """Whether a draw is what it was, in a statement that changed and asks nothing new."""
    drawn = {call for call, _ in before}
    return any(
        call in drawn and (call, statement) not in before and "training" not in statement
        for call, statement in after
    )


@functools.lru_cache(maxsize=64)
def _draws(source: str) -> frozenset[tuple[str, str]]:
    """Return calls that draw, outside of constructors, each with its statement."""
    found = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if function.name == "__init__":
            continue
        for statement in ast.walk(function):
            if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Return | ast.Expr):
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and _is_draw(node.func):
                    found.add((ast.unparse(node), ast.unparse(statement)))
    return frozenset(found)


def _is_draw(func: ast.expr) -> bool:
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name in _DRAWS


@functools.lru_cache(maxsize=64)
def _offers(source: str) -> tuple[tuple[str, ...], frozenset[str]] | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    signatures, used = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)]
            signatures.append(f"{node.name}({', '.join(names)})")
            inside = {
                n.id
                for n in ast.walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
            }
            used |= {f"{node.name}:{name}" for name in names if name in inside}
        elif isinstance(node, ast.ClassDef):
            signatures.append(node.name)
        elif isinstance(node, ast.Call):
            func = node.func
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if "drop" in name.lower():
                used.add(name)
        elif isinstance(node, ast.keyword) and node.arg and "drop" in node.arg:
            used.add(node.arg)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            if own and "drop" in node.attr.lower():
                used.add(f"self.{node.attr}")
    return tuple(signatures), frozenset(used)


def classes(outputs: Sequence[Sequence[np.ndarray]]) -> list[int]:
    """Number the behaviours: results that agree everywhere have one number.

    >>> a, b = np.zeros(3), np.ones(3)
    >>> classes([[a], [b], [a]])
    [0, 1, 0]
    """
    examples: list[Sequence[np.ndarray]] = []
    numbers = []
    for mine in outputs:
        for number, theirs in enumerate(examples):
            if len(mine) == len(theirs) and all(
                near(a, b, 1e-5) for a, b in zip(mine, theirs, strict=True)
            ):
                numbers.append(number)
                break
        else:
            numbers.append(len(examples))
            examples.append(mine)
    return numbers


def fixes(
    source: str,
    found: Sequence["Survivor"],
    failed: Sequence[Verdict],
    before: Sequence[np.ndarray] | None,
) -> tuple[Fix, ...]:
    """Turn survivors into fixes: proven where they all behave alike, choices where not.

    ``before`` is what the text as it is computes, None where it crashes.
    """
    best: dict[int, Survivor] = {}
    for each in sorted(found, key=_plainness):
        best.setdefault(each.klass, each)
    chosen = usual(sorted(best.values(), key=_plainness), before)
    if not chosen:
        return ()
    if len(chosen) == 1:
        only = chosen[0]
        return (Fix("proven", only.edits, described(source, only), proof=_proof(only, failed)),)
    made = []
    for each in chosen[:_MOST_CHOICES]:
        others = [described(source, o) for o in chosen if o is not each][: _MOST_CHOICES - 1]
        condition = f"this is what you mean, and not: {'; or: '.join(others)}"
        if len(chosen) > _MOST_CHOICES:
            condition += f" (of {len(chosen)} repairs that differ)"
        made.append(
            Fix(
                "proven-if",
                each.edits,
                described(source, each),
                condition,
                _proof(each, failed),
            )
        )
    return tuple(made)


def plainness(rank: float, spans: Sequence[Span]) -> float:
    """How plain an edit is to read: early in order, short, at one place. Less is plainer."""
    grown = sum(len(text) - (end - start) for start, end, text in spans)
    touched = sum(len(text) for _, _, text in spans)
    return rank + 0.01 * max(grown, 0) + 0.003 * touched + 0.2 * (len(spans) - 1)


def _plainness(each: "Survivor") -> tuple[float, int]:
    return plainness(each.rank, each.spans), each.lines[0]


def described(source: str, each: "Survivor") -> str:
    """Say an edit in words, by what stands there before and after."""
    parts = []
    for start, end, text in sorted(each.spans):
        old = source[start:end]
        line = source.count("\n", 0, start) + 1
        parts.append(f"line {line}: {_quoted(old)} becomes {_quoted(text)}")
    return "; ".join(parts[:2])


def _quoted(text: str) -> str:
    flat = " ".join(text.split())
    return f"`{flat}`" if flat else "nothing"


def _proof(each: "Survivor", failed: Sequence[Verdict]) -> Proof:
    names = [n for n in each.results.names if n]
    broken = {v.relation for v in failed}
    held = len([n for n in names if n not in broken])
    return Proof(before=held, after=len(names), of=len(names), sizes=3)
