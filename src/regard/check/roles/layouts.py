"""Which axes an argument may have, the likeliest first.

A candidate is a sequence of axis words over *variables*: ``batch``, ``heads`` and the like
stand for themselves, ``f_x`` is the unknown feature size of argument ``x``, ``c_units`` the
constructor's ``units``. :mod:`regard.check.roles.solve` finds out what the variables are.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from regard.check.roles.cast import Part
from regard.check.roles.reading import Reading
from regard.check.roles.statements import Shape, shapes
from regard.check.roles.words import axis_of, parts, size_of

__all__ = ["Axes", "Choice", "Layouts", "choices", "layouts"]

_TIMES = {
    **{"query": "T_dec", "key": "T_enc", "value": "T_enc", "self": "T", "step": "T_dec"},
    **{"second": "n_features", "past": "T_mem", "ids": "T", "scores": "T", "other": "T"},
    **{"weights": "T_enc"},
}
_CONTENT = ("query", "key", "value", "self", "step", "second", "past", "other")
_PER_EXAMPLE = re.compile(r"\b(per|for (each|every)|of (each|every)|an?) (example|sentence|batch)")


_GROUPED = re.compile(r"kv_heads|group|repeat_kv|share_heads|num_key_value", re.IGNORECASE)

_GROUPS = re.compile(r"kv_heads|repeat_kv|\) // k\w*\.(size|shape)|\] // k\w*\.shape", re.IGNORECASE)


@dataclass(frozen=True)
class Axes:
    """One candidate: axis words, how unlikely, and who says so ("" is a mere guess)."""

    tokens: tuple[str, ...]
    cost: float
    said: str = ""


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
    options = {p.name for p in reading.options}
    variables: dict[str, str] = {}
    axes: dict[str, tuple[Axes, ...]] = {}
    roles = {p.name: p.role for p in cast}
    is_self = not ("query" in roles.values() and {"key", "value"} & set(roles.values()))
    cached = "past" in roles.values()
    for part in cast:
        found = list(_stated(part, stated, reading, options, variables, is_self))
        if cached and part.role in ("key", "value"):
            found = [replace(a, tokens=_as_new(a.tokens)) for a in found]
        firm = [a for a in found if a.said and a.cost == 0]
        if firm and part.role in ("key", "value") and _GROUPED.search(reading.code):
            grouped = tuple("kv_heads" if t == "heads" else t for t in firm[0].tokens)
            firm = [replace(firm[0], tokens=grouped)]
            if not _GROUPS.search(reading.code):
                firm.append(replace(firm[0], tokens=found[0].tokens, cost=0.5))
        if firm:
            axes[part.name] = tuple(dict.fromkeys(firm[:3]))
            continue
        guesses = _guessed(part, reading, is_self)
        if cached and part.role in ("key", "value"):
            guesses = [replace(a, tokens=_as_new(a.tokens)) for a in guesses]
        found += guesses
        axes[part.name] = tuple(sorted(_leaned(part, found, stated, reading), key=_cost))
    return Layouts(cast, axes, variables)


def _as_new(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Keys beside cached ones are the new ones, as many as the queries."""
    return tuple("T_dec" if t == "T_enc" else t for t in tokens)


def choices(layouts: Layouts, limit: int = 400) -> Iterator[Choice]:
    """Complete assignments, the likeliest first."""
    names = list(layouts.axes)
    # The product may be huge: keep fewer candidates the more arguments there are.
    keep = max(2, int(20000 ** (1 / max(1, len(names)))))
    pools = [layouts.axes[n][:keep] or (Axes((), 0.0),) for n in names]
    roles = {p.name: p.role for p in layouts.parts}
    every = []
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
    content = sorted(a.cost for n, a in chosen.items() if roles[n] in _CONTENT)
    rest = sum(a.cost for n, a in chosen.items() if roles[n] not in _CONTENT)
    return rest + (content[-1] + 0.3 * sum(content[:-1]) if content else 0.0)


def _mixed(chosen: Mapping[str, Axes], roles: Mapping[str, str]) -> float:
    """How odd it is that these layouts stand side by side."""
    content = [a for n, a in chosen.items() if roles[n] in _CONTENT and len(a.tokens) > 0]
    if not content:
        return 0.0
    cost = 0.0
    batched = {"batch" in "*".join(a.tokens) for a in content}
    if len(batched) > 1:
        cost += 4.0
    headed = {any("heads" in t for t in a.tokens) for a in content}
    if len(headed) > 1:
        cost += 3.0
    grouped = {any("kv_heads" in t for t in a.tokens) for n, a in chosen.items() if roles[n] in ("key", "value")}
    if len(grouped) > 1:
        cost += 3.0
    orders = {_order(a.tokens) for a in content if not a.said} - {""}
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


