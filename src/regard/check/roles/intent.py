"""What the author means to compute: score, causality, window, positions, convention.

Each answer says whether it is *stated* (in words, in a clear name, or by code that can mean
nothing else) or only likely. A wrong computation beside a clear statement is a finding; a
wrong computation beside a likely guess is at most a note.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from regard.check.roles.bent import activated
from regard.check.roles.cast import Part
from regard.check.roles.reading import Reading, is_option
from regard.check.roles.unusual import SORTED, is_other, is_patterned

__all__ = ["Intent", "intent"]

_CAUSAL = re.compile(
    r"\bcausal|autoregressive|look[- _]?ahead|\bfuture\b|masked[- _]self[- _]?attention|"
    r"decoder[- _]self[- _]?attention|left[- ]to[- ]right|before it\b|subsequent|"
    r"later (positions|tokens|keys|steps)|previous positions",
    re.IGNORECASE,
)
_NOT_CAUSAL = re.compile(
    r"\b(not|non|un)[- ]?causal|\b(without|no) (a |any )?causal|bidirectional attention",
    re.IGNORECASE,
)
_CAUSAL_NAMES = re.compile(
    r"^(causal|is_causal|causal_mask|future|future_mask|subsequent|subsequent_mask|ahead|later|"
    r"look_ahead|look_ahead_mask|lookahead|autoregressive|no_peek)$|^causal|causal_?mask",
    re.IGNORECASE,
)
_CACHED = re.compile(
    r"(?i)\bcache|\bpast\b|so far|newest|new (ones|tokens|queries)|come last|previous keys"
)
_SQRT = re.compile(r"sqrt|\*\* ?\(?-?0\.5|\*\* ?\(?-?1 ?/ ?2|\*\* ?\(?1 ?/ ?2")
_FUSED = re.compile(r"scaled_dot_product_attention|MultiheadAttention|multi_head_attention")
_RECURRENT = re.compile(r"\b(GRU|LSTM|RNN)(Cell)?\b")
_SELF = re.compile(r"self[-_ ]?attention|selfattention|intra[- ]attention", re.IGNORECASE)


@dataclass(frozen=True)
class Intent:
    """Fields of a contract, and how each of them was found."""

    fields: Mapping[str, object] = field(default_factory=dict)
    stated: Mapping[str, str] = field(default_factory=dict)  # field -> how
    likely: Mapping[str, str] = field(default_factory=dict)
    is_self: bool = False
    patterned: bool = False  # a pattern of its own stands beside causality

    @property
    def causal(self) -> str | None:
        """The corner of the causal pattern, if one is meant."""
        value = self.fields.get("causal")
        return value if isinstance(value, str) else None


def intent(reading: Reading, cast: tuple[Part, ...]) -> Intent:
    """Read the author's intent from words, names and code."""
    fields: dict[str, object] = {}
    stated: dict[str, str] = {}
    likely: dict[str, str] = {}
    every = (
        _score(reading, cast),
        _causal(reading, cast),
        _window(reading, cast),
        _positions(reading, cast),
        _convention(reading),
        _layer(reading),
        _manner(reading),
    )
    for found in every:
        for name, value, how, is_stated in found:
            if value is None or name in fields:
                continue
            fields[name] = value
            (stated if is_stated else likely)[name] = how
    is_self = bool(_SELF.search(reading.words) or _SELF.search(reading.names))
    patterned = bool(fields.get("causal")) and is_patterned(reading) and "window" not in stated
    if "causal" in stated and patterned:
        likely["causal"] = stated.pop("causal")
    return Intent(fields, stated, likely, is_self, patterned)


Found = Iterator[tuple[str, object, str, bool]]


def _is_branched(reading: Reading) -> bool:
    """Whether the code chooses between scores by a text that nothing here settles."""
    chosen = re.findall(
        r"\b(?:self\.)?\w*(?:method|type|mode|kind|score|attn|attention)\w* == '(\w+)'",
        reading.code,
    )
    return len({c.lower() for c in chosen} & set(_METHODS)) > 1


