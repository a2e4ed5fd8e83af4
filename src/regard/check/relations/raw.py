"""Scores of arguments that nothing projects: the formula, straight from the arguments."""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.check.finding import Measurement
from regard.check.oracle import declared_scale, softmax
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.capped import cap, within
from regard.check.relations.layout import Layout, layout
from regard.check.subject import Crash

__all__ = ["formula", "may_read_nothing"]


@relation("formula", "weights = softmax(score(query, key)), context = weights @ value", cost=1)
def formula(bench: Bench) -> Verdict | None:  # noqa: PLR0911 - one a condition
    """Compute weights and context from the arguments of a function without parameters."""
    here = layout(bench)
    c = bench.contract
    if bench.case.loaded.is_module or c.positions or c.layer or not here.keys:
        return None
    scores = None if _splits(here) else _scores(bench, here)
    if scores is None:
        return None
    wanted = softmax(scores, here.allowed()[:, None])
    slack = 2e-2 if c.dtype in ("float16", "bfloat16") else 1e-4
    returned = here.alignment(bench.out)
    if returned is not None and returned.shape[1] == wanted.shape[1]:
        full = np.broadcast_to(wanted, np.broadcast_shapes(wanted.shape, returned.shape))
        if returned.shape != full.shape or not near(returned, full, slack):
            return _differs(bench, c.weights or "", returned, full)
    for name, found, context in _contexts(bench, here, wanted):
        if not near(found, context, slack) and may_read_nothing(bench):
            return None
        if not near(found, context, slack):
            return _differs(bench, name, found, context)
        return holds()
    return holds() if returned is not None else None


def may_read_nothing(bench: Bench) -> bool:
    """Whether contexts are those of a softmax with one more logit, of 0, that has no value.

    Its weights sum to less than 1 on purpose: a query may leave every key aside.
    """
    here = layout(bench)
    if bench.case.loaded.is_module or bench.contract.positions or not here.keys:
        return False
    scores = None if _splits(here) else _scores(bench, here)
    if scores is None:
        return False
    more = np.concatenate([scores, np.zeros_like(scores[..., :1])], axis=-1)
    allowed = np.broadcast_to(here.allowed()[:, None], scores.shape)
    allowed = np.concatenate([allowed, np.ones_like(allowed[..., :1])], axis=-1)
    pairs = list(_contexts(bench, here, softmax(more, allowed)[..., :-1]))
    return bool(pairs) and all(near(found, context, 1e-4) for _, found, context in pairs)


def _splits(here: Layout) -> bool:
    """Whether the code splits its arguments into heads itself, as many as it is told."""
    c = here.contract
    return "heads" in c.values.values() and not any("heads" in a for a in c.inputs.values())


