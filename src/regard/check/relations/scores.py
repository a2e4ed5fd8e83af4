"""The scores: the declared form and scale, measured where the code makes them."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.oracle import declared_scale
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.reading import Reading, readings, weighing
from regard.check.subject import Crash

__all__ = ["form", "found", "general", "heads", "met", "once", "over_keys", "plain", "rises", "scale"]

_ACTIVATIONS = frozenset(
    {"tanh", "relu", "sigmoid", "gelu", "silu", "leaky_relu", "elu", "softplus", "cos", "sin"}
)
_VIEWS = frozenset(
    {"view", "reshape", "transpose", "permute", "T", "mT", "unsqueeze", "squeeze", "flatten"}
    | {"unflatten", "contiguous", "expand", "to", "clone", "identity", "getitem", "dropout"}
    | {"masked_fill", "where", "mul", "div", "add", "sub", "neg", "nan_to_num", "clamp", "setitem"}
)
_JOINS = frozenset(
    {"view", "reshape", "transpose", "permute", "T", "mT", "unsqueeze", "squeeze", "flatten"}
    | {"unflatten", "contiguous", "expand", "to", "clone", "identity", "getitem", "dropout"}
    | {"chunk", "split", "unbind", "repeat", "repeat_interleave", "select", "movedim"}
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


@relation("softmax-over-keys", "each softmax runs over the axis of the keys", cost=1)
def over_keys(bench: Bench) -> Verdict | None:
    """Read the name of every softmax's axis."""
    here = layout(bench)
    trace = bench.trace
    if trace is None or isinstance(trace, Crash) or not here.keys or here.is_self:
        return None
    live = trace.live()
    keys = {*here.keys, "*".join(here.keys)}
    asked = False
    for site in trace.sites:
        names = site.weights.axes
        if site.weights.index not in live or not keys & set(names):
            continue
        axes = {site.axis} if isinstance(site.axis, int) else set(site.axis or range(len(names)))
        over = [names[i] for i in sorted(axes) if names[i] != "1"]
        asked = True
        if keys & set(over) and len(over) == len(here.keys):
            continue
        if not over and 1 in {site.weights.shape[i] for i in axes}:
            over = ["an axis of size 1"]
        if set(over) <= keys:
            continue
        return fails(
            "RG301",
            f"the softmax runs over {', '.join(over)}; each query's weights must sum to 1 over "
            f"{here.key_name}",
            about=site.weights.name,
            lines=(site.span.line,) if site.span else (),
            hidden="every shape is right and nothing raises",
        )
    return holds() if asked else None


@relation("exponent-rises", "weights rise with the scores", cost=1)
def rises(bench: Bench) -> Verdict | None:
    """Find exponentials of `max - scores`."""
    trace = bench.trace
    if trace is None or isinstance(trace, Crash):
        return None
    for node in trace.nodes:
        if node.op not in ("exp", "exp2") or not node.inputs:
            continue
        inner = node.inputs[0]
        if inner.op != "sub" or len(inner.inputs) != 2:
            continue
        first = inner.inputs[0]
        while first.op in ("getitem", "unsqueeze", "view", "reshape", "expand") and first.inputs:
            first = first.inputs[0]
        if first.op in ("max", "amax", "max2") and first.inputs:
            return fails(
                "RG303",
                "the exponent is the maximum less the score: the largest score weighs least",
                lines=(inner.line,),
                hidden="weights still sum to 1",
            )
    return holds() if trace.sites else None


@relation("values-met", "the weights meet values in a sum", strict=True, cost=1)
def met(bench: Bench) -> Verdict | None:
    """Every softmax that a context comes from is contracted with values."""
    here = layout(bench)
    trace = bench.trace
    if trace is None or isinstance(trace, Crash) or bench.contract.score in ("none", None):
        return None
    plain = [r for r in bench.contract.returns if r.name in set(here.contexts())]
    if not plain or not trace.sites:
        return None
    live = trace.live()
    for site in trace.sites:
        if site.weights.index in live and site.contraction is None:
            return fails("RG304", "weights meet no values", lines=(site.weights.line,))
    return holds()


