"""Which axes an argument may have, the likeliest first.

A candidate is a sequence of axis words over *variables*: ``batch``, ``heads`` and the like
stand for themselves, ``f_x`` is the unknown feature size of argument ``x``, ``c_units`` the
constructor's ``units``. :mod:`regard.check.roles.solve` finds out what the variables are.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from regard.check.roles.candidate import CONTENT, Axes
from regard.check.roles.cast import Part
from regard.check.roles.habits import GROUPS, guessed, leaned
from regard.check.roles.reading import Reading
from regard.check.roles.statements import Shape, shapes
from regard.check.roles.wording import Wording

__all__ = ["Axes", "Choice", "Layouts", "choices", "layouts"]

_LENGTHS = frozenset({"T", "T_enc", "T_dec"})
_GROUPED = re.compile(r"kv_heads|group|repeat_kv|share_heads|num_key_value", re.IGNORECASE)


@dataclass(frozen=True)
class Layouts:
    """Candidates of every argument, and the variables that they are written in."""

    parts: tuple[Part, ...]
    axes: Mapping[str, tuple[Axes, ...]]
    variables: Mapping[str, str] = field(default_factory=dict)  # -> the author's word


@dataclass(frozen=True)
class Choice:
    """One candidate for every argument."""

    axes: Mapping[str, Axes]
    cost: float


def layouts(reading: Reading, cast: tuple[Part, ...]) -> Layouts:
    """Propose axes for every argument."""
    stated = shapes(reading)
    axes: dict[str, tuple[Axes, ...]] = {}
    roles = {p.name: p.role for p in cast}
    is_self = not ("query" in roles.values() and {"key", "value"} & set(roles.values()))
    wording = Wording(reading, stated, is_self=is_self)
    cached = "past" in roles.values()
    for part in cast:
        found = list(wording.stated(part))
        if cached and part.role in ("key", "value", "self"):
            found = [replace(a, tokens=_as_new(a.tokens)) for a in found]
        firm = [a for a in found if a.said and a.cost == 0]
        if firm and part.role in ("key", "value") and _GROUPED.search(reading.code):
            grouped = tuple("kv_heads" if t == "heads" else t for t in firm[0].tokens)
            firm = [replace(firm[0], tokens=grouped)]
            if not GROUPS.search(reading.code):
                firm.append(replace(firm[0], tokens=found[0].tokens, cost=0.5))
        if firm:
            axes[part.name] = tuple(dict.fromkeys(firm[:3]))
            continue
        guesses = guessed(part, reading, is_self=is_self)
        if cached and part.role in ("key", "value", "self"):
            guesses = [replace(a, tokens=_as_new(a.tokens)) for a in guesses]
        found += guesses
        axes[part.name] = tuple(sorted(leaned(part, found, stated, reading), key=_cost))
    return Layouts(cast, _like_content(axes, roles, stated), wording.variables)


def _like_content(
    axes: Mapping[str, tuple[Axes, ...]], roles: Mapping[str, str], stated: Iterable[Shape]
) -> dict[str, tuple[Axes, ...]]:
    """Masks along the lengths that the content is said to have.

    A word for a length means one length: ``query_len`` is that of the keys where the content
    that is no query has it. A mask without words lies along the one length there is.
    """
    content = {n: a[0].tokens for n, a in axes.items() if roles[n] in CONTENT and a[0].said}
    words: dict[str, set[str]] = {}
    for shape in stated:
        tokens = content.get(shape.name, ())
        if shape.firm and len(tokens) == len(shape.words):
            for word, token in zip(shape.words, tokens, strict=True):
                words.setdefault(word, set()).add(token)
    whole = all(n in content for n, role in roles.items() if role in CONTENT)
    times = {t for tokens in content.values() for t in tokens if t in _LENGTHS}
    made = dict(axes)
    for name in (n for n, role in roles.items() if role in ("mask", "ids") and axes[n]):
        said = next((s.words for s in stated if s.firm and s.name == name), ())
        tokens = axes[name][0].tokens
        if axes[name][0].said and len(said) == len(tokens):
            own = [_only(words.get(w, set()), t) for w, t in zip(said, tokens, strict=True)]
            made[name] = (replace(axes[name][0], tokens=tuple(own)), *axes[name][1:])
        elif whole and len(times) == 1 and "T" not in times:
            (time,) = times
            made[name] = tuple(
                replace(a, tokens=tuple(time if t == "T" else t for t in a.tokens))
                for a in axes[name]
            )
    return made


def _only(found: set[str], token: str) -> str:
    """The one length that a word stands for, or the token as it is."""
    is_time = token in _LENGTHS and len(found) == 1 and found <= _LENGTHS
    return next(iter(found)) if is_time else token


def _as_new(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Keys beside cached ones are the new ones, as many as the queries, or made of them."""
    return tuple("T_dec" if t in ("T_enc", "T") else t for t in tokens)