def _score(reading: Reading, cast: tuple[Part, ...]) -> Found:
    if is_other(reading):
        return
    sure = not _is_branched(reading)
    for name, value, how, is_stated in _softmax_score(reading, cast):
        yield name, value, how, is_stated and (sure or how == _SELECTED)


def _softmax_score(  # noqa: PLR0911, PLR0912 - one a score
    reading: Reading, cast: tuple[Part, ...]
) -> Found:
    code, words = reading.code, f"{reading.words}\n{reading.names}"
    roles = {p.role for p in cast}
    if "scores" in roles:
        yield "score", "none", "the argument is the scores", True
        return
    method = _method(reading)
    if method:
        yield "score", method, _SELECTED, True
        return
    learned = re.search(
        r"self\.(gain|scale|temperature|tau|logit_scale|beta)\w* = nn\.Parameter\("
        r"torch\.(ones|zeros|tensor|full)\((1|\[1\]|\(\)|[\d.]+|\[\])[,)]",
        code,
    )
    if learned or re.search(r"learned (gain|scale|temperature)", words):
        yield "scale", "learned", "a parameter multiplies the scores", True
    for part in cast:
        if part.role == "number" and part.name == "scale":
            yield "scale", None, "", False
    if re.search(r"scaled[-_ ]?dot", words, re.IGNORECASE) or _FUSED.search(code):
        yield "score", "scaled_dot", "its name or the function it calls", True
        return
    if re.search(r"(?i)cosine|normalize\(|\.norm\(|cdist|leaky_?relu", code):
        return
    if "weights" in roles and "Conv1d" in code:
        yield "score", "location", "a convolution over earlier weights", True
        return
    kind, activation = activated(reading)
    if kind:
        if activation != "tanh":
            yield "activation", activation, "the code", True
        yield (
            "score",
            kind,
            f"the code: {activation} of a {'sum' if kind == 'additive' else 'pair'}",
            True,
        )
        return
    if re.search(r"\w \* (\w+\.)?tanh\(", code):
        return  # scores are bounded, whatever they are
    if _SQRT.search(code):
        plain = "tanh(" not in code  # of bent products only the author knows
        yield "score", "scaled_dot", "the code takes a square root of a size", plain
    elif re.search(r"\bgeneral\b", words, re.IGNORECASE):
        yield "score", "general", "its words", True
    elif re.search(r"\b(dot|inner product)\b", words, re.IGNORECASE):
        yield "score", "dot", "its words", True
    elif _bilinear(reading):
        yield "score", "general", "one side is projected", False
    elif re.search(r"matmul|bmm|einsum|@|\.dot\(|tensordot", code):
        yield "score", "dot", "a product without a scale", False


_METHODS = {
    **{"dot": "dot", "general": "general", "concat": "concat", "additive": "additive"},
    **{"mlp": "additive", "bahdanau": "additive", "scaled_dot": "scaled_dot"},
    **{"scaled": "scaled_dot", "scaled_dot_product": "scaled_dot", "luong": "general"},
}


def _method(reading: Reading) -> str:
    """Score that an option of the constructor selects: its default, or its first value."""
    for option in (*reading.options, *reading.parameters):
        if not re.search("method|type|mode|kind|score|attention", option.name):
            continue
        if isinstance(option.default, str) and option.default.lower() in _METHODS:
            return _METHODS[option.default.lower()]
        if not option.has_default:
            own = rf"(?:self\.)?{re.escape(option.name)}"
            found = re.search(
                rf"\b{own}\s*(?:==|!=|(?:not )?in)\s*[\[(]?\s*'(\w+)'", reading.code
            )
            if found and found.group(1).lower() in _METHODS:
                return _METHODS[found.group(1).lower()]
    given = re.search(r"super\(\)\.__init__\((?:\w+=)?'(\w+)'", reading.code)
    if given and given.group(1).lower() in _METHODS and _is_branched(reading):
        return _METHODS[given.group(1).lower()]
    return ""


