"""What is no plain attention over all keys: patterns of their own, weights without a softmax.

Words such as ``dilated`` or ``prefix`` beside ``causal``, ``sigmoid`` or ``top-k`` beside a
score: the author means something that a contract's words do not describe, so that nothing is
stated by them.
"""

import re

from regard.check.roles.reading import Reading

__all__ = ["SORTED", "is_other", "is_pattern", "is_patterned"]

_PATTERN = re.compile(
    r"\b(block(s|ed|wise)?|dilated?|strided?|stride|strict(ly)?|prefix|local|sliding|"
    r"window(ed)?|chunk(s|ed|wise)?|banded?|sparse|axial|document|segment|packed|"
    r"neighbou?rhood|every second)(?![a-z])",
    re.IGNORECASE,
)
_NO_SOFTMAX = re.compile(
    r"sparse[- _]?max|ent[- _]?max|\btop[- _]?k\b|\bhard(?![a-z])|sigmoid|gumbel|"
    r"\b(instead of|without|no) (a )?softmax|linear[- _]attention|soft[- _]?cap|logit[- _]cap",
    re.IGNORECASE,
)
_SPARSE = re.compile(
    r"\.topk\(|\btopk\(|\bkthvalue\(|\bargpartition\(|argmax\(|gumbel|sparsemax|entmax|"
    r"\badd_(bias_kv|zero_attn|zero_kv)=True"  # a library's layer with keys of its own
)
SORTED = re.compile(r"\bsort\(")


def _spaced(names: str) -> str:
    """Names as words: ``block_causal`` and ``BlockCausal`` alike."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", names).replace("_", " ")


def is_pattern(name: str) -> bool:
    """Whether a name speaks of a pattern of who reads whom.

    >>> is_pattern("prefix_len"), is_pattern("src_lengths")
    (True, False)
    """
    return _PATTERN.search(_spaced(name)) is not None


def is_patterned(reading: Reading) -> bool:
    """Whether words or names speak of a pattern that "causal" alone does not describe."""
    options = " ".join(p.name for p in (*reading.parameters, *reading.options))
    said = f"{reading.words}\n{_spaced(reading.names)}\n{_spaced(options)}"
    said = re.sub(r"\bblock[ _]size\b", "", said)  # the length that a decoder is made for
    return _PATTERN.search(said) is not None


def is_other(reading: Reading) -> bool:
    """Whether weights are meant that no softmax over all keys gives."""
    said = f"{reading.words}\n{_spaced(reading.names)}"
    if _NO_SOFTMAX.search(said) or _SPARSE.search(reading.code):
        return True
    sorts = SORTED.search(reading.code) and "cumsum" in reading.code
    plain = re.search(r"softmax|\bexp\(|scaled_dot_product_attention", reading.code) is not None
    squashed = not plain and "sigmoid(" in reading.code and "softmax" not in said.lower()
    return bool(sorts or squashed)
