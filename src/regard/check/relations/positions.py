"""Positions: a rotation depends on the distance alone and turns every pair at its own rate."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.reading import VIEWS, readings, spread, weighing
from regard.check.subject import Crash

__all__ = ["after_cache", "by_distance", "plain_values", "rotation", "turned"]

_OFFSETS = ("offset", "start", "position", "pos", "past", "start_pos", "shift")
_CARRIED = VIEWS | {
    *("chunk", "split", "unbind", "getitem", "cat", "repeat", "repeat_interleave", "stack"),
    *("dropout", "tile"),
}
_PROJECTED = {"input", "linear", "matmul", "einsum", "add", "bmm", "mm", "addmm", "conv1d"}


@relation(
    "distance-alone",
    "with equal content, score(t, j) depends on t - j alone",
    cost=2,
    everywhere=False,
)
def by_distance(bench: Bench) -> Verdict | None:
    """Give every position the same content and watch the scores along the diagonals."""
    kind = bench.contract.positions
    if kind not in ("rotary", "alibi", "relative") or bench.contract.score not in (
        "scaled_dot",
        "dot",
        "general",
    ):
        return None
    here = layout(bench)
    if len(here.keys) != 1 or here.joined:
        return None
    from regard.check.trace import record  # noqa: PLC0415 - heavy

    args = {n: _level(here, n, v) for n, v in bench.probe.args.items()}
    trace = record(bench.instance, bench.probe, bench.sizes, args=args)
    if isinstance(trace, Crash) or trace.crash is not None:
        return None
    for site in trace.sites:
        wrong = _values_turn(here, site) or _off_diagonal(here, site)
        if wrong:
            text, measured = wrong
            return fails(
                "RG504",
                f"with equal content {text}; {kind} scores depend on the distance alone",
                level="error",
                lines=(site.scores.line,),
                measured=measured,
                depends_on=("positions",),
                hidden="every shape is right and nothing raises",
            )
    return holds() if trace.sites else None


_Wrong = tuple[str, tuple[Measurement, ...]]


def _values_turn(here: Layout, site: Any) -> _Wrong | None:
    weights = weighing(here, site.weights, site.axis)
    if site.value is None or weights is None:
        return None
    value = spread(here, site.value, here.keys, weights.shape[1])
    if value is None or value.shape[2] != here.n_keys:
        return None
    gap = float(np.abs(value - value[:, :, :1]).max())
    if gap <= 1e-3:
        return None
    return "the values differ by position", (
        Measurement("change of a value", f"{gap:.3g}", "must be 0"),
    )


def _off_diagonal(here: Layout, site: Any) -> _Wrong | None:
    scores = weighing(here, site.scores, site.axis)
    if scores is None or scores.shape[-1] != here.n_keys or scores.shape[2] < 2:
        return None
    fine = np.isfinite(scores) & (np.abs(scores) < 1e4)
    calm = np.where(fine, scores, 0.0)
    # A bias that a row shares has no effect: compare differences along the keys.
    steps, both = np.diff(calm, axis=-1), fine[..., 1:] & fine[..., :-1]
    a, b = steps[..., :-1, :-1], steps[..., 1:, 1:]
    both = both[..., :-1, :-1] & both[..., 1:, 1:]
    if not both.any():
        return None
    gap, size = float(np.abs(a - b)[both].max()), float(np.abs(a[both]).max())
    if size < 1e-6:
        return "all scores are alike", (Measurement("change along the keys", "0", "not 0"),)
    if gap <= 1e-3 * (1.0 + size):
        return None
    return "scores change along a diagonal", (
        Measurement("change along a diagonal", f"{gap:.3g}", "must be 0"),
    )


@relation("rotation", "features turn by position / 10000^(2i/d)", strict=True, cost=2)
def rotation(bench: Bench) -> Verdict | None:
    """Turn queries and keys anew and compare."""
    if bench.contract.positions != "rotary":
        return None
    here = layout(bench)
    start = next(
        (float(v) for n, v in bench.probe.args.items() if n in _OFFSETS and _is_number(v)), 0.0
    )
    cached = here.sizes["T_mem"] if here.joined else 0
    asked = False
    for reading in readings(bench):
        for part, axes, first in (
            (reading.query, here.queries, start + cached),
            (reading.key, (here.new,) if cached else here.keys, float(cached)),
        ):
            if part is None or part.shape[-1] % 2:
                continue
            new = part if part is reading.query else part[:, :, cached:]
            if new.shape[2] < 2:
                continue
            asked = True
            candidates = _unturned(here, bench.trace, new, axes, reading.heads)
            if not any(near(new, t, 1e-3) for c in candidates for t in turned(c, first)):
                return fails("RG504", "queries or keys are not turned by their positions")
    return holds() if asked else None


@relation("new-steps-after-cache", "behind n cached keys the first new position is n", cost=2)
def after_cache(bench: Bench) -> Verdict | None:
    """Look whether new queries are turned as if nothing were cached."""
    here = layout(bench)
    if bench.contract.positions != "rotary" or not here.joined:
        return None
    if any(n in _OFFSETS for n in bench.contract.inputs):
        return None  # where the new steps begin is told
    cached, asked = here.sizes["T_mem"], False
    for reading in readings(bench):
        part = reading.query
        if part is None or part.shape[2] < 2 or part.shape[-1] % 2:
            continue
        plain = list(_unturned(here, bench.trace, part, here.queries, reading.heads))
        at_0, behind = (
            any(near(part, t, 1e-3) for c in plain for t in turned(c, n)) for n in (0, cached)
        )
        asked |= at_0 or behind
        if at_0 and not behind:
            return fails(
                "RG504",
                f"new queries are turned from position 0 on; behind {cached} cached keys the "
                f"first is at {cached}",
                lines=(reading.site.scores.line,),
                measured=(Measurement("first position of a query", "0", f"{cached}"),),
                depends_on=("positions",),
                hidden="every shape is right; without a cache it is right",
            )
    return holds() if asked else None


@relation("values-unturned", "values are projected, and not turned", strict=True, cost=1)
def plain_values(bench: Bench) -> Verdict | None:
    """Follow the values of each softmax back through views to their projection."""
    trace = bench.trace
    if bench.contract.positions != "rotary" or trace is None or isinstance(trace, Crash):
        return None
    values = [site.value for site in trace.sites if site.value is not None]
    todo = list(values)
    while todo:
        node = todo.pop()
        if node.op in _CARRIED and node.inputs:
            todo += node.inputs
        elif node.op not in _PROJECTED:
            return fails("RG504", "the values are turned as queries and keys are")
    return holds() if values else None


def turned(plain: np.ndarray, start: float) -> list[np.ndarray]:
    """Rotations of (.., position, features): pairs i and i + d/2, and pairs 2i and 2i + 1."""
    n, d = plain.shape[-2:]
    rate = 10000.0 ** (-np.arange(0, d, 2) / d)
    angle = (start + np.arange(n))[:, None] * rate
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = plain[..., : d // 2], plain[..., d // 2 :]
    halves = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    a, b = plain[..., 0::2], plain[..., 1::2]
    pairs = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(plain.shape)
    return [halves, pairs]


def _unturned(
    here: Layout, trace: Any, part: np.ndarray, axes: tuple[str, ...], heads: int
) -> Iterator[np.ndarray]:
    """Tensors with the same norms: what may have been turned."""
    norm = np.sqrt((part**2).sum(-1))
    for node in trace.nodes:
        if node.op in ("buffer", "const") or not node.sources:
            continue
        found = spread(here, node, axes, heads)
        if found is None or found.shape != part.shape:
            continue
        if near(np.sqrt((found**2).sum(-1)), norm, 1e-3):
            yield found


def _level(here: Layout, name: str, value: Any) -> Any:
    """An argument with the content of its first position at every position."""
    if name not in here.content or not isinstance(value, np.ndarray):
        return value
    axes = here.inputs[name]
    at = axes.at(*here.keys, *here.queries)
    opened = value.reshape(axes.shape)
    for i in at:
        opened = np.repeat(opened.take([0], axis=i), axes.shape[i], axis=i)
    return opened.reshape(value.shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