def _order(tokens: tuple[str, ...]) -> str:
    if "batch" not in tokens or len(tokens) < 3:
        return ""
    return "batch first" if tokens[0] == "batch" else "time first"


def _stated(
    part: Part,
    stated: tuple[Shape, ...],
    reading: Reading,
    options: set[str],
    variables: dict[str, str],
    is_self: bool,
) -> Iterator[Axes]:
    for shape in stated:
        mine = shape.name == part.name
        if not mine and (shape.name or part.role not in _CONTENT):
            continue
        if shape.words[0].startswith("@"):
            continue
        words = shape.words
        if mine and part.role == "mask" and "batch" not in words and len(words) < 3:
            said = re.search(rf"\b{part.name}\b[^.;]*", reading.words)
            if said and _PER_EXAMPLE.search(said.group()):
                words = ("batch", *words)
        tokens = _tokens(part, words, options, variables, is_self)
        if tokens is not None:
            yield Axes(tokens, 0.0 if shape.firm else 0.05, shape.where if shape.firm else "")


def _tokens(
    part: Part,
    words: tuple[str, ...],
    options: set[str],
    variables: dict[str, str],
    is_self: bool,
) -> tuple[str, ...] | None:
    """Turn the author's axis words into variables; None where they make no sense."""
    found = []
    for index, word in enumerate(words):
        token = _token(part, word, index, words, options, variables, is_self)
        if token is None:
            return None
        found.append(token)
    doubled = {t for t in found if found.count(t) > 1} - {"1", "T", "T_enc", "T_dec", "T_mem"}
    return None if doubled else tuple(found)


def _token(
    part: Part,
    word: str,
    index: int,
    words: tuple[str, ...],
    options: set[str],
    variables: dict[str, str],
    is_self: bool,
) -> str | None:
    plain = word.strip().replace("-", "_")
    if re.fullmatch(r"\d+", plain):
        return plain
    if re.search(r"[*+/]", plain):
        return _expression(part, plain, index, words, options, variables, is_self)
    plain = re.sub(r"\s+", "_", plain)
    lower = plain.lower()
    if lower in ("h", "height") and "w" in [w.lower()[:1] for w in words[index + 1 :]]:
        return "height"
    if lower in ("w", "width") and index and words[index - 1].lower()[:1] == "h":
        return "width"
    if plain in options or lower in options:
        return f"c_{plain if plain in options else lower}"
    last = index == len(words) - 1
    axis = axis_of(plain)
    if lower in ("n", "s", "l") and index == 0 and len(words) == 3:
        others = {axis_of(w) for w in words[1:]}
        axis = "batch" if lower == "n" and "batch" not in others else axis
    if lower == "h":
        axis = "feature" if last else "heads"
    if lower in ("d", "e", "c") or (last and axis in (None, "time") and lower == "n"):
        axis = "feature"
    if axis is None:
        axis = "feature" if last or index == 1 == len(words) - 2 else None
    if axis is None:
        return None
    if axis == "feature":
        name = f"w_{re.sub(r'[^0-9A-Za-z_]', '_', plain)}"
        variables[name] = plain
        return name
    if axis in ("query", "key", "time"):
        return _time(part, axis, lower, is_self)
    return str(axis)


def _time(part: Part, axis: str, word: str, is_self: bool) -> str:
    if is_self and part.role != "mask":
        return "T_enc" if word == "t_enc" else "T"
    if part.role == "mask":
        return "T" if is_self else {"query": "T_dec"}.get(axis, "T_enc")
    return _TIMES.get(part.role, "T")


def _expression(
    part: Part,
    word: str,
    index: int,
    words: tuple[str, ...],
    options: set[str],
    variables: dict[str, str],
    is_self: bool,
) -> str | None:
    pieces = re.split(r"\s*([*+/]+)\s*", word.replace("(", "").replace(")", ""))
    done = []
    for i, piece in enumerate(pieces):
        if i % 2:
            done.append(piece)
            continue
        token = _token(part, piece, index, words, options, variables, is_self)
        if re.fullmatch(r"(n_?|num_?)?(dirs|directions)", piece.strip().replace(" ", "_")):
            token = "dirs"
        if token is None:
            return None
        done.append(token)
    text = "".join(done)
    return re.sub(r"^layers\*2$|^2\*layers$", "layers*dirs", text)