def choices(layouts: Layouts, limit: int = 400) -> Iterator[Choice]:
    """Complete assignments, the likeliest first."""
    names = list(layouts.axes)
    # The product may be huge: keep fewer candidates the more arguments there are.
    keep = max(2, int(20000 ** (1 / max(1, len(names)))))
    pools = [layouts.axes[n][:keep] or (Axes((), 0.0),) for n in names]
    roles = {p.name: p.role for p in layouts.parts}
    every: list[tuple[float, int, dict[str, Axes]]] = []
    for combination in itertools.product(*pools):
        chosen = dict(zip(names, combination, strict=True))
        cost = _together(chosen, roles) + _mixed(chosen, roles)
        every.append((cost, len(every), chosen))
    every.sort(key=lambda e: e[:2])
    for cost, _, chosen in every[:limit]:
        yield Choice(chosen, cost)


def _cost(axes: Axes) -> float:
    return axes.cost


def _together(chosen: Mapping[str, Axes], roles: Mapping[str, str]) -> float:
    """Cost of the candidates; four axes in every argument are one oddity, not three."""
    content = sorted(a.cost for n, a in chosen.items() if roles[n] in CONTENT)
    rest = sum(a.cost for n, a in chosen.items() if roles[n] not in CONTENT)
    return rest + (content[-1] + 0.3 * sum(content[:-1]) if content else 0.0)


def _mixed(chosen: Mapping[str, Axes], roles: Mapping[str, str]) -> float:
    """How odd it is that these layouts stand side by side."""
    content = [a for n, a in chosen.items() if roles[n] in CONTENT and len(a.tokens) > 0]
    if not content:
        return 0.0
    cost = 0.0
    batched = {"batch" in "*".join(a.tokens) for a in content}
    if len(batched) > 1:
        cost += 4.0
    headed = {any("heads" in t for t in a.tokens) for a in content}
    if len(headed) > 1:
        cost += 3.0
    grouped = {
        any("kv_heads" in t for t in a.tokens)
        for n, a in chosen.items()
        if roles[n] in ("key", "value")
    }
    if len(grouped) > 1:
        cost += 3.0
    orders = {a.order for a in content} - {""}  # of one alternative where several are said
    if len(orders) > 1:
        cost += 1.5
    if len({len(a.tokens) for a in content if len(a.tokens) > 3}) > 1:
        cost += 2.0
    where = {a.tokens.index(t) for a in content for t in a.tokens if "heads" in t}
    if len(where) > 1:
        cost += 2.0
    for name, axes in chosen.items():
        if roles[name] in ("mask", "lengths", "weights") and "batch" in axes.tokens:
            cost += 0.0 if True in batched else 4.0
        if roles[name] == "value" and any(roles[n] == "key" for n in chosen):
            key = next(n for n in chosen if roles[n] == "key")
            same = [t for t in axes.tokens if not t.startswith("f_")]
            cost += 0.0 if same == [t for t in chosen[key].tokens if t[:2] != "f_"] else 2.0
    return cost
