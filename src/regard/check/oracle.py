"""The declared score, recomputed in float64 from what a recording holds.

Independent of the user's splitting, masking, normalising and summing: queries, keys and values
are taken where arithmetic last made them (:mod:`regard.check.relations.reading`), everything
after that is written here anew, from the contract alone.
"""

from dataclasses import dataclass

import numpy as np

from regard.check.relations.base import Bench
from regard.check.relations.capped import cap, within
from regard.check.relations.layout import Layout, layout
from regard.check.relations.reading import Reading
from regard.check.relations.rotated import before_rotation

__all__ = ["Answer", "alibi_slopes", "declared_scale", "expected", "softmax", "unmasked"]


_LOUD = 1e4  # what a mask adds is larger


@dataclass(frozen=True)
class Answer:
    """What a site should have given: (batch, heads, query, key) and (.., query, features)."""

    scores: np.ndarray
    weights: np.ndarray
    context: np.ndarray | None


def declared_scale(bench: Bench, width: int) -> float | None:
    """The factor that the contract asks for; None where it is learned or not declared."""
    contract = bench.contract
    if contract.scale is not None:
        if contract.scale == "learned":
            return None
        try:
            return float(bench.sizes.value(contract.scale))
        except (ValueError, TypeError):
            return None
    if contract.score == "scaled_dot":
        return float(width**-0.5)
    return 1.0 if contract.score in ("dot", "general") else None


def expected(bench: Bench, reading: Reading) -> Answer | None:
    """Recompute one site from its queries and keys, or from its scores where it has none."""
    here = layout(bench)
    allowed = allowed_here(here, reading)
    if allowed is None:
        return None
    scores = _scores(bench, here, reading)
    if scores is None:
        return None
    weights = softmax(scores, allowed[:, None])
    context = None
    # What values meet is these weights, where it is not made of several of them.
    value = reading.value if reading.met is None else None
    if value is not None and value.shape[2] == weights.shape[-1]:
        context = weights @ value
    return Answer(scores, weights, context)


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax over the last axis among allowed keys; rows without any are zero."""
    hidden = np.where(allowed, scores, -np.inf)
    top = hidden.max(axis=-1, keepdims=True)
    e = np.where(
        np.isfinite(hidden), np.exp(hidden - np.where(np.isfinite(top), top, 0.0)), 0.0
    )
    total = e.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(e, total, out=np.zeros_like(e), where=total > 0))


def alibi_slopes(heads: int) -> list[np.ndarray]:
    """Slopes of linear biases, and the other table in use where heads is no power of two."""
    plain = 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)
    below = 2 ** int(np.floor(np.log2(heads)))
    if below == heads:
        return [plain]
    first = 2.0 ** (-8.0 * np.arange(1, below + 1) / below)
    more = 2.0 ** (-8.0 * np.arange(1, 2 * below + 1) / (2 * below))
    return [plain, np.concatenate([first, more[0::2][: heads - below]])]


def allowed_here(here: Layout, reading: Reading) -> np.ndarray | None:
    """Who may attend to whom here, (batch, query, key); None if the site has other axes."""
    b, _, q, k = reading.weights.shape
    allowed = here.allowed()
    if k != here.n_keys or b not in (1, here.batch):
        return None
    if b < here.batch:
        if (allowed != allowed[:1]).any():
            return None
        allowed = allowed[:1]
    if q == here.n_queries:
        return allowed
    return allowed[:, :1] if q == 1 and (allowed == allowed[:, :1]).all() else None


def _scores(bench: Bench, here: Layout, reading: Reading) -> np.ndarray | None:
    contract = bench.contract
    if contract.score in ("additive", "concat", "pooling", "none", "location") or (
        contract.positions not in (False, "alibi", "rotary", "absolute", "recurrent")
    ):
        return unmasked(here, reading)
    query, key = reading.query, reading.key
    if query is None or key is None or query.shape[-1] != key.shape[-1]:
        return None
    scale = declared_scale(bench, query.shape[-1])
    if scale is None:
        return unmasked(here, reading)
    scale /= before_rotation(bench, reading)
    scores = np.asarray(scale * (query @ key.swapaxes(-1, -2)))
    if scores.shape[-2:] != reading.weights.shape[-2:]:
        return None
    scores = within(scores, cap(reading.site))
    if contract.positions == "alibi":
        scores = np.asarray(scores + _nearest_bias(here, reading, scores))
    return scores


def _nearest_bias(here: Layout, reading: Reading, scores: np.ndarray) -> np.ndarray:
    """The linear bias in use that is nearest to the code's own scores.

    There are two tables of slopes, and beyond the query the distance counts up or, where
    attention looks both ways, down again.
    """
    distance = _distance(here, scores.shape[-2:])
    contract = here.contract
    both_ways = not contract.causal and "causal" not in contract.guessed
    options = [
        slopes[:, None, None] * each
        for slopes in alibi_slopes(reading.heads)
        for each in ((-np.abs(distance),) if both_ways else (distance, -np.abs(distance)))
    ]
    own = np.broadcast_to(reading.scores, scores.shape)
    calm = np.isfinite(own) & (np.abs(own) < _LOUD)
    gaps = [np.abs(scores + o - own)[calm].max() if calm.any() else np.inf for o in options]
    return np.asarray(options[int(np.argmin(gaps))])


def _distance(here: Layout, shape: tuple[int, ...]) -> np.ndarray:
    rows, total = shape
    shift = total - rows if here.contract.causal == "bottom_right" else 0
    return np.asarray(np.arange(total)[None] - (np.arange(rows)[:, None] + shift), dtype=float)


def unmasked(here: Layout, reading: Reading) -> np.ndarray | None:
    """The code's own scores, where they are finite wherever a key may be attended to."""
    allowed = allowed_here(here, reading)
    if allowed is None:
        return None
    scores = np.broadcast_to(reading.scores, reading.weights.shape)
    wanted = np.broadcast_to(allowed[:, None], scores.shape)
    if not np.isfinite(scores[wanted]).all():
        return None
    return np.where(np.isfinite(scores), scores, 0.0)
