"""The oracle: the whole mathematics on plain Python lists, one equation a line.

Slow on purpose and free of every dependency, so that it can be read beside the papers and every
faster path can be tested against it. All functions take one example: a query list ``(T_dec,
d_s)``, a key list ``(T_enc, d_h)``; a batch is a loop around them. Sums are exactly rounded
(:func:`math.fsum`), which makes the oracle more accurate than what it judges.

Masks are lists of booleans, True where a query may attend. A query that may attend nowhere has
zero weights and a zero context.

The papers are Bahdanau et al. 2015 (arXiv:1409.0473), Luong et al. 2015 (arXiv:1508.04025) and
Vaswani et al. 2017 (arXiv:1706.03762). Arguments are those of the array functions of the same
names.
"""

import math
from collections.abc import Callable
from typing import Any

__all__ = [
    "SCORES",
    "additive",
    "additive_attention",
    "attend",
    "causal",
    "concat",
    "concat_attention",
    "dot",
    "dot_attention",
    "from_lengths",
    "general",
    "general_attention",
    "multi_head",
    "scaled_dot",
    "softmax",
    "window",
]

Vector = list[float]
Matrix = list[list[float]]
Mask = list[list[bool]]


def _inner(a: Vector, b: Vector) -> float:
    if len(a) != len(b):
        raise ValueError(f"an inner product of {len(a)} and {len(b)} numbers")
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _apply(matrix: Matrix, vector: Vector) -> Vector:
    return [_inner(row, vector) for row in matrix]


# Scores: (T_dec, d_s) and (T_enc, d_h) to (T_dec, T_enc).


def additive(query: Matrix, key: Matrix, *, W_a: Matrix, U_a: Matrix, v_a: Vector) -> Matrix:
    """Score ``v_a . tanh(W_a s + U_a h)`` (Bahdanau et al. 2015, appendix A.1.2)."""

    def score(s: Vector, h: Vector) -> float:
        pair = zip(_apply(W_a, s), _apply(U_a, h), strict=True)
        return _inner(v_a, [math.tanh(p + k) for p, k in pair])

    return [[score(s, h) for h in key] for s in query]


def dot(query: Matrix, key: Matrix) -> Matrix:
    """Score ``s . h`` (Luong et al. 2015, section 3.1, eq. 8)."""
    return [[_inner(s, h) for h in key] for s in query]


def general(query: Matrix, key: Matrix, *, W: Matrix) -> Matrix:
    """Score ``s . W h`` (Luong et al. 2015, section 3.1, eq. 8)."""
    return [[_inner(s, _apply(W, h)) for h in key] for s in query]


def concat(query: Matrix, key: Matrix, *, W_c: Matrix, v_c: Vector) -> Matrix:
    """Score ``v_c . tanh(W_c [s; h])`` (Luong et al. 2015, section 3.1, eq. 8)."""
    return [
        [_inner(v_c, [math.tanh(x) for x in _apply(W_c, [*s, *h])]) for h in key] for s in query
    ]


def scaled_dot(query: Matrix, key: Matrix) -> Matrix:
    """Score ``s . h / sqrt(d)`` (Vaswani et al. 2017, section 3.2.1, eq. 1)."""
    return [[_inner(s, h) / math.sqrt(len(s)) for h in key] for s in query]


SCORES: dict[str, Callable[..., Matrix]] = {
    "additive": additive,
    "dot": dot,
    "general": general,
    "concat": concat,
    "scaled_dot": scaled_dot,
}
"""Every score by its name."""


# Masks: (T_dec, T_enc), True = may attend.


def from_lengths(length: int, *, T_dec: int, T_enc: int) -> Mask:
    """Let every query attend the first ``length`` keys; the rest is padding."""
    return [[i < length for i in range(T_enc)] for _ in range(T_dec)]


def causal(T_dec: int, T_enc: int, *, corner: str = "top_left") -> Mask:
    """Let query t attend keys up to t, or, for ``bottom_right``, up to t + T_enc - T_dec."""
    shift = T_enc - T_dec if corner == "bottom_right" else 0
    return [[i <= t + shift for i in range(T_enc)] for t in range(T_dec)]


def window(T_dec: int, T_enc: int, *, left: int, right: int) -> Mask:
    """Let query t attend keys t - left .. t + right."""
    return [[t - left <= i <= t + right for i in range(T_enc)] for t in range(T_dec)]


# Weights, context, heads.


def softmax(scores: Vector, mask: list[bool] | None = None) -> Vector:
    """Return ``exp(e_i) / sum_j exp(e_j)`` over the keys that may be attended, 0 elsewhere.

    A score of -inf forbids its key. Those of +inf share the weight equally, the limit of large
    scores.
    """
    permitted = [True] * len(scores) if mask is None else mask
    allowed = [may and e != -math.inf for e, may in zip(scores, permitted, strict=True)]
    kept = [e for e, may in zip(scores, allowed, strict=True) if may]
    if not kept:
        return [0.0] * len(scores)
    peak = max(kept)  # leaves the ratio as it is and keeps exp within range

    def share(e: float) -> float:
        return 1.0 if e == peak else math.exp(e - peak)  # inf - inf is no number

    total = math.fsum(share(e) for e in kept)
    return [share(e) / total if may else 0.0 for e, may in zip(scores, allowed, strict=True)]


