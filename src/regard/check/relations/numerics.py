"""Finite where it must be finite: large scores, half precision, queries without keys."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Case, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.padding import mask_of
from regard.check.subject import Crash, Outcome
from regard.check.trace.weighing import is_exponential

__all__ = ["all_masked", "half_precision", "large_scores", "without_keys"]

_SLACK = 0.01  # of a sum of weights


@relation("large-scores-finite", "scores of any size give finite weights", cost=1)
def large_scores(bench: Bench) -> Verdict | None:
    """Scale the inputs up until scores reach thousands."""
    if bench.contract.dtype in ("float16", "bfloat16"):
        return None
    names = [n for n in bench.probe.floats() if bench.contract.kinds.get(n) is None]
    names = [n for n in names if not layout(bench).is_learned(n)]
    if not names or _has_no_scores(bench) or _not_finite(bench, bench.out):
        return None
    # Turned queries have scores of the other sign: those of every key may be far below 0.
    turned = set(layout(bench).query_parts())
    for scale, sign in ((30.0, 1.0), (30.0, -1.0), (1000.0, 1.0)):
        signs = {n: sign if n in turned else 1.0 for n in names}
        scaled = {n: bench.probe.args[n] * scale * signs[n] for n in names}
        out = bench.run(**scaled)
        if isinstance(out, Crash):
            return fails(
                "RG602",
                f"the code raises {out.kind} when scores are large",
                lines=tuple(reversed(out.lines)),
                quote=out.message,
                measured=(Measurement("inputs scaled by", f"{scale:.0f}", "must run"),),
                hidden="scores of order one are right; training reaches large ones late",
            )
        bad = _not_finite(bench, out)
        if bad:
            before = _overflows_before(bench, {**bench.probe.args, **scaled})
            said = " when scores are large"
            if before is not None:
                said = f" with large inputs: {before.op} overflows before scores are made"
            return fails(
                "RG602",
                f"`{bad}` becomes NaN or infinite{said}",
                about=bad,
                level="error" if before is None else "warning",
                lines=(before.line,) if before is not None and before.line else (),
                measured=(Measurement("inputs scaled by", f"{scale:.0f}", "must stay finite"),),
                hidden="scores of order one are right; training reaches large ones late",
            )
        lost = _lost(layout(bench), out)
        if lost is not None:
            return fails(
                "RG303",
                f"`{bench.contract.weights}` no longer sums to 1 when scores are large",
                about=bench.contract.weights or "",
                measured=(
                    Measurement("inputs scaled by", f"{scale:.0f}"),
                    Measurement("sum over the keys", f"{lost:.3g}", "must be 1"),
                ),
                depends_on=("weights",),
                hidden="scores of order one are right; training reaches large ones late",
            )
    return holds()


def _has_no_scores(bench: Bench) -> bool:
    """Whether no score is declared and no softmax is recorded: feature maps, sparsemax."""
    if bench.contract.score not in (None, "none"):
        return False
    trace = bench.trace
    return trace is not None and not isinstance(trace, Crash) and not trace.sites


def _overflows_before(bench: Bench, args: dict[str, Any]) -> Any:
    """The exponential that overflows first, where it is that of no softmax and above one."""
    from regard.check.trace import record  # noqa: PLC0415 - heavy

    trace = record(bench.instance, bench.probe, bench.sizes, args=args)
    if isinstance(trace, Crash) or not trace.sites:
        return None
    first = next((n for n in trace.nodes if _is_new_overflow(n)), None)
    if first is None or first.op not in ("exp", "exp2", "expm1", "sinh", "cosh"):
        return None
    softmaxes = [is_exponential(s.weights) for s in trace.sites]
    if any(first is one for one in softmaxes):
        return None
    above = trace.above(*(s.scores for s in trace.sites))
    return first if first.index in above else None


def _is_new_overflow(node: Any) -> bool:
    """Whether an operation makes a NaN or infinity above 0 of what has none."""
    return (
        node.op not in ("const", "buffer")
        and _is_over(node)
        and not any(_is_over(i) for i in node.inputs)
    )


def _is_over(node: Any) -> bool:
    value = node.value
    return value.dtype.kind == "f" and bool((np.isnan(value) | np.isposinf(value)).any())


def _lost(here: Layout, out: Outcome | None) -> float | None:
    """The sum of weights that is farthest from one, where every plain sum is one."""
    if out is None or here.contract.weights is None:
        return None
    rows = np.asarray(np.any(here.allowed(), axis=-1))
    plain, large = here.alignment(here.bench.out), here.alignment(out)
    if plain is None or large is None or plain.shape[2] != rows.shape[1]:
        return None
    if plain.shape[0] != rows.shape[0]:
        return None
    live = np.broadcast_to(rows[:, None], plain.shape[:3])
    if np.abs(plain.sum(-1)[live] - 1.0).max(initial=0.0) > _SLACK:
        return None  # weights-sum-to-one says so
    total = large.sum(-1)[live]
    worst = total[np.abs(total - 1.0).argmax()] if total.size else 1.0
    return float(worst) if abs(worst - 1.0) > _SLACK else None


@relation("half-precision", "in half precision the result is that of float32, rounded", cost=2)
def half_precision(bench: Bench) -> Verdict | None:
    """Where half precision is declared, compare with a run in float32."""
    if bench.contract.dtype not in ("float16", "bfloat16"):
        return None
    single = Case(
        bench.case.loaded, bench.contract.with_(dtype="float32"), seed=bench.case.seed
    )
    out = single.bench(bench.sizes.which).base
    if not isinstance(out, Outcome):
        return None
    slack = 0.02 if bench.contract.dtype == "float16" else 0.1
    for name, a, b in zip(bench.out.names, bench.out.outputs, out.outputs, strict=False):
        if a is None or b is None or a.shape != b.shape or a.dtype.kind != "f":
            continue
        gap = np.nan_to_num(np.abs(a - b) / (1.0 + np.abs(b)), nan=np.inf).max()
        if gap > slack:
            return fails(
                "RG603" if np.isfinite(gap) else "RG601",
                f"`{name}` in {bench.contract.dtype} is not that of float32",
                about=name,
                measured=(Measurement("largest difference", f"{gap:.3g}", f"<= {slack}"),),
                hidden="float32 is right",
            )
    return holds()


@relation("query-without-keys", "a query that may attend to nothing gets weights 0", cost=1)
def all_masked(bench: Bench) -> Verdict | None:
    """Forbid every key of one example."""
    here = layout(bench)
    declared = bench.contract.all_masked
    if declared is None and not bench.contract.guessed:
        return None  # the author says that there is no such query
    names = [n for n in here.key_masks() if isinstance(bench.probe.args[n], np.ndarray)]
    for name in names:
        emptied = without_keys(here, name)
        if emptied is None:
            continue
        keep = here.keep(name)
        out = bench.ok(**{name: emptied})
        if out is None:
            continue
        bad = _not_finite(bench, out)
        weights = here.alignment(out)
        row = slice(0, 1) if keep.shape[1] > 1 else slice(None)
        heavy = weights is not None and not bad and np.abs(weights[0][:, row]).max() > 1e-6
        if weights is None and declared == "zeros" and not bad:
            heavy = _reads(here, {name: emptied}, out, row)
        if declared == "zeros" and (bad or heavy):
            return fails(
                "RG205",
                "a query with no key to attend to "
                + ("gives NaN" if bad else "spreads its weight over padding"),
                about=name,
                level="error",
                measured=_spread(weights, bad),
                depends_on=(f"kinds.{name}",),
                hidden="every query with at least one key is right",
            )
        if declared is None and (bad or heavy):
            return fails(
                "RG205",
                "a query with no key to attend to "
                + ("gives NaN" if bad else "spreads its weight over padding"),
                about=name,
                level="note",
                measured=_spread(weights, bad),
                depends_on=("all_masked", f"kinds.{name}"),
            )
    return holds() if names else None


def without_keys(here: Layout, name: str) -> np.ndarray | None:
    """A mask that allows a query of the first example no key, None where none can be made."""
    keep = here.keep(name)
    if here.contract.kinds[name] in ("zero_padded", "token_ids_pad0") or len(keep) < 2:
        return None
    if keep.shape[1] > 1:
        return _row_off(here, name)
    fresh = keep[:, 0].copy()
    fresh[0] = False
    return np.asarray(mask_of(here, name, fresh))


def _reads(here: Layout, args: dict[str, Any], out: Outcome, row: slice) -> bool:
    """Whether rows of the first example, whose keys are all forbidden, move with the keys."""
    if here.is_self or not here.has_batch:
        return False  # a position's own content is its query too
    changes = {n: here.noised(n, 5, batch=0) for n in here.key_parts()}
    again = here.bench.ok(**args, **changes)
    for name in here.contexts():
        a = here.context(out, name)
        b = here.context(again, name) if again is not None else None
        if a is not None and b is not None and not near(b[0][row], a[0][row], 1e-5):
            return True
    return False


def _row_off(here: Layout, name: str) -> np.ndarray:
    """A (query, key) mask that allows the first query of the first example nothing."""
    value, axes = here.probe.args[name].copy(), here.inputs[name]
    key = axes.at(*here.keys)[-len(here.keys) :]
    query = [i for i in axes.at(*here.queries) if i not in key][:1]
    index = tuple(
        0 if i in (*query, *axes.at("batch")) else slice(None) for i in range(len(axes.shape))
    )
    kind = here.contract.kinds[name]
    off = -1e9 if kind == "additive" else not kind.startswith("keep")
    value.reshape(axes.shape)[index] = off
    return np.asarray(value)


def _spread(weights: Any, bad: str) -> tuple[Measurement, ...]:
    if weights is None and not bad:
        return (Measurement("change with keys that are forbidden", "not 0", "must be 0"),)
    if bad or weights is None:
        return (Measurement(f"`{bad}`" if bad else "context", "NaN", "must be finite"),)
    largest = f"{np.abs(weights[0]).max():.3f}"
    return (Measurement("largest weight of that query", largest, "must be 0"),)


def _not_finite(bench: Bench, out: Outcome | None) -> str:
    if out is None:
        return ""
    roles = {r.name: r.role for r in bench.contract.returns}
    for name, array in zip(out.names, out.outputs, strict=False):
        if array is None or array.dtype.kind != "f":
            continue
        bad = np.isnan(array)
        if roles.get(name) != "log_weights":
            bad = bad | np.isinf(array)
        if bad.any():
            return name
    return ""