def _bilinear(reading: Reading) -> bool:
    """Whether exactly one of the two sides of a product is projected."""
    owner = reading.owner
    if owner is None:
        return any(p.name in ("W", "W_a", "A") for p in reading.parameters)
    linears = re.findall(r"self\.(\w+) = nn\.(?:Linear|Parameter)\(", reading.code)
    return len(linears) in (1, 2)


def _causal(reading: Reading, cast: tuple[Part, ...]) -> Found:
    if _RECURRENT.search(reading.code):
        return
    option = [p for p in (*reading.parameters, *reading.options) if re.search("causal", p.name)]
    if option and not any(p.default is True for p in option):
        return
    cached = bool(_CACHED.search(reading.words)) or any(p.role == "past" for p in cast)
    corner = "bottom_right" if cached else "top_left"
    words = _without_masks(reading.words, cast)
    said = f"{words}\n{re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', reading.names)}"
    square = [p for p in cast if p.role == "mask" and re.search("causal|ahead|subseq", p.name)]
    if square or _NOT_CAUSAL.search(said):
        return
    roles = {p.role for p in cast}
    if _CAUSAL.search(reading.names if "scores" in roles else said):
        # A step that comes after all that is cached needs no mask.
        masks = re.search(r"\btri[ul]|masked_fill|where\(|inf\b|1e\d|mask", reading.code)
        if "past" not in roles or masks is not None:
            yield "causal", corner, "its words", True
        return
    names = sorted(n for n in reading.identifiers if _CAUSAL_NAMES.search(n))
    if re.search(r"is_causal=True", reading.code):
        yield "causal", corner, "is_causal=True", True
    elif re.search(r"\btri[ul]\b|\btri[ul]_indices\b|\.tri[ul]\(", reading.code):
        how = f"the code: a triangle named {names[0]!r}" if names else "the code: a triangle"
        yield "causal", corner, how, False


def _without_masks(words: str, cast: tuple[Part, ...]) -> str:
    """What is said, save of masks: a pattern that the caller hands over is not the code's."""
    masks = "|".join(re.escape(p.name) for p in cast if p.role in ("mask", "bias"))
    if not masks:
        return words
    name = rf"(:param[ \t]+|[-*][ \t]+)?[`*]*({masks})[`*]*"
    about = rf"^[ \t]*{name}[ \t]*(\([^)\n]*\))?[ \t]*:.*$"
    return re.sub(about, "", words, flags=re.MULTILINE)


def _window(reading: Reading, cast: tuple[Part, ...]) -> Found:
    given = (*reading.parameters, *reading.options)
    named = [p for p in given if re.search("window|span", p.name) and not p.star]
    if not named:
        return
    name, default = rf"`*{named[0].name}`*", named[0].default
    exact = re.search(
        rf"itself and the {name} - 1|last {name} (positions|keys|tokens)|"
        rf"(sees?|reads?|attends? to) (the last )?{name} (positions|keys|tokens)",
        reading.words,
    )
    if exact and (default is None or (isinstance(default, int) and default > 0)):
        yield "window", default or 3, "its words", True


