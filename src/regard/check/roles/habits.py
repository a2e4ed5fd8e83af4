"""Axes that an argument may have by its role: the field's habits, with their costs."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from regard.check.roles.candidate import CONTENT, TIMES, Axes
from regard.check.roles.cast import Part
from regard.check.roles.reading import Reading
from regard.check.roles.statements import Shape
from regard.check.roles.words import axis_of, parts, size_of

__all__ = ["GROUPS", "guessed", "leaned"]

# Query heads counted by key heads: fewer heads of keys than of queries are meant.
GROUPS = re.compile(
    r"kv_heads|repeat_kv|\) // k\w*\.(size|shape)|\] // k\w*\.shape", re.IGNORECASE
)


def guessed(  # noqa: PLR0911, PLR0912 - one a role
    part: Part, reading: Reading, *, is_self: bool
) -> list[Axes]:
    """Candidates by the role and the name of an argument alone."""
    f = f"f_{part.name}"
    match part.role:
        case "query":
            table = _ONE if part.one else _MANY
            if not part.one and "squeeze" not in reading.code:
                # An axis of one stretches to fit anything: it needs a reason.
                table = {k: c for k, c in table.items() if "1" not in k}
            if re.search(r"(ies|[a-rt-z]s)$", part.name) and not part.one:
                table = {k: c for k, c in table.items() if k not in ("d", "batch d")}
            return _ranked(table, f, "T" if is_self else "T_dec")
        case "key" | "value" | "second":
            table = dict(_MEMORY)
            if GROUPS.search(reading.code):
                table |= {"batch kv_heads T d": 0.9, "batch T kv_heads d": 1.5}
            if part.role == "second":
                first = -0.2 if set(parts(part.name)) & _STATES else 1.5
                table |= {"batch d": first, "layers batch d": first + 0.8}
            return _ranked(table, f, TIMES[part.role])
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
                for t, c in (
                    ("batch T", 0.0),
                    ("T", 0.8),
                    ("T batch", 0.9),
                    ("batch 1", 1.0),
                    ("batch", 1.2),
                )
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
# What a decoder starts from, beside what it attends to.
_STATES = {"last", "final", "init", "initial", "start", "summary", "pooled", "h0", "c0"}
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


def leaned(
    part: Part, found: list[Axes], stated: tuple[Shape, ...], reading: Reading
) -> Iterator[Axes]:
    """Shift the costs by what is said about the order of axes and by sizes read in the code."""
    if part.role not in (*CONTENT, "ids"):
        yield from found
        return
    order = _said_order(part, reading)
    alone = _ONE_SEQUENCE.search(reading.words) is not None
    plain = re.search(
        r"(MultiheadAttention|Transformer(\w+Layer)?)\((?![^\n]*batch_first=True)", reading.code
    )
    if (
        not order
        and plain
        and not re.search(r"transpose|permute|movedim|swapaxes", reading.code)
    ):
        found = [replace(a, cost=a.cost - 1.6) if a.order == "time first" else a for a in found]
    if order:
        found = [a for a in found if a.order == order] or found
    for axes in found:
        cost, said, tokens = axes.cost, axes.said, axes.tokens
        first = axes.order
        if order and first:
            agrees = order == first
            cost += -1.2 if agrees else 3.0
            said = "docstring" if agrees else said
        if "batch" not in tokens and alone:
            cost -= 1.0
        for shape in stated:
            if shape.name != part.name or shape.firm:
                continue
            if shape.words[0].startswith("@"):
                cost += _at(int(shape.words[0][1:]), shape.words[1], tokens)
            elif len(shape.words) != len(tokens):
                cost += 3.0  # the code unpacks another number of axes
            else:
                cost += sum(_at(i, word, tokens) for i, word in enumerate(shape.words))
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
    if axis == "batch" or word.lower() in ("height", "width"):
        return 0.0 if token == (axis or word.lower()) else 1.5
    if axis in ("time", "query", "key") and word.lower() not in ("n", "m"):
        return 0.0 if is_time else 1.0
    if axis == "heads":
        return 0.0 if "heads" in token else 1.0
    if axis == "feature" or (len(word) > 1 and size_of(word)[0].startswith("d_")):
        return 0.0 if token.startswith(("f_", "w_", "c_")) else 1.0
    return 0.0
