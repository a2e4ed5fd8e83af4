"""A context is a mixture of values: of equal values, each mixture is that value."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.raw import may_read_nothing
from regard.check.subject import Crash

__all__ = ["equal_values"]

_SUMS = frozenset({"sum", "cumsum", "logsumexp"})


@relation("equal-values", "where every value is v, every context is v", cost=1)
def equal_values(bench: Bench) -> Verdict | None:  # noqa: PLR0911 - one a condition
    """Give every key the value of the first and watch the contexts.

    It needs values that reach the result as they are, so a function that is given them. Weights
    that are never built, as those of linear attention, are judged too.
    """
    here = layout(bench)
    values = here.value_parts()
    others = [n for n in here.key_parts() if n not in values]
    if bench.case.loaded.is_module or not values or not others or len(values) > 2:
        return None
    names = list(here.contexts())
    rest = [n for n in here.inputs[values[0]].names if n not in (*here.keys, "T_mem", here.new)]
    if len(names) != 1 or not _is_mixed(bench, here):
        return None
    out_rest = [n for n in here.outputs[names[0]].names if n not in here.queries]
    learned = any(here.is_learned(n) for n in here.contract.inputs)
    if sorted(rest) != sorted(out_rest) or learned:
        return None
    wanted: np.ndarray | None = None
    changes: dict[str, np.ndarray] = {}
    for name in values:
        level = _level(here, name, wanted)
        if level is None:
            return None
        changes[name], wanted = level
    out = bench.ok(**changes)
    found = here.context(out, names[0]) if out is not None else None
    if found is None or wanted is None:
        return None
    order = [n for n in rest if n != "batch"]
    own = [n for n in out_rest if n != "batch"]
    expected = wanted.transpose(0, *(1 + order.index(n) for n in own))
    expected = expected.reshape(expected.shape[0], 1, -1)
    live = np.broadcast_to(here.allowed().any(-1), found.shape[:2])
    expected = np.broadcast_to(expected, found.shape)
    slack = 2e-2 if bench.contract.dtype in ("float16", "bfloat16") else 1e-3
    if near(found[live], expected[live], slack):
        return holds()
    if may_read_nothing(bench):
        return None
    gap = np.nan_to_num(np.abs(found - expected)[live], nan=np.inf).max(initial=0.0)
    return fails(
        "RG303",
        f"`{names[0]}` is not v where every value is v: the weights do not sum to 1",
        about=names[0],
        measured=(Measurement(f"{names[0]} against the one value", f"{gap:.3g}", "must be 0"),),
        depends_on=tuple(f"kinds.{n}" for n in here.key_masks()),
        hidden="every shape is right and nothing raises",
    )


def _is_mixed(bench: Bench, here: Layout) -> bool:
    """Whether weights are meant to sum to one: by a declaration, or by a sum over the keys."""
    contract = bench.contract
    kinds = set(contract.kinds.values())
    if kinds & {"weights", "zero_padded", "token_lists"} or not here.keys:
        return False
    trace = bench.trace
    if contract.weights is not None or contract.score not in (None, "none"):
        return "score" not in contract.guessed or contract.weights is not None
    if trace is None or isinstance(trace, Crash):
        return False
    values = {f"input:{n}" for n in here.value_parts()}
    keys = {f"input:{n}" for n in here.key_parts()} - values
    return any(
        n.op in _SUMS
        and keys & set(n.sources)
        and not values & set(n.sources)
        and (n.op == "cumsum" or set(n.inputs[0].axes) - set(n.axes) & {*here.keys})
        for n in trace.nodes
        if n.inputs
    )


def _level(
    here: Layout, name: str, wanted: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """An argument with one value at every key, and that value as (batch, rest)."""
    axes, value = here.inputs[name], here.probe.args[name]
    at = axes.at(*here.keys, "T_mem", here.new)
    batch = axes.at("batch")
    if not at or not isinstance(value, np.ndarray):
        return None
    rest = tuple(i for i in range(len(axes.shape)) if i not in (*at, *batch))
    opened = value.reshape(axes.shape).transpose(*batch, *rest, *at)
    first = opened.reshape(*opened.shape[: opened.ndim - len(at)], -1)[..., 0]
    first = first if batch else first[None]
    if wanted is not None:
        if wanted.shape != first.shape:
            return None
        first = wanted
    filled = first if batch else first[0]
    filled = np.broadcast_to(filled.reshape(*filled.shape, *([1] * len(at))), opened.shape)
    back = np.argsort((*batch, *rest, *at))
    return filled.transpose(*back).reshape(value.shape).copy(), first