def attend(
    query: Matrix,
    key: Matrix,
    value: Matrix | None = None,
    *,
    score: str | Callable[[Matrix, Matrix], Matrix] = "dot",
    mask: Mask | None = None,
    bias: Matrix | None = None,
    scale: float = 1.0,
    **params: Any,
) -> tuple[Matrix, Matrix]:
    """Return ``(context, weights)``: c_t = sum_i a_ti v_i with a_t = softmax(scores_t)."""
    value = key if value is None else value
    scores = (
        SCORES[score](query, key, **params) if isinstance(score, str) else score(query, key)
    )
    scores = [[scale * e for e in row] for row in scores]
    if bias is not None:
        scores = [
            [e + b for e, b in zip(*rows, strict=True)]
            for rows in zip(scores, bias, strict=True)
        ]
    rows = [None] * len(query) if mask is None else mask
    weights = [softmax(e, may) for e, may in zip(scores, rows, strict=True)]
    columns = list(zip(*value, strict=True))
    context = []
    for a, may in zip(weights, rows, strict=True):
        # A forbidden value is left out, not multiplied by zero: it may hold anything.
        kept = [i for i in range(len(key)) if may is None or may[i]]
        context.append([math.fsum(a[i] * column[i] for i in kept) for column in columns])
    return context, weights


def multi_head(
    query: Matrix,
    key: Matrix,
    value: Matrix | None = None,
    *,
    heads: int,
    score: str = "scaled_dot",
    W_q: Matrix | None = None,
    W_k: Matrix | None = None,
    W_v: Matrix | None = None,
    W_o: Matrix | None = None,
    mask: Mask | None = None,
    **params: list[Any],
) -> tuple[Matrix, list[Matrix]]:
    """Run one attention per slice of the features and join the contexts.

    ``params`` hold the score's parameters with a leading axis of heads. Returns the context
    ``(T_dec, heads * d_v)`` and the weights ``(heads, T_dec, T_enc)`` (Vaswani et al. 2017,
    section 3.2.2, over any score).
    """
    value = key if value is None else value
    inputs = [
        rows if W is None else [_apply(W, row) for row in rows]
        for rows, W in ((query, W_q), (key, W_k), (value, W_v))
    ]
    results = []
    for head in range(heads):
        parts = []
        for rows in inputs:
            size = len(rows[0]) // heads
            parts.append([row[head * size : (head + 1) * size] for row in rows])
        own = {name: stacked[head] for name, stacked in params.items()}
        results.append(attend(*parts, score=score, mask=mask, **own))
    joined: Matrix = [
        [number for row in rows for number in row]
        for rows in zip(*(context for context, _ in results), strict=True)
    ]
    context = joined if W_o is None else [_apply(W_o, row) for row in joined]
    return context, [weights for _, weights in results]


# One decoder step: a state (d_s,) and encoder states (T_enc, d_h).


def _step(
    decoder_state: Vector, encoder_states: Matrix, **options: Any
) -> tuple[Vector, Vector]:
    context, weights = attend([decoder_state], encoder_states, **options)
    return context[0], weights[0]


def additive_attention(
    decoder_state: Vector, encoder_states: Matrix, W_a: Matrix, U_a: Matrix, v_a: Vector
) -> tuple[Vector, Vector]:
    """Return the context ``(d_h,)`` and weights ``(T_enc,)`` of one additive step."""
    return _step(decoder_state, encoder_states, score="additive", W_a=W_a, U_a=U_a, v_a=v_a)


def dot_attention(decoder_state: Vector, encoder_states: Matrix) -> tuple[Vector, Vector]:
    """Return the context ``(d_h,)`` and weights ``(T_enc,)`` of one dot-product step."""
    return _step(decoder_state, encoder_states, score="dot")


def general_attention(
    decoder_state: Vector, encoder_states: Matrix, W: Matrix
) -> tuple[Vector, Vector]:
    """Return the context ``(d_h,)`` and weights ``(T_enc,)`` of one general (bilinear) step."""
    return _step(decoder_state, encoder_states, score="general", W=W)


def concat_attention(
    decoder_state: Vector, encoder_states: Matrix, W_c: Matrix, v_c: Vector
) -> tuple[Vector, Vector]:
    """Return the context ``(d_h,)`` and weights ``(T_enc,)`` of one concat step."""
    return _step(decoder_state, encoder_states, score="concat", W_c=W_c, v_c=v_c)
