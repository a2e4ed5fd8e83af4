"""What a product score is made of: plain projections, and every entry of a general score."""

from typing import Any

import numpy as np

from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.reading import VIEWS, weighing
from regard.check.subject import Crash

__all__ = ["BENDS", "bend_above", "general", "learned", "plain"]

BENDS = frozenset(
    {"tanh", "relu", "sigmoid", "gelu", "silu", "leaky_relu", "elu", "softplus", "cos", "sin"}
)
_ON = VIEWS | {
    *("getitem", "dropout", "chunk", "split", "unbind", "repeat", "repeat_interleave"),
    "select",
}


@relation(
    "sums-and-products-plain",
    "operands of a score are sums of projections",
    strict=True,
    cost=1,
)
def plain(bench: Bench) -> Verdict | None:
    """Walk back from the scores: nothing bends, multiplies or subtracts on the way."""
    trace = bench.trace
    score = bench.contract.score
    if trace is None or isinstance(trace, Crash):
        return None
    asked = False
    for site in trace.sites:
        if score in ("dot", "scaled_dot", "general"):
            pair: tuple[Any, ...] = (site.query, site.key)
            if None in pair:  # operands that are bent are no query and key to a recording
                pair = site.product.inputs[:2] if site.product is not None else ()
            for node in pair:
                asked = True
                bent = _bent(node)
                if bent is not None:
                    return fails("RG504", f"{bent.op} bends an operand", lines=(bent.line,))
        elif score in ("additive", "concat", "location") and site.product is not None:
            own = learned(bench)
            bends = (bend_above(n, own) for n in site.product.inputs)
            bend = next((b for b in bends if b is not None), None)
            if bend is None or not bend.inputs:
                continue
            asked = True
            odd = _not_summed(bend.inputs[0])
            if odd is not None:
                return fails("RG504", f"{odd.op} joins the projections", lines=(odd.line,))
    return holds() if asked else None


def learned(bench: Bench) -> frozenset[str]:
    """Sources that are learned arrays given as arguments."""
    named = (n for n in bench.probe.floats() if layout(bench).is_learned(n))
    return frozenset(f"input:{n}" for n in named)


def _bent(node: Any) -> Any:
    """An activation between an operand and the projections and states it is made of."""
    stack, seen = [node], set[int]()
    while stack:
        one = stack.pop()
        if one.index in seen or not any(s.startswith("input:") for s in one.sources):
            continue
        seen.add(one.index)
        if one.op in BENDS | {"exp", "softmax", "abs", "pow", "square"}:
            return one
        if one.op in _ON | {"mul", "div", "add", "sub", "cat", "stack"}:
            stack += one.inputs
    return None


def bend_above(node: Any, learned: frozenset[str] = frozenset()) -> Any:
    """The activation that an operand comes from through views and learned factors, or None."""
    stack = [node]
    for _ in range(30):
        if not stack:
            return None
        one = stack.pop(0)
        if one.op in BENDS:
            return one
        given = [
            any(s.startswith("input:") and s not in learned for s in n.sources)
            for n in one.inputs
        ]
        if one.op in _ON or (one.op in ("mul", "div") and sum(given) < 2):
            stack += one.inputs
    return None


def _not_summed(node: Any) -> Any:
    stack = [node]
    for _ in range(30):
        if not stack:
            return None
        one = stack.pop()
        if one.op in BENDS or (one.op in ("mul", "sub", "div") and len(one.inputs) == 2):
            return one
        if one.op in _ON | {"add", "mul", "div"}:
            stack += one.inputs
    return None


@relation(
    "general-mixes",
    "score = query^T W key, with every entry of W",
    strict=True,
    cost=2,
    everywhere=False,
)
def general(bench: Bench) -> Verdict | None:
    """Read W off by one-hot queries and keys and compare with the learned array."""
    here = layout(bench)
    if bench.contract.score != "general" or here.is_self or not here.has_batch:
        return None
    queries = [n for n in here.query_parts() if n not in here.key_parts()]
    keys = [n for n in here.key_parts() if n not in here.value_parts()] or here.key_parts()
    if len(queries) != 1 or len(keys) != 1 or bench.contract.layer:
        return None
    from regard.check.trace import record  # noqa: PLC0415 - heavy

    seen = {}
    for q_on in (0, 1):
        for k_on in (0, 1):
            args = {
                **bench.probe.args,
                queries[0]: _one_hot(here, queries[0], 0, q_on),
                keys[0]: _one_hot(here, keys[0], 1, k_on),
            }
            trace = record(bench.instance, bench.probe, bench.sizes, args=args)
            if isinstance(trace, Crash) or trace.crash or not trace.sites:
                return None
            site = trace.sites[0]
            found = weighing(here, site.scores, site.axis)
            if found is None:
                return None
            seen[q_on, k_on] = found
    with np.errstate(invalid="ignore"):
        mixed = seen[1, 1] - seen[1, 0] - seen[0, 1] + seen[0, 0]
    if not np.isfinite(mixed).all() or np.abs(mixed).max() > 1e-7:
        return _same_array(bench, here, float(mixed[0, 0, 0, 0]))
    return fails("RG504", "the general score pairs each feature with its own alone")


def _same_array(bench: Bench, here: Layout, entry: float) -> Verdict | None:
    """Whether entry (0, 1) of the bilinear form is that of the one square learned array."""
    module = bench.instance.module
    bare = [
        p.detach().double().numpy()
        for n, p in (module.named_parameters() if module is not None else ())
        if "." not in n and p.dim() == 2 and p.shape[0] == p.shape[1]
    ]
    bare += [
        v
        for n, v in bench.probe.args.items()
        if layout(bench).is_learned(n) and np.ndim(v) == 2 and v.shape[0] == v.shape[1]
    ]
    if len(bare) == 1 and abs(float(bare[0][0, 1]) - entry) > 1e-4:
        return fails("RG504", "the general score reads its array transposed")
    return holds()


def _one_hot(here: Layout, name: str, feature: int, on: int) -> np.ndarray:
    axes = here.inputs[name]
    value = np.zeros(axes.shape)
    if on:
        value[..., feature] = 1.0
    return value.reshape(here.probe.args[name].shape)