def _contexts(
    bench: Bench, here: Layout, weights: np.ndarray
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The one plain result with the features of the values, and what it should be."""
    values, names = here.value_parts() or here.key_parts(), list(here.contexts())
    # A mask over the queries zeroes rows; the weights alone are compared then.
    value = _over_keys(here, values)
    if value is None or len(names) != 1 or _has_query_mask(here):
        return
    out = bench.contract.out_axes(names[0])
    if out[-1:] != bench.contract.axes(values[0])[-1:]:
        return
    found = here.context(bench.out, names[0])
    context = weights @ value
    b, h, q, d = context.shape
    if found is None:
        return
    if h == 1 and found.shape == (b, q, d):
        yield names[0], found, context[:, 0]
    elif "heads" in out and found.shape == (b, q, h * d):
        yield names[0], found, context.transpose(0, 2, 1, 3).reshape(found.shape)


def _scores(bench: Bench, here: Layout) -> np.ndarray | None:
    """Scores (batch, 1, query, key) where query and key are single plain arguments."""
    learned = [n for n in bench.probe.floats() if here.is_learned(n)]
    keys = [n for n in here.key_parts() if n not in here.value_parts()]
    queries = here.query_parts()
    memory = [n for n in here.content if n not in (*queries, *here.key_parts())]
    key = _over_keys(here, keys)
    if key is None or len(queries) != 1 or memory:
        return None
    query = _spread(here, queries[0], here.queries or (here.new,))
    score = bench.contract.score
    if score in ("dot", "scaled_dot") and not learned:
        if query.shape[-1] != key.shape[-1]:
            return None
        scale = declared_scale(bench, key.shape[-1])
        if scale is None:
            return None
        return within(np.asarray(scale * (query @ key.swapaxes(-1, -2))), _bound(bench))
    if score == "additive" and len(learned) == 3 and bench.contract.activation == "tanh":
        return _additive(bench, learned, (queries[0], keys[0]), query, key)
    return None


def _bound(bench: Bench) -> float | None:
    """What the one softmax's scores are kept below."""
    trace = bench.trace
    sites = [] if trace is None or isinstance(trace, Crash) else trace.sites
    return cap(sites[0]) if len(sites) == 1 else None


def _additive(
    bench: Bench, learned: list[str], names: tuple[str, str], query: np.ndarray, key: np.ndarray
) -> np.ndarray | None:
    q_axis, k_axis = (bench.contract.axes(n)[-1] for n in names)
    tables = {n: bench.contract.axes(n) for n in learned}
    vector = [n for n, a in tables.items() if len(a) == 1]
    if q_axis == k_axis or len(vector) != 1:
        return None
    inner = tables[vector[0]][0]
    projected = []
    for axis, x in ((q_axis, query), (k_axis, key)):
        own = [n for n, a in tables.items() if set(a) == {axis, inner} and len(a) == 2]
        if len(own) != 1:
            return None
        W = bench.probe.args[own[0]]
        projected.append(x @ (W if tables[own[0]][0] == axis else W.T))
    pairs = np.tanh(projected[0][..., :, None, :] + projected[1][..., None, :, :])
    return np.asarray(pairs @ bench.probe.args[vector[0]])


def _spread(here: Layout, name: str, over: Sequence[str]) -> np.ndarray:
    """An argument as (batch, heads, position, features)."""
    axes, value = here.inputs[name], here.probe.args[name]
    place = axes.at(*over)
    batch, head = axes.at("batch"), axes.at("heads", "kv_heads")
    rest = tuple(i for i in range(len(axes.shape)) if i not in (*place, *batch, *head))
    array = value.reshape(axes.shape).transpose(*batch, *head, *place, *rest)
    sizes = [int(np.prod([axes.shape[i] for i in p])) for p in (batch, head, place, rest)]
    array = array.reshape(sizes)
    many = here.sizes["heads"] if "heads" in here.contract.every_axis else 1
    if 1 < array.shape[1] < many and many % array.shape[1] == 0:
        array = np.repeat(array, many // array.shape[1], axis=1)
    return np.asarray(array, dtype=np.float64)


def _over_keys(here: Layout, names: list[str]) -> np.ndarray | None:
    """Keys or values as they are given, the cached ones before the new ones."""
    if not here.joined:
        return _spread(here, names[0], here.keys) if len(names) == 1 else None
    cached = [n for n in names if here.inputs[n].at("T_mem")]
    new = [n for n in names if n not in cached]
    if len(cached) != 1 or len(new) != 1:
        return None
    return np.concatenate(
        [_spread(here, cached[0], ("T_mem",)), _spread(here, new[0], (here.new,))], axis=2
    )


def _has_query_mask(here: Layout) -> bool:
    return any(n not in here.key_masks() for n in here.probe.masks)


def _differs(bench: Bench, name: str, found: np.ndarray, wanted: np.ndarray) -> Verdict:
    gap = (
        f"{np.nan_to_num(np.abs(found - wanted), nan=np.inf).max():.3g}"
        if found.shape == wanted.shape
        else "other axes"
    )
    return fails(
        "RG504",
        f"`{name}` is not what the declared {bench.contract.score} score gives",
        level="error",
        about=name,
        measured=(Measurement(f"{name} against the formula", gap, "must be 0"),),
        depends_on=(
            *("score", "scale", "causal", "window"),
            *(f"kinds.{n}" for n in layout(bench).key_masks()),
        ),
        hidden="every shape is right and nothing raises",
    )
