"""What a mask means: which value lets a key be read, and in which form it is stored.

The author's sentence decides ("``pad`` is True on padding", "1 on real keys"), then a clear
name (``valid``, ``ignore``); a bare ``mask`` is settled later, by running.
"""

import re
from dataclasses import dataclass

from regard.check.roles.reading import Reading
from regard.check.roles.words import parts

__all__ = ["Meaning", "forms_of", "meaning_of"]

_TRUE = r"(?:True|1\.0|1|ones?|non-?zero|set)"
_FALSE = r"(?:False|0\.0|0|zeros?)"
_LINK = (
    r"(?:\s*(?:\(|:|=|->|\b(?:means?|marks?|on|where|for|at|if|is|are|the|an?|in|when|"
    r"indicates?|to)\b)\s*)+"
)
_PAD = re.compile(
    r"\bpad(s|ded|ding)?\b|ignor|leave out|left out|exclud|block|forbid|hidden|hide|invalid|"
    r"outside|beyond|missing|masked( out)?\b|may not|must not|cannot|"
    r"not (be )?(allowed|attend|read)|not real|future",
    re.IGNORECASE,
)
_REAL = re.compile(
    r"\breal\b|\bvalid|\bkeep|\bkept|token|word|allowed|may\b|attend|visible|present|actual|"
    r"to (be )?read|inside|unmasked|non-?pad|not pad|existing|observed|can (be )?(seen|look)",
    re.IGNORECASE,
)
_OTHER = re.compile(r"\b(?:and|but|or)\s+(?:True|False|zeros?|ones?|[01])\b|\belse\b")
_NOTHING_REAL = re.compile(
    r"\b(no|not a|without an?y?) (real )?(token|word|key|entry|element|position|content)s?\b",
    re.IGNORECASE,
)
_NOT_PAD = re.compile(r"(non|not|un|no)[- ]?(a )?(pad|mask|ignor|block|hidden)", re.IGNORECASE)
_KEEP_NAMES = (
    *("valid", "keep", "real", "allowed", "visible", "present", "attendable", "observed"),
    *("nonpad", "unmasked", "readable"),
)
_DROP_NAMES = (
    *("pad", "ignore", "ignored", "blocked", "hide", "drop", "invalid", "forbidden", "missing"),
    *("exclude", "excluded", "padded"),
)


@dataclass(frozen=True)
class Meaning:
    """``keep`` (True = may attend), ``drop``, ``additive``, ``bias`` or "" if nothing says.

    ``stated`` is False for a hint that a correct file may contradict, such as the name
    ``padding_mask``, which libraries use in both senses.
    """

    polarity: str
    stated: bool
    how: str


def meaning_of(name: str, reading: Reading) -> Meaning:  # noqa: PLR0911 - one a way of saying
    """What the words and the name of a mask say."""
    if re.search(
        rf"\b{name}\b[^.\n]*\badditive\b|\badditive\b[^.\n]*\b{name}\b", reading.words
    ):
        return Meaning("additive", True, "the docstring calls it additive")
    added = re.search(
        rf"\b{name}\b[^.]*\badded to the (attention )?(scores|logits)", reading.words
    )
    if added is not None:
        tail = reading.words[added.start() :][:240]
        huge = re.search(r"-inf|negative|-1e|huge|minus infinity", tail, re.IGNORECASE)
        return Meaning("additive" if huge else "bias", True, "the docstring says it is added")
    if re.search(rf"\b{name}\b[^.\n]*(-inf\b|minus infinity)", reading.words):
        return Meaning("additive", True, "the docstring mentions -inf")
    beside = reading.beside.get(name, "")
    for segment in ([beside] if beside else []) + _segments(name, reading.words):
        found = _sentence(segment)
        if found:
            return Meaning(found, True, f"its words: {_short(segment)!r}")
    pieces = parts(name)
    joined = "_".join(pieces)
    if joined in ("key_padding_mask", "src_key_padding_mask", "memory_key_padding_mask"):
        return Meaning("drop", True, "PyTorch's name for True on padding")
    if any(p in _KEEP_NAMES for p in pieces):
        return Meaning("keep", True, "its name")
    if "pad" in pieces or "padding" in pieces or "padded" in pieces:
        clear = "mask" not in pieces
        return Meaning("drop", clear, "its name")
    if any(p in _DROP_NAMES for p in pieces):
        return Meaning("drop", True, "its name")
    return Meaning("", False, "")


