"""Attention weights are a distribution over the keys, one for every query."""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.order import key_order, recurs_over_keys
from regard.check.relations.raw import may_read_nothing
from regard.check.relations.reading import readings
from regard.check.subject import Crash, Outcome
from regard.check.trace.weighing import has_keys_of_its_own

_HIDDEN = 100.0  # what a mask lowers a score by, at the least

__all__ = ["positive", "repeated_keys", "sum_to_one"]


@relation("weights-sum-to-one", "sum over the keys of weights[query, :] = 1", cost=0)
def sum_to_one(bench: Bench) -> Verdict | None:
    """Sum the returned weights over the declared axes."""
    here = layout(bench)
    out = _as_made(bench) if bench.contract.reweighted else bench.out
    weights = here.alignment(out) if out is not None else None
    if weights is None or out is None or bench.contract.weights is None:
        return None
    name = bench.contract.weights
    rows = np.asarray(np.any(here.allowed(), axis=-1))
    if rows.shape[1] != weights.shape[2]:
        if not (rows == rows[:, :1]).all():
            return None
        rows = np.broadcast_to(rows[:, :1], (len(rows), weights.shape[2]))
    if weights.shape[0] not in (1, len(rows)):
        return None
    live = np.broadcast_to(rows[: weights.shape[0], None], weights.shape[:3])
    total = weights.sum(-1)
    live = live & ~(_padded(here, weights.shape) & (total == 0.0))
    if not (live & (np.abs(total - 1.0) > _slack(bench))).any():
        return holds()
    keys = here.key_name
    found = Measurement(f"sum over {keys}", _span(total[live]), "must be 1")
    code, text = _why(out, here, total, live)
    return fails(
        code,
        f"`{name}` {text.format(keys=keys)}",
        about=name,
        measured=(found,),
        depends_on=("weights",),
        hidden="every shape is right and nothing raises",
    )


def _padded(here: Layout, shape: tuple[int, ...]) -> np.ndarray:
    """Rows of weights, (batch, heads, query), of positions that are padding themselves.

    Self-attention may leave such a row empty: nothing reads it.
    """
    unread = ~here.allowed().any(axis=1)
    if not here.is_self or unread.shape != (shape[0], shape[2]):
        return np.zeros(shape[:3], dtype=bool)
    return np.broadcast_to(unread[:, None], shape[:3])


def _as_made(bench: Bench) -> Outcome | None:
    """The plain run with what the softmax gave in the place of what was made of it."""
    trace, name = bench.trace, str(bench.contract.weights)
    returned = bench.out.get(name)
    if trace is None or isinstance(trace, Crash) or returned is None:
        return None
    for site in trace.live_sites():
        if site.weights.shape == returned.shape:
            at = bench.out.names.index(name)
            outputs = bench.out.outputs
            made = np.asarray(site.weights.value, dtype=np.float64)
            return replace(bench.out, outputs=(*outputs[:at], made, *outputs[at + 1 :]))
    return None


def _why(out: Outcome, here: Layout, total: np.ndarray, live: np.ndarray) -> tuple[str, str]:
    """The rule, and what the weights do instead of summing to one over the keys."""
    bench = here.bench
    other = _other_axis(bench, out)
    if other:
        text = f"sums to 1 over {other}; each query's weights must sum to 1 over "
        return "RG301", text + "{keys}"
    keep = here.allowed()
    if here.key_masks() and not keep.all() and keep.shape[:2] == total.shape[0::2]:
        full = np.broadcast_to(np.all(keep, axis=-1)[:, None], total.shape)
        if full.any() and np.abs(total[full & live] - 1.0).max() < _slack(bench):
            text = "of a masked query sums to less than 1: what the mask takes away is not "
            return "RG206", text + "given to the other keys"
    return "RG303", "sums to 1 over no axis; each query's weights must sum to 1 over {keys}"


@relation("weights-not-negative", "weights >= 0", cost=0)
def positive(bench: Bench) -> Verdict | None:
    """Look for negative weights."""
    weights = layout(bench).alignment(bench.out)
    if weights is None or np.isnan(weights).any() or bench.contract.reweighted:
        return None
    if weights.min() >= -1e-6:
        return holds()
    name = bench.contract.weights or ""
    return fails(
        "RG303",
        f"`{name}` holds negative numbers; weights lie between 0 and 1",
        about=name,
        measured=(Measurement("smallest weight", f"{weights.min():.3f}", "must be >= 0"),),
        depends_on=("weights",),
    )


