"""The scores: the declared form and scale, measured where the code makes them."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.oracle import declared_scale
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import layout
from regard.check.relations.reading import Reading, readings
from regard.check.subject import Crash

__all__ = ["form", "once", "scale"]

_ACTIVATIONS = frozenset(
    {"tanh", "relu", "sigmoid", "gelu", "silu", "leaky_relu", "elu", "softplus", "cos", "sin"}
)
_VIEWS = frozenset(
    {"view", "reshape", "transpose", "permute", "T", "mT", "unsqueeze", "squeeze", "flatten"}
    | {"unflatten", "contiguous", "expand", "to", "clone", "identity", "getitem", "dropout"}
    | {"masked_fill", "where", "mul", "div", "add", "sub", "neg", "nan_to_num", "clamp", "setitem"}
)


@relation("score-scale", "scores = scale * query . key, with the declared scale", cost=1)
def scale(bench: Bench) -> Verdict | None:
    """Measure the factor from the product of query and key to the scores."""
    asked = False
    for reading in readings(bench):
        if reading.query is None or reading.key is None:
            continue
        width = reading.key.shape[-1]
        wanted = declared_scale(bench, width)
        slope, r2 = reading.site.slope, reading.site.r2
        if wanted is None or slope is None or r2 is None or r2 < 0.99:
            continue
        asked = True
        if abs(slope / wanted - 1.0) > 0.02:
            return _scaled(bench, reading, slope, wanted, width)
    return holds() if asked else None


@relation("score-form", "scores have the declared form", cost=1)
def form(bench: Bench) -> Verdict | None:
    """Find the activation of an additive score and see that a product is one."""
    score = bench.contract.score
    asked = False
    for reading in readings(bench):
        site = reading.site
        if site.product is None:
            continue
        if score in ("additive", "concat"):
            asked = True
            verdict = _activation(bench, site)
            if verdict is not None:
                return verdict
        elif score in ("dot", "scaled_dot", "general") and not bench.contract.positions:
            asked = True
            late = next((n for n in site.pre_ops if n.op in _ACTIVATIONS), None)
            if late is not None:
                return fails(
                    "RG504",
                    f"{late.op} bends the scores; a {score} score is a plain product",
                    level="warning",
                    lines=(late.line,),
                    depends_on=("score",),
                )
            if site.r2 is not None and site.r2 < 0.98:
                return fails(
                    "RG504",
                    "the scores are no multiple of query . key",
                    level="warning",
                    measured=(Measurement("r2 of scores", f"{site.r2:.3f}", "must be 1"),),
                    lines=(site.scores.line,),
                    depends_on=("score",),
                )
    return holds() if asked else None


@relation("softmax-once", "weights = softmax(scores), and scores are no weights", cost=1)
def once(bench: Bench) -> Verdict | None:
    """Walk back from each softmax: no other softmax may lie on the way."""
    trace = bench.trace
    if trace is None or isinstance(trace, Crash) or not trace.sites:
        return None
    earlier = {s.weights.index: s for s in trace.sites}
    live = trace.live()
    for site in trace.sites:
        node = site.scores
        if site.weights.index not in live:
            continue
        for _ in range(30):
            other = earlier.get(node.index)
            if other is not None and other is not site:
                return fails(
                    "RG302",
                    "the softmax is applied to weights that are normalised already",
                    about=site.weights.name or other.weights.name,
                    lines=(site.span.line,) if site.span else (),
                    measured=(
                        Measurement(
                            "largest weight", f"{site.weights.value.max():.3f}", "may reach 1"
                        ),
                    ),
                    hidden="weights still sum to 1; they only are nearly even",
                )
            if node.op not in _VIEWS or not node.inputs:
                break
            node = node.inputs[0]
    return holds()


def _activation(bench: Bench, site: Any) -> Verdict | None:
    wanted = bench.contract.activation
    late = next((n for n in site.pre_ops if n.op in _ACTIVATIONS), None)
    found = None
    for operand in site.product.inputs[:2]:
        node = operand
        for _ in range(12):
            if node.op in _ACTIVATIONS:
                found = node
                break
            if node.op not in _VIEWS or not node.inputs:
                break
            node = node.inputs[0]
    if found is not None and found.op == wanted and late is None:
        return None
    if late is not None:
        text = f"{late.op} is applied to the scores, after the sum over d_attn"
    elif found is None:
        text = f"no {wanted} lies between the projections and the sum over d_attn"
    else:
        text = f"{found.op} stands where the declared score has {wanted}"
    return fails(
        "RG504",
        text,
        level="error" if found is None or late is not None else "warning",
        lines=((late or found or site.product).line,),
        depends_on=("score", "activation"),
        hidden="every shape is right and nothing raises",
    )


def _scaled(
    bench: Bench, reading: Reading, slope: float, wanted: float, width: int
) -> Verdict:
    model = width * reading.heads
    root = width**0.5
    measured = (
        Measurement("scores / (query . key)", f"{slope:.4g}", f"must be {wanted:.4g}"),
    )
    declared = bench.contract.score
    text = f"scores are {slope:.3g} times query . key; {declared} with {width} features asks for "
    text += f"{wanted:.3g}"
    code = "RG504"
    if reading.heads > 1 and abs(slope * model**0.5 - 1.0) < 0.02:
        code = "RG403"
        text = f"scores are scaled by the model's width {model}, not by the head's {width}"
    elif wanted != 1.0 and slope >= wanted * root * 0.9:
        code = "RG501"
    elif slope < wanted:
        code = "RG502"
    scaling = [n.line for n in reading.site.pre_ops if n.op in ("mul", "div")]
    has_heads = layout(bench).contract.scale is not None
    return fails(
        code,
        text,
        level="warning",
        measured=measured,
        about=reading.site.scores.name,
        lines=tuple(dict.fromkeys([*scaling, reading.site.scores.line])),
        depends_on=("scale",) if has_heads else ("score",),
        hidden="every shape is right; the weights are only too sharp or too even",
    )