@relation("softmax-found", "weights come from a softmax", strict=True, cost=1)
def found(bench: Bench) -> Verdict | None:
    """See that there is one at all, and that its axes can be read."""
    trace = bench.trace
    if trace is None or isinstance(trace, Crash) or bench.contract.score is None:
        return None
    if bench.instance.library == "lists":
        return None
    live = trace.live()
    if not any(s.weights.index in live for s in trace.sites):
        return fails("RG303", "no result comes from a softmax")
    return holds()


@relation("sums-and-products-plain", "operands of a score are sums of projections", strict=True,
          cost=1)
def plain(bench: Bench) -> Verdict | None:
    """Walk back from the scores: nothing bends, multiplies or subtracts on the way."""
    trace = bench.trace
    score = bench.contract.score
    if trace is None or isinstance(trace, Crash):
        return None
    asked = False
    for site in trace.sites:
        if score in ("dot", "scaled_dot", "general"):
            for node in (site.query, site.key):
                if node is None:
                    continue
                asked = True
                bent = _bent(node)
                if bent is not None:
                    return fails("RG504", f"{bent.op} bends an operand", lines=(bent.line,))
        elif score in ("additive", "concat") and site.product is not None:
            bend = next((b for b in map(_bend_above, site.product.inputs) if b), None)
            if bend is None or not bend.inputs:
                continue
            asked = True
            odd = _not_summed(bend.inputs[0])
            if odd is not None:
                return fails("RG504", f"{odd.op} joins the projections", lines=(odd.line,))
    return holds() if asked else None


def _bent(node: Any) -> Any:
    """An activation between an operand and the projections and states it is made of."""
    stack, seen = [node], set()
    while stack:
        one = stack.pop()
        if one.index in seen or not any(s.startswith("input:") for s in one.sources):
            continue
        seen.add(one.index)
        if one.op in _ACTIVATIONS | {"exp", "softmax", "abs", "pow", "square"}:
            return one
        if one.op in _JOINS | {"mul", "div", "add", "sub", "cat", "stack"}:
            stack += one.inputs
    return None


def _bend_above(node: Any) -> Any:
    for _ in range(12):
        if node.op in _ACTIVATIONS:
            return node
        if node.op not in _VIEWS or not node.inputs:
            return None
        node = node.inputs[0]
    return None


def _not_summed(node: Any) -> Any:
    stack = [node]
    for _ in range(30):
        if not stack:
            return None
        one = stack.pop()
        if one.op in ("mul", "sub", "div") and len(one.inputs) == 2:
            return one
        if one.op in _JOINS | {"add", "mul", "div"}:
            stack += one.inputs
    return None


@relation("heads-declared", "there are as many heads as declared", cost=1)
def heads(bench: Bench) -> Verdict | None:
    """Count the heads of each softmax."""
    if "heads" not in [*bench.contract.init.values(), *bench.contract.values.values()]:
        return None
    declared = bench.sizes["heads"]
    asked = False
    for reading in readings(bench):
        asked = True
        if reading.weights.shape[1] != declared:
            return fails(
                "RG401",
                f"the softmax has {reading.weights.shape[1]} heads; {declared} are declared",
                about=reading.site.weights.name,
                lines=(reading.site.scores.line,),
                depends_on=("init",),
                hidden="every shape is right and nothing raises",
            )
    return holds() if asked else None


@relation("general-mixes", "score = query^T W key, with every entry of W", strict=True, cost=2,
          everywhere=False)
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
        if bench.probe.is_parameter(n) and np.ndim(v) == 2 and v.shape[0] == v.shape[1]
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
        times = found.inputs[0] if found.inputs else found
        while times.op in ("view", "reshape", "transpose", "permute") and times.inputs:
            times = times.inputs[0]
        both = [any(s.startswith("input:") for s in n.sources) for n in times.inputs]
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