@relation(
    "repeated-keys",
    "attend(query, [keys; keys]) = attend(query, keys)",
    everywhere=False,
    cost=2,
)
def repeated_keys(bench: Bench) -> Verdict | None:
    """Give every key and value twice: each weight halves, the context stays."""
    here = layout(bench)
    known = _over_given_keys(bench)
    # The copy of a key is none of its own.
    if not _may_repeat(here) or known is False or _leaves_itself_out(bench):
        return None
    axis = here.keys[0]
    n = bench.sizes[axis]
    twice = bench.case.bench(bench.sizes.which, **{axis: 2 * n})
    if twice.instance.crash is not None:
        return None
    args = dict(bench.probe.args)
    for name, axes in here.inputs.items():
        value = args[name]
        at = axes.at(axis)
        if at and isinstance(value, np.ndarray):
            opened = value.reshape(axes.shape)
            for i in at:
                opened = np.concatenate([opened, opened], axis=i)
            shape = twice.sizes.shape(bench.contract.inputs[name])
            args[name] = opened.reshape(shape)
    out = twice.instance.call(args)
    if not isinstance(out, Outcome):
        return None
    there = layout(twice)
    for name in here.contexts():
        a, b = here.context(bench.out, name), there.context(out, name)
        if a is None or b is None:
            continue
        if here.is_self:
            live = here.allowed().any(axis=1)  # a padded position's own row is its own
            rows = live if a.shape[:2] == live.shape else np.ones(a.shape[:2], dtype=bool)
            a, b = a[rows], b[:, :n][rows]
        if a.shape == b.shape and not near(b, a, 1e-3):
            if may_read_nothing(bench) or "unplaced" in getattr(
                key_order(bench), "depends_on", ()
            ):
                return None  # copies of a key lie at other positions, which may be meant
            return fails(
                "RG303",
                f"`{name}` changes when every key and its value is given twice: the weights "
                f"are no distribution over {here.key_name}",
                about=name,
                level="error" if known else "note",  # --score says what is meant
                measured=(
                    Measurement("largest change", f"{np.abs(a - b).max():.3f}", "must be 0"),
                ),
                depends_on=("causal", "window"),
                hidden="every shape is right and nothing raises",
            )
    return holds()


def _may_repeat(here: Layout) -> bool:
    c = here.contract
    if len(here.keys) != 1 or here.joined or c.causal or c.window or "causal" in c.guessed:
        return False
    if c.reweighted or c.sparse:
        return False  # stated to be no distribution, or not over every key
    if here.keys[0] in c.sizes or "+" in here.keys[0]:
        return False
    plain = not c.positions or (
        c.positions == "recurrent" and not here.is_self and not recurs_over_keys(here)
    )
    kinds = {c.kinds.get(n) for n in here.inputs}
    return plain and not kinds & {"lengths", "weights", "bias", "token_lists"}


def _leaves_itself_out(bench: Bench) -> bool:
    """Whether no position reads itself, though it may, as where keys are the queries."""
    here = layout(bench)
    found = [r.weights for r in readings(bench)] if here.is_self else []
    found = [w for w in found if w.shape[2] == w.shape[3] == here.n_keys > 1]
    allowed = np.diagonal(here.allowed(), axis1=1, axis2=2).any(axis=0)
    return any(
        bool((np.diagonal(w, axis1=2, axis2=3)[..., allowed] < 1e-9).all())
        and bool((w > 1e-9).any())
        for w in found
    )


def _over_given_keys(bench: Bench) -> bool | None:
    """Whether the weights are meant to be a distribution over the given keys alone.

    Sinks and memories take their share, and a sigmoid weighs every key by itself. None where
    neither a declaration nor a softmax that can be seen tells.
    """
    trace, contract = bench.trace, bench.contract
    declared = contract.weights is not None or contract.score not in (None, "none")
    if trace is None or isinstance(trace, Crash):
        return declared or None
    if contract.score == "none" and not trace.sites:
        return False  # a distribution of another kind, as sparsemax, counts keys otherwise
    sites, given = trace.live_sites(), layout(bench).n_keys
    if any(has_keys_of_its_own(s, given) for s in sites):
        return False
    if any(n.op == "topk" for n in trace.nodes):
        return False  # the largest few of twice as many keys are other ones
    if any(_hides_itself(s) or _meets_parameters(s) for s in sites):
        return False
    over = (s.weights.shape[s.axis] for s in sites if isinstance(s.axis, int))
    return given in over or declared or None


def _hides_itself(site: Any) -> bool:
    """Whether each position is hidden from itself alone: its copy would be seen."""
    scores = site.scores.value
    if site.axis not in (-1, scores.ndim - 1) or scores.shape[-1] != scores.shape[-2]:
        return False
    own = np.eye(scores.shape[-1], dtype=bool)
    seen = scores[..., ~own]
    return bool(seen.size) and bool(scores[..., own].max() < seen.min() - _HIDDEN)


def _meets_parameters(site: Any) -> bool:
    """Whether a learned map mixes the weights of the heads before they meet values."""
    node = site.contraction
    return node is not None and any(
        n.sources and all(s.startswith("param:") for s in n.sources) for n in node.inputs
    )


def _other_axis(bench: Bench, out: Outcome) -> str:
    """The axis over which the returned weights do sum to one, or ''."""
    name = bench.contract.weights
    array = out.get(name)
    if name is None or array is None or array.dtype == object:
        return ""
    role = next(r.role for r in bench.contract.returns if r.name == name)
    array = np.exp(array) if role == "log_weights" else array
    tokens = bench.contract.out_axes(name)
    if array.ndim != len(tokens):
        return ""
    for i, token in enumerate(tokens):
        if i not in {j % len(tokens) for j in bench.contract.sums_over}:
            total = array.sum(axis=i)
            if np.abs(total - 1.0).max() < _slack(bench):
                return token if tokens.count(token) == 1 else f"the queries' axis {token}"
    if np.abs(array.sum() - 1.0) < _slack(bench):
        return "all entries together"
    return ""


def _slack(bench: Bench) -> float:
    return 2e-2 if bench.contract.dtype in ("float16", "bfloat16") else 1e-3


def _span(values: np.ndarray) -> str:
    return f"{values.min():.3f} to {values.max():.3f}"
