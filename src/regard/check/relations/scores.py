"""The scores: the declared form and scale, measured where the code makes them."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.oracle import declared_scale
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.capped import cap, is_capped
from regard.check.relations.operands import BENDS, bend_above, learned
from regard.check.relations.reading import VIEWS, Reading, readings
from regard.check.relations.rotated import before_rotation

__all__ = ["form", "normalised", "scale"]


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
        if cap(reading.site) is not None:
            continue  # no one factor leads to them
        asked = True
        slope *= before_rotation(bench, reading)
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
        if score in ("additive", "concat", "location"):
            asked = True
            verdict = _activation(bench, site)
            if verdict is not None:
                return verdict
        elif score in ("dot", "scaled_dot", "general") and not bench.contract.positions:
            if any(n.op == "mul" and _is_masked(n) for n in site.pre_ops):
                continue  # scores of 0 where a mask forbids; weights are taken away later
            asked = True
            late = next((n for n in site.pre_ops if n.op in BENDS), None)
            width = 0 if reading.key is None else reading.key.shape[-1]
            if is_capped(site, declared_scale(bench, width) if width else None):
                continue
            if late is not None:
                return fails(
                    "RG504",
                    f"{late.op} bends the scores; a {score} score is a plain product",
                    level="note" if _is_bound(late) else "warning",
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


@relation("normalised-features", "normalised queries and keys have one length", cost=1)
def normalised(bench: Bench) -> Verdict | None:
    """Find what is normalised before the product, and measure along what the product sums."""
    asked = False
    for reading in readings(bench):
        sides = ((reading.site.query, reading.query), (reading.site.key, reading.key))
        for node, array in sides:
            made = node
            while made is not None and made.op in VIEWS and made.inputs:
                made = made.inputs[0]
            if made is None or made.op != "normalize" or array is None:
                continue
            asked = True
            length, merged = (np.sqrt((array**2).sum(axis=axis)) for axis in (-1, (1, -1)))
            # In groups of features each has length 1, and all together one length, not 1.
            if np.ptp(length) < 1e-2 * length.max() or np.abs(merged - 1.0).max() < 1e-2:
                continue
            return fails(
                "RG504",
                "what is multiplied is normalised over another axis than the product sums over",
                level="warning",
                about=made.name,
                lines=(made.line,),
                measured=(
                    Measurement(
                        "length along the features",
                        f"{length.min():.3g} to {length.max():.3g}",
                        "must be one",
                    ),
                ),
                depends_on=("inputs",),
                hidden="every shape is right and nothing raises",
            )
    return holds() if asked else None


def _is_bound(node: Any) -> bool:
    """Whether tanh only bounds the scores: it is multiplied by the largest one allowed."""
    return node.op == "tanh" and any(
        u.op == "mul" and all(i is node or not i.sources for i in u.inputs) for u in node.uses
    )


def _is_masked(node: Any) -> bool:
    """Whether an operand of a product is a mask of zeros and ones."""
    return any(np.isin(np.unique(i.value), (0.0, 1.0)).all() for i in node.inputs if i.shape)


def _activation(bench: Bench, site: Any) -> Verdict | None:
    wanted = bench.contract.activation
    late = next((n for n in site.pre_ops if n.op in BENDS), None)
    own = learned(bench)
    # A bent learned vector bends no pair of query and key.
    pairs = [
        n
        for n in site.product.inputs
        if any(s.startswith("input:") and s not in own for s in n.sources)
    ]
    bends = (bend_above(n, own) for n in pairs)
    found = next((b for b in bends if b is not None), None)
    if found is not None and found.op == wanted and late is None:
        times = found.inputs[0] if found.inputs else found
        while times.op in ("view", "reshape", "transpose", "permute", "neg") and times.inputs:
            times = times.inputs[0]
        both = [
            any(s.startswith("input:") and s not in own for s in n.sources)
            for n in times.inputs
        ]
        if times.op == "mul" and len(both) == 2 and all(both):
            return fails(
                "RG504",
                "query and key are multiplied where an additive score adds them",
                level="error",
                lines=(times.line,),
                depends_on=("score",),
                hidden="every shape is right and nothing raises",
            )
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


def _scaled(bench: Bench, reading: Reading, slope: float, wanted: float, width: int) -> Verdict:
    model = width * reading.heads
    root = width**0.5
    measured = (Measurement("scores / (query . key)", f"{slope:.4g}", f"must be {wanted:.4g}"),)
    declared = bench.contract.score
    text = (
        f"scores are {slope:.3g} times query . key; {declared} with {width} features asks for "
    )
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
    declares = bench.contract.scale is not None
    return fails(
        code,
        text,
        level="warning",
        measured=measured,
        about=reading.site.scores.name,
        lines=tuple(dict.fromkeys([*scaling, reading.site.scores.line])),
        depends_on=("scale",) if declares else ("score",),
        hidden="every shape is right; the weights are only too sharp or too even",
    )