def _positions(reading: Reading, cast: tuple[Part, ...]) -> Found:
    code, words = reading.code, f"{reading.words}\n{reading.names}"
    names = "\n".join(sorted(reading.identifiers))
    if _RECURRENT.search(code):
        steps = any(p.role == "step" for p in cast) or {"query", "key"} <= {
            p.role for p in cast
        }
        # Without steps the network may lie before the keys.
        yield "positions", "recurrent" if steps else True, "a recurrent network", steps
    elif re.search(
        r"alibi|linear bias|LinearBias|slopes?\b", f"{words} {names}", re.IGNORECASE
    ):
        sure = not is_option(reading, r"alibi|linear_?bias|slopes?\b")
        yield "positions", "alibi", "its words or names", sure
    elif re.search(r"rotary|\brope\b|rotate", f"{words} {names}", re.IGNORECASE) or (
        re.search(r"\bcos\(", code) and re.search(r"\bsin\(", code) and "cat" in code
    ):
        how = "its words, or sines and cosines of features"
        turned = re.search(r"(?i)rotary|\brope\b|rotate", words) or re.search(_TURNS, code)
        # A rotation that only has a name here is another module's, which may leave it out.
        yield "positions", "rotary", how, bool(turned) and not is_option(reading, "rotary|rope")
    elif any(p.role == "weights" for p in cast) and "Conv1d" in code:
        yield "positions", "location", "a convolution over earlier weights", True
    elif re.search(r"(?s)\b(\w+) = [^\n]*arange\(.*exp\([^\n]*\b\1 - \w+\) \*\* 2", code):
        yield "positions", "location", "a window around a place, the code", False
    elif re.search(r"relative|rel_pos|distance|bucket", f"{words} {names}", re.IGNORECASE):
        yield "positions", "relative", "its words or names", False
    elif _PLACED.search(f"{words} {names}"):
        own = re.search(r"Embedding\(|Parameter\(|register_buffer\(|\bsin\(", code)
        yield "positions", "absolute", "its words or names", bool(own or _PLACED.search(words))
    elif re.search(
        r"Conv1d|linspace" if SORTED.search(code) else r"Conv1d|cumsum|linspace", code
    ):
        yield "positions", True, "the code", False


_SELECTED = "the option that selects the score"
_TURNS = r"\b(cos|sin|polar)\b"
_PLACED = re.compile(r"(?i)pos(ition(al|s)?)?_?(emb|enc)|adds? positions|\bplaces\b|sinusoid")
_BEFORE = re.compile(
    r"s_?\{?[ti] ?- ?1\}?|before (the|that|it|this)( recurrent)?( step)?\b|"
    r"previous (decoder |hidden )?state",
)
_AFTER = re.compile(
    r"after the (recurrent )?step|\bs_\{?[ti]\}?(?! ?- ?1)\b|"
    r"(new|current|updated) (decoder )?state"
)


def _convention(reading: Reading) -> Found:
    if not _RECURRENT.search(reading.code):
        return
    before, after = _BEFORE.search(reading.words), _AFTER.search(reading.words)
    if before and not after:
        yield "convention", "bahdanau", "its words", True
    elif after and not before:
        yield "convention", "luong", "its words", True


def _layer(reading: Reading) -> Found:
    if not re.search(r"\b(top|last) layer", words := reading.words):
        return
    if re.search(r"forward state|forward direction", words):
        yield "layer", "top forward", "its words", True
    elif re.search(
        r"bidirectional|both directions|2 \* n|joined", f"{words} {_helpers(reading)}"
    ):
        yield "layer", "top joined", "its words", True
    else:
        yield "layer", "top", "its words", True


def _helpers(reading: Reading) -> str:
    nodes = [n for n in reading.reach if isinstance(n, ast.FunctionDef)]
    return " ".join(ast.get_docstring(n) or "" for n in nodes)


def _manner(reading: Reading) -> Found:
    words, names = reading.words, reading.names.lower()
    if re.search(r"\b(during|in|at) training\b|\btraining\b[^.]*dropout", words) and re.search(
        r"Dropout|dropout", reading.code
    ):
        yield "mode", "train", "its words", True
    half = re.search(r"float16|\bfp16|half[- ]precision|\bhalf\b", f"{words} {names}")
    half = half or re.search(r"dtype (they|it) comes? in|in the dtype of", words)
    if half or "_half" in names:
        yield "dtype", "float16", "its words", True
    if re.search(r"left[- ]padd|padd?(ed|ing) (comes first|on the left|at the start)", words):
        yield "padding", "left", "its words", True
    if re.search(
        r"(no key|nothing to attend|all keys are masked|fully masked|"
        r"without (any )?(real )?keys?)[^.]*\bzeros?",
        words,
    ):
        yield "all_masked", "zeros", "its words", True