def _guessed(part: Part, reading: Reading, is_self: bool) -> list[Axes]:
    f = f"f_{part.name}"
    match part.role:
        case "query":
            table = _ONE if part.one else _MANY
            if re.search(r"(ies|[a-rt-z]s)$", part.name) and not part.one:
                table = {k: c for k, c in table.items() if k not in ("d", "batch d", "batch 1 d")}
            return _ranked(table, f, "T" if is_self else "T_dec")
        case "key" | "value" | "second":
            return _ranked(_MEMORY, f, _TIMES[part.role])
        case "past":
            return _ranked(_MEMORY, f, "T_mem")
        case "step":
            table = {"batch d": 0.0, "batch T d": 0.4, "T batch d": 1.0, "batch 1 d": 1.2}
            if not part.one:
                table = {"batch T d": 0.0, "batch d": 0.8, "T batch d": 0.8, "batch 1 d": 2.0}
            return _ranked({**table, "1 batch d": 2.0, "d": 2.5}, f, "T_dec")
        case "self" | "other":
            table = dict(_SELF)
            if "Conv2d" in reading.code:
                table["batch d height width"] = -0.5
            return _ranked(table, f, "T")
        case "scores":
            return [
                Axes(tuple(t.split()), c)
                for t, c in (("batch heads T T", 0.0), ("batch T T", 0.3), ("T T", 0.6))
            ]
        case "ids":
            return [
                Axes(tuple(t.split()), c)
                for t, c in (("batch T", 0.0), ("T", 0.8), ("T batch", 0.9), ("batch 1", 1.0), ("batch", 1.2))
            ]
        case "mask":
            return _mask_axes(part, is_self)
        case "lengths":
            return [Axes(("batch",), 0.0), Axes((), 3.0)]
        case "weights":
            return [
                Axes(("batch", "T_enc"), 0.0),
                Axes(("batch", "1", "T_enc"), 0.6),
                Axes(("T_enc", "batch"), 1.2),
            ]
        case "bias":
            time = ("T", "T") if is_self else ("T_dec", "T_enc")
            return [
                Axes(("1", "1", *time), 0.0),
                Axes(time, 0.2),
                Axes(("batch", *time), 0.6),
                Axes(("batch", "1", "1", time[1]), 0.8),
                Axes(("batch", "heads", *time), 0.9),
                Axes(("heads", *time), 0.9),
            ]
        case "array":
            return [Axes((f"{f}_0", f"{f}_1"), 0.0)]
        case "vector":
            return [Axes((f"{f}_0",), 0.0), Axes((f"{f}_0", "1"), 0.7), Axes((), 2.0)]
    return [Axes((), 0.0)]


_MANY = {
    **{"batch T d": 0.0, "batch heads T d": 1.0, "T d": 1.2, "T batch d": 1.4},
    **{"batch T heads d": 1.6, "batch d": 1.6, "heads T d": 2.0, "batch 1 d": 2.2},
    **{"1 batch d": 2.4, "d": 2.6, "batch d T": 2.8, "batch 1 T d": 2.9, "layers batch d": 2.6},
}
_ONE = {
    **{"batch d": 0.0, "batch T d": 0.8, "1 batch d": 1.0, "batch 1 d": 1.1, "d": 1.3},
    **{"layers batch d": 1.6, "T batch d": 1.8, "batch heads T d": 2.0, "T d": 2.1},
    **{"batch T heads d": 2.4, "heads T d": 2.6},
}
_MEMORY = {
    **{"batch T d": 0.0, "batch heads T d": 1.0, "T batch d": 1.1, "T d": 1.2},
    **{"batch T heads d": 1.6, "heads T d": 2.0, "batch d T": 2.8, "batch kv_heads T d": 2.9},
    **{"batch T kv_heads d": 3.2, "batch 1 T d": 2.9},
}
_SELF = {
    **{"batch T d": 0.0, "T d": 0.9, "T batch d": 1.1, "batch heads T d": 1.6},
    **{"batch d height width": 1.9, "batch d T": 2.4, "batch d": 2.6, "T": 3.0},
}


def _ranked(table: Mapping[str, float], feature: str, time: str) -> list[Axes]:
    return [
        Axes(
            tuple({"d": feature, "T": time}.get(t, t) for t in text.split()),
            max(0.0, cost) + 0.1,
        )
        for text, cost in sorted(table.items(), key=lambda e: e[1])
    ]


