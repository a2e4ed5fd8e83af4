"""Order of keys, of queries and of time: what may depend on it, and what must."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.placed import is_sequential, moves_content
from regard.check.relations.softmaxes import is_consistent
from regard.check.subject import Crash, Outcome

__all__ = [
    "is_axial",
    "key_order",
    "order_matters",
    "prefix",
    "queries_apart",
    "recurs_over_keys",
]

_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})


@relation("key-order", "attend(query, P keys) = attend(query, keys)", cost=1)
def key_order(bench: Bench) -> Verdict | None:
    """Reorder keys and values alike: contexts stay, weights follow."""
    here = layout(bench)
    if not _free_of_order(here):
        return None
    order = _order(here)
    if order is None:
        return None
    out = bench.ok(**_reordered(here, order))
    if out is None:
        return None
    for name in here.contexts():
        a, b = here.context(bench.out, name), here.context(out, name)
        if a is None or b is None:
            continue
        a = a[:, order] if here.is_self and a.shape[1] == here.n_keys else a
        along = _along_keys(here, bench.out, name)
        if along is not None:  # coverage and the like: it follows the keys
            full = np.concatenate([order, np.arange(len(order), here.n_keys)])
            a, b = along[..., full], _along_keys(here, out, name)
        if b is not None and not near(b, a, _loose(bench)):
            return _scrambled(here, name, float(np.abs(b - a).max()))
    a, b = here.alignment(bench.out), here.alignment(out)
    if a is not None and b is not None:
        full = np.concatenate([order, np.arange(len(order), here.n_keys)])
        a = a[..., full]
        a = a[:, :, order] if here.is_self and a.shape[2] == here.n_keys else a
        if not near(b, a, _loose(bench)):
            return _scrambled(here, bench.contract.weights or "", float(np.abs(b - a).max()))
    return holds()


@relation(
    "order-matters", "with positions, attend(query, P keys) != attend(query, keys)", cost=1
)
def order_matters(bench: Bench) -> Verdict | None:
    """Reorder keys and values where positions are declared: something must change."""
    here = layout(bench)
    if not here.contract.positions or here.contract.positions == "recurrent" or not here.keys:
        return None
    if here.joined and here.contract.positions not in ("alibi", "relative"):
        return None  # cached keys hold their positions already
    order = _order(here)
    if order is None:
        return None
    args = _reordered(here, order)
    out = bench.ok(**args)
    if out is None:
        return None
    moved = False
    compared = False
    for name in here.contexts():
        a, b = here.context(bench.out, name), here.context(out, name)
        if a is None or b is None:
            continue
        compared = True
        a = a[:, order] if here.is_self and a.shape[1] == here.n_keys else a
        # Under a causal mask the order matters anyhow: watch the last query, which sees all.
        last = slice(-1, None) if here.contract.causal else slice(None)
        if here.contract.causal and here.is_self:
            last = slice(0, 0) if order[-1] != here.n_keys - 1 else last
        moved |= not near(b[:, last], a[:, last], 1e-3)
    if not compared or moved:
        return holds() if compared else None
    return fails(
        "RG504",
        f"the positions that are declared ({here.contract.positions}) do not reach the scores: "
        "reordering the keys changes nothing",
        about=here.key_name,
        depends_on=("positions",),
        hidden="every shape is right and nothing raises",
    )


@relation("queries-apart", "attend(queries, keys)[t] = attend(queries[t], keys)", cost=2)
def queries_apart(bench: Bench) -> Verdict | None:
    """Ask single queries and compare with their rows; with a causal pattern, the last one."""
    here = layout(bench)
    c = bench.contract
    if here.is_self or here.queries != ("T_dec",) or c.positions:
        return None  # with positions, a query alone is at another one
    if "T_dec" in c.sizes or here.joined or c.convention or c.values or _reads_queries(bench):
        return None
    n = here.n_queries
    rows: tuple[int, ...] = (n - 1, 1)
    sizes = {"T_dec": 1}
    if c.causal or c.window:
        if c.causal != "bottom_right" or "T_mem" not in c.every_axis:
            return None
        rows, sizes = (n - 1,), {"T_dec": 1, "T_mem": bench.sizes["T_mem"] + n - 1}
    small = bench.case.bench(bench.sizes.which, **sizes)
    there = layout(small)
    for t in rows:
        args = {n: _query(here, n, v, t) for n, v in bench.probe.args.items()}
        out = small.instance.call(args)
        if isinstance(out, Crash):
            return None  # axes-at-size-one says so
        for name in c.out_names:
            if name == c.weights:
                a, b = here.alignment(bench.out), there.alignment(out)
                a = a[:, :, t : t + 1] if a is not None else None
            else:
                a, b = here.context(bench.out, name), there.context(out, name)
                a = a[:, t : t + 1] if a is not None else None
            if a is None or b is None or a.shape != b.shape:
                continue
            if not near(b, a, _loose(bench)):
                return fails(
                    "RG103",
                    f"`{name}` of a query depends on the other queries",
                    about=name,
                    level="note" if _compete(bench) else "error",
                    depends_on=("inputs", "unplaced") if _after(bench, name) else ("inputs",),
                    measured=(
                        Measurement(
                            "alone against among others",
                            f"{np.abs(a - b).max():.3g}",
                            "must be 0",
                        ),
                    ),
                    hidden="every shape is right; a single query is right",
                )
    return holds()


def _after(bench: Bench, name: str) -> bool:
    """Whether nobody said that rows know nothing of the rows before them, and they do."""
    return "unplaced" in bench.contract.guessed and is_sequential(bench, name)


def _reads_queries(bench: Bench) -> bool:
    """Whether queries are keys too: joined to the others, or in an attention of their own.

    A softmax over the queries alone is a slip of the axis or of the roles, unless another
    one runs over the keys.
    """
    here, trace = layout(bench), bench.trace
    if trace is None or isinstance(trace, Crash):
        return False
    over = [s.weights.axes[s.axis] for s in trace.live_sites() if isinstance(s.axis, int)]
    given, asked = here.key_name, "*".join(here.queries)
    return f"{given}+{asked}" in over or f"{asked}+{given}" in over or {given, asked} <= {*over}


def _compete(bench: Bench) -> bool:
    """Whether queries share out each key among them, as slots do: only the author can tell."""
    here, trace = layout(bench), bench.trace
    if bench.contract.score is not None or trace is None or isinstance(trace, Crash):
        return False
    for site in trace.sites:
        axes = {site.axis} if isinstance(site.axis, int) else set(site.axis or ())
        over = {site.weights.axes[i] for i in axes}
        if over and over <= set(here.queries) and is_consistent(site, over):
            return True
    return False


@relation("prefix", "under a causal mask, f(x[:n]) = f(x)[:n]", cost=2)
def prefix(bench: Bench) -> Verdict | None:
    """Cut the sequence short: the rows that remain stay as they were."""
    here = layout(bench)
    c = bench.contract
    axis = here.queries[0] if len(here.queries) == 1 else ""
    is_causal = c.causal == "top_left" and here.is_self
    is_decoder = c.positions == "recurrent" and not here.is_self and axis == "T_dec"
    if axis in c.sizes or not (is_causal or is_decoder):
        return None
    n = bench.sizes[axis] - 2
    if n < 1 or any(here.is_table(name) for name in c.inputs):
        return None  # which rows of a table go with fewer positions is the author's choice
    short = bench.case.bench(bench.sizes.which, **{axis: n})
    args: dict[str, Any] = {}
    for name, value in bench.probe.args.items():
        at = here.inputs[name].at(axis)
        if at and isinstance(value, np.ndarray):
            cut = value.reshape(here.inputs[name].shape)
            for i in at:
                cut = cut.take(range(n), axis=i)
            args[name] = cut.reshape(short.sizes.shape(c.inputs[name]))
        elif c.kinds.get(name) == "lengths" and here.is_self:
            args[name] = np.minimum(value, n)
        else:
            args[name] = value
    out = short.instance.call(args)
    if isinstance(out, Crash):
        return None
    there = layout(short)
    for name in here.contexts():
        a, b = here.context(bench.out, name), there.context(out, name)
        if a is None or b is None or a.shape[1] != bench.sizes[axis]:
            continue
        a = a[:, :n]
        if here.is_self:  # a padded position's own row is its own
            real = np.asarray(here.allowed().any(axis=1))[:, :n]
            a, b = (a[real], b[real]) if real.shape == a.shape[:2] else (a, b)
        if not near(b, a, _loose(bench)):
            return fails(
                "RG203",
                f"`{name}` of earlier steps changes when later steps are cut off",
                about=name,
                measured=(Measurement("change", f"{np.abs(a - b).max():.3g}", "must be 0"),),
                depends_on=("causal",),
                hidden="every shape is right; the loss only looks better",
            )
    return holds()


def _along_keys(here: Layout, outcome: Outcome, name: str) -> np.ndarray | None:
    """A result that lies along the keys and is no context, keys last; None for others."""
    at = here.outputs[name].at(*here.keys)
    array = outcome.get(name)
    if here.is_self or len(at) != 1 or array is None:
        return None
    axes = here.outputs[name]
    if array.size != np.prod(axes.shape):
        return None
    return np.moveaxis(array.reshape(axes.shape), at[0], -1)


def _free_of_order(here: Layout) -> bool:
    c = here.contract
    if not here.keys or not here.key_parts() or c.window or c.sparse:
        return False
    if is_axial(here.bench):
        return False
    if here.joined:
        # Every query comes after the cached keys, whatever the causal pattern says.
        return not c.positions and c.causal != "top_left"
    if c.causal or "+" in here.keys[0]:
        return False
    if c.positions == "recurrent":
        return not here.is_self and not recurs_over_keys(here)
    return not c.positions


def is_axial(bench: Bench) -> bool:
    """Whether every softmax runs over one of several axes of places and keeps the others.

    Rows of a picture that attend along themselves see no other row, and have one row axis;
    a softmax over a part of the keys of a whole picture has the other part left beside it.
    """
    here, trace = layout(bench), bench.trace
    if len(here.keys) < 2 or trace is None or isinstance(trace, Crash):
        return False
    sites = trace.live_sites()
    return bool(sites) and all(_is_along_one(here, s) for s in sites)


def _is_along_one(here: Layout, site: Any) -> bool:
    if not isinstance(site.axis, int):
        return False
    over = site.weights.axes[site.axis]
    every = [f for a in site.weights.axes for f in here._factors(a)]
    others = [n for n in here.keys if n != over]
    return over in here.keys and all(every.count(n) == 1 for n in others)


def recurs_over_keys(here: Layout) -> bool:
    """Whether the recurrence that is declared is one over the keys, as in an encoder."""
    trace = here.bench.trace
    if trace is None or isinstance(trace, Crash):
        return not here.queries
    keys = {f"input:{n}" for n in here.key_parts()}
    others = {f"input:{n}" for n in here.query_parts()}
    return any(
        n.op in _RECURRENT
        and n.inputs
        and keys & set(n.inputs[0].sources)
        and not others & set(n.inputs[0].sources)
        for n in trace.nodes
    )


def _order(here: Layout) -> np.ndarray | None:
    """A rotation of the key positions that every query of every example may attend to."""
    allowed = here.allowed()
    if here.joined:
        allowed = allowed[..., : here.sizes["T_mem"]]
    if (allowed != allowed[:, :1]).any() and not here.contract.causal:
        return None
    if any(len(a.at(*here.keys)) > len(here.keys) for a in here.inputs.values()):
        return None  # an argument over pairs of positions has no one order
    common = np.flatnonzero(allowed[:, -1].all(axis=0))
    if len(common) < 3:
        return None
    order = np.arange(allowed.shape[-1])
    # The last stays last, so that a causal query that sees all stays the last too.
    inner = common[:-1] if here.contract.causal else common
    order[inner] = np.roll(inner, 1)
    return order


def _reordered(here: Layout, order: np.ndarray) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    keys = ("T_mem",) if here.joined else here.keys
    parts = [n for n in here.content if here.inputs[n].at(*keys)]
    if here.is_self:
        parts = [n for n in parts if here.inputs[n].at(*here.queries)]
    else:
        parts = [n for n in parts if n in here.key_parts() or _along(here, n)]
    for name in parts:
        value, axes = here.probe.args[name], here.inputs[name]
        if isinstance(value, tuple):
            continue
        at = axes.at(*keys)
        rest = tuple(i for i in range(value.reshape(axes.shape).ndim) if i not in at)
        moved = value.reshape(axes.shape).transpose(*rest, *at)
        shape = moved.shape
        flat = moved.reshape(*shape[: len(rest)], -1)[..., order]
        back = np.argsort((*rest, *at))
        changes[name] = flat.reshape(shape).transpose(*back).reshape(value.shape)
    return changes


def _along(here: Layout, name: str) -> bool:
    """Whether an argument that is no key still goes with the keys: biases, not history."""
    return here.contract.kinds.get(name) in ("bias", "weights") and not here.contract.positions


def _query(here: Layout, name: str, value: Any, t: int) -> Any:
    axes = here.inputs[name]
    at = axes.at("T_dec")
    if not at or not isinstance(value, np.ndarray):
        return value
    cut = value.reshape(axes.shape)
    for i in at:
        cut = cut.take([t], axis=i)
    sizes = [1] * (max(axes.token) + 1)
    for token, size in zip(axes.token, cut.shape, strict=True):
        sizes[token] *= size
    return cut.reshape(sizes)


def _scrambled(here: Layout, name: str, gap: float) -> Verdict:
    has_heads = "heads" in here.contract.every_axis
    stands: tuple[str, ...] = ("positions", "causal")
    if "unplaced" in here.contract.guessed and not moves_content(here.bench):
        stands = (*stands, "unplaced")
    code, text = (
        "RG401" if has_heads else "RG102",
        "depends on the order in which the keys are given",
    )
    if here.joined:
        code, text = "RG102", "changes when cached keys and values are reordered alike"
    return fails(
        code,
        f"`{name}` {text}",
        about=name,
        measured=(Measurement("change when keys are reordered", f"{gap:.3g}", "must be 0"),),
        depends_on=stands,
        hidden="every shape is right and nothing raises",
    )


def _loose(bench: Bench) -> float:
    return 2e-2 if bench.contract.dtype in ("float16", "bfloat16") else 2e-4