def forms_of(name: str, meaning: Meaning, reading: Reading) -> tuple[str, ...]:
    """Forms to try for a mask, the likeliest first."""
    if meaning.polarity in ("additive", "bias"):
        return (meaning.polarity,)
    word = meaning.polarity or "keep"
    said = " ".join(_segments(name, reading.words))
    code = reading.code
    order = ["", "_int", "_float01", "_uint8"]
    if re.search(r"uint8|byte", said, re.IGNORECASE):
        order = ["_uint8", ""]
    elif re.search(r"\b[01]\.0\b", said):
        order = ["_float01", "", "_int"]
    elif re.search(r"\bTrue\b|\bFalse\b|\bbool|\b[Bb]inary\b", said):
        order = ["", "_uint8"]
    elif re.search(r"\bfloat", said):
        order = ["_float01", "", "_int"]
    elif re.search(rf"\b{name}\s*(==|!=)\s*[01]\b", code):
        order = ["_int", "", "_float01"]
    elif re.search(rf"\b1(\.0)?\s*-\s*{name}\b|\b{name}(\[[^\]]*\])?\s*-\s*1(\.0)?\b", code):
        order = ["_float01", "_int"]
    elif re.search(rf"~\s*{name}\b|logical_not\({name}|\b{name}\.logical_not", code):
        order = ["", "_uint8"]
    if re.search(r"\b[01]\b", said) and order[0] == "" and "True" not in said:
        order = ["_int", "", "_float01"]
    order += [o for o in ("", "_int", "_float01") if o not in order]
    forms = [f"{word}{o}" for o in order if not (o == "_uint8" and word == "drop")]
    if _is_added(name, code):
        forms = ["additive", *forms] if not meaning.polarity else [*forms, "additive"]
    elif not meaning.polarity:
        forms.append("additive")
    return tuple(forms)


def _is_added(name: str, code: str) -> bool:
    """Whether the code adds the argument itself to something."""
    plain = rf"{name}(\[[^\]]*\]|\.unsqueeze\(-?\d\))*"
    return bool(re.search(rf"\+\s*{plain}\s*($|\)|,|\n)|\b{plain}\s*\+\s|\+=\s*{plain}", code))


def _segments(name: str, words: str) -> list[str]:
    """Pieces of the author's text that speak of a mask, by name or of all masks."""
    flat = re.sub(r"\s*\n\s+", " ", words)
    pieces = re.split(r"[;\n]|\.\s", flat)
    own = [p for p in pieces if re.search(rf"\b{re.escape(name)}\b", p)]
    own = [p[re.search(rf"\b{re.escape(name)}\b", p).start() :] for p in own]  # type: ignore[union-attr]
    shared = [p for p in pieces if re.search(r"\b[Mm]asks\b", p)]
    return [*own, *shared]


def _sentence(segment: str) -> str:
    for truth, flip in ((_TRUE, False), (_FALSE, True)):
        for match in re.finditer(rf"(?<![\w.-]){truth}(?![\w.]){_LINK}([^,;:.]*)", segment):
            kind = _kind(_OTHER.split(match.group(1))[0])
            if kind:
                return {"keep": "drop", "drop": "keep"}[kind] if flip else kind
    keeps = re.search(
        r"(keys?|positions?|tokens?|steps?) (that|which|to) (may|can|be read)", segment
    )
    return "keep" if keeps and not _PAD.search(segment) else ""


def _kind(phrase: str) -> str:
    if _NOTHING_REAL.search(phrase):
        return "drop"
    if _NOT_PAD.search(phrase):
        return "keep"
    pad, real = _PAD.search(phrase), _REAL.search(phrase)
    if pad and (not real or pad.start() <= real.start() or "not" in pad.group()):
        return "drop"
    if pad and real:
        return "drop" if re.search(r"pad|ignor|leave|masked", pad.group()) else "keep"
    return "keep" if real else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