def _mask_axes(part: Part, is_self: bool) -> list[Axes]:
    key, query = ("T", "T") if is_self else ("T_enc", "T_dec")
    pieces = set(parts(part.name))
    on_queries = bool(pieces & {"tgt", "trg", "target", "dec", "decoder", "query", "q", "x"})
    square = bool(pieces & {"causal", "look", "ahead", "attn", "attention", "square", "tri"})
    last = query if on_queries and not is_self and "cross" not in pieces else key
    if part.name == "attention_mask":  # (batch, 1, 1, keys) in the libraries that say so
        square = False
    shift = -1.0 if square and not pieces & {"pad", "padding", "key"} else 0.0
    table = [
        (("batch", last), 0.0),
        (("batch", "1", last), 0.3),
        (("batch", "1", "1", last), 0.4),
        (("batch", query, key), 0.9 + shift / 2),
        (("batch", "1", query, key), 1.0 + shift / 2),
        ((query, key), 1.1 + shift),
        (("1", query, key), 1.5 + shift),
        (("1", "1", query, key), 1.4 + shift),
        ((last, "batch"), 1.6),
        ((last,), 1.4),
    ]
    return [Axes(t, max(0.0, c) + 0.1) for t, c in table]


_TIME_FIRST = re.compile(
    r"time[- ]?(first|major)|(seq\w*|length|steps?)[- ]first|batch[- ]second", re.IGNORECASE
)
_BATCH_FIRST = re.compile(r"batch[- ]?(first|major)", re.IGNORECASE)
_CHANNELS_FIRST = re.compile(r"channels?[- ]first", re.IGNORECASE)
_RESULTS = re.compile(r"\b(returns?|results?|outputs?|leave)\b", re.IGNORECASE)
_ONE_SEQUENCE = re.compile(
    r"\b(one|single|a) (sequence|sentence|example|decoder state|query vector)\b|unbatched",
    re.IGNORECASE,
)


def _leaned(
    part: Part, found: list[Axes], stated: tuple[Shape, ...], reading: Reading
) -> Iterator[Axes]:
    """Shift the costs by what is said about the order of axes and by sizes read in the code."""
    if part.role not in (*_CONTENT, "ids"):
        yield from found
        return
    order = _said_order(part, reading)
    alone = _ONE_SEQUENCE.search(reading.words) is not None
    plain = re.search(r"MultiheadAttention\((?![^\n]*batch_first=True)", reading.code)
    if not order and plain and not re.search(r"transpose|permute|movedim|swapaxes", reading.code):
        found = [
            replace(a, cost=a.cost - 1.6) if _order(a.tokens) == "time first" else a for a in found
        ]
    if order:
        found = [a for a in found if _order(a.tokens) == order or a.tokens == ("T", "batch")] or found
    for axes in found:
        cost, said, tokens = axes.cost, axes.said, axes.tokens
        first = _order(tokens)
        if tokens == ("T", "batch"):
            first = "time first"
        if order and first:
            agrees = order == first
            cost += -1.2 if agrees else 3.0
            said = "docstring" if agrees else said
        if "batch" not in tokens and alone:
            cost -= 1.0
        for shape in stated:
            if shape.name == part.name and shape.words[0].startswith("@"):
                cost += _at(int(shape.words[0][1:]), shape.words[1], tokens)
        yield Axes(tokens, cost, said)


def _said_order(part: Part, reading: Reading) -> str:
    for sentence in re.split(r"[;\n]|\.\s", reading.words):
        time_first = _TIME_FIRST.search(sentence)
        order = "time first" if time_first else ""
        if not order and _BATCH_FIRST.search(sentence):
            order = "batch first"
        if not order:
            continue
        words = set(re.findall(r"\w+", sentence.lower()))
        about = [p.name for p in reading.parameters if _same_word(p.name, words)]
        if part.name in about:
            return order
        if not about and (not _RESULTS.search(sentence) or "input" in sentence.lower()):
            return order
    return ""


def _same_word(name: str, words: set[str]) -> bool:
    forms = {name.lower(), name.lower().removesuffix("s"), f"{name.lower()}s"}
    if name.lower().endswith("ies"):
        forms.add(name.lower()[:-3] + "y")
    return bool(forms & words)


def _at(index: int, word: str, tokens: tuple[str, ...]) -> float:
    """Cost of an axis that the code calls by a word: ``n_steps = x.size(1)``."""
    if not -len(tokens) <= index < len(tokens):
        return 2.0
    axis, token = axis_of(word), tokens[index]
    is_time = token in ("T", "T_enc", "T_dec", "T_mem", "n_features")
    if axis == "batch":
        return 0.0 if token == "batch" else 1.5
    if axis in ("time", "query", "key") and word.lower() not in ("n", "m"):
        return 0.0 if is_time else 1.0
    if axis == "heads":
        return 0.0 if "heads" in token else 1.0
    if axis == "feature" or (len(word) > 1 and size_of(word)[0].startswith("d_")):
        return 0.0 if token.startswith(("f_", "w_", "c_")) else 1.0
    return 0.0
