"""Each softmax: there is one, once, over the keys, and it rises with the scores."""

from typing import Any

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import layout
from regard.check.relations.raw import formula
from regard.check.relations.reading import VIEWS, readings
from regard.check.subject import Crash
from regard.check.trace.weighing import has_keys_of_its_own

__all__ = ["found", "heads", "is_consistent", "met", "once", "over_keys", "rises"]

# What carries weights on without joining them with values.
_CARRY = VIEWS | {
    *("getitem", "dropout", "masked_fill", "where", "mul", "div", "add", "sub", "neg"),
    *("nan_to_num", "clamp", "setitem"),
}


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
            if node.op not in _CARRY or not node.inputs:
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
        if site.contraction is None and not site.fused and bench.contract.weights is None:
            continue  # it weighs nothing here
        axes = (
            {site.axis} if isinstance(site.axis, int) else set(site.axis or range(len(names)))
        )
        over = [names[i] for i in sorted(axes) if names[i] != "1"]
        asked = True
        if keys & set(over) and len(over) == len(here.keys):
            continue
        if not over and 1 in {site.weights.shape[i] for i in axes}:
            over = ["an axis of size 1"]
        if set(over) <= keys or is_consistent(site, set(over)):
            continue
        if has_keys_of_its_own(site, here.n_keys):
            continue
        return fails(
            "RG301",
            f"the softmax runs over {', '.join(over)}; each query's weights must sum to 1 over "
            f"{here.key_name}",
            about=site.weights.name,
            lines=(site.span.line,) if site.span else (),
            depends_on=("inputs",),
            hidden="every shape is right and nothing raises",
        )
    return holds() if asked else None


def is_consistent(site: Any, over: set[str]) -> bool:
    """Whether the values are summed over the very axis that the softmax runs over.

    Then the roles are the other way round than they are called. A renormalisation after the
    softmax makes another axis the one that counts, and is right as well.
    """
    if any(
        n.op == "normalize" or (n.op == "div" and len(n.inputs) == 2) for n in site.post_ops
    ):
        return True
    node = site.contraction
    if node is None:
        return False
    carried = site.post_ops[-1] if site.post_ops else site.weights
    written = node.arguments.get("written")
    if isinstance(written, str) and any(i is carried for i in node.inputs):
        left, _, right = written.partition("->")
        at = next(i for i, n in enumerate(node.inputs) if n is carried)
        letters = left.split(",")[at] if at < left.count(",") + 1 else ""
        summed = {n for c, n in zip(letters, carried.axes, strict=False) if c not in right}
        return bool(summed) and summed - {"1"} == over
    if node.op == "sum" and node.inputs:
        kept = list(node.axes)
        summed = {n for n in node.inputs[0].axes if n not in kept}
        return summed - {"1"} == over
    return False


_LARGEST = ("max", "amax", "max2", "maximum")


def _behind(node: Any) -> Any:
    """What a view shows."""
    while node.op in ("getitem", "unsqueeze", "view", "reshape", "expand") and node.inputs:
        node = node.inputs[0]
    return node


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
        first, second = (_behind(n) for n in inner.inputs)
        # An earlier maximum less a later one rescales what was summed before.
        if first.op in _LARGEST and first.inputs and second.op not in _LARGEST:
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
    for site in trace.live_sites():
        if site.contraction is None:
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
    if trace.live_sites():
        return holds()
    if bench.contract.score == "none" or formula(bench) is not None:
        return None  # weights of another kind, or judged by what comes out
    return fails("RG303", "no result comes from a softmax")


@relation("heads-declared", "there are as many heads as declared", cost=1)
def heads(bench: Bench) -> Verdict | None:
    """Count the heads of each softmax."""
    if "heads" not in [*bench.contract.init.values(), *bench.contract.values.values()]:
        return None
    declared = bench.sizes["heads"]
    # Queries that no argument has, as learned ones, are counted with the heads.
    learned = not {"T", "T_dec"} & set(bench.contract.every_axis)
    here = layout(bench)
    found = [r for r in readings(bench) if r.weights.shape[3] == here.n_keys]
    # Heads that are modules of their own, or turns of a loop, have a softmax each.
    if len(found) % declared == 0 and all(r.weights.shape[1] == 1 for r in found):
        return holds() if found else None
    asked = False
    for reading in found:
        if reading.weights.shape[0] != here.batch and here.has_batch:
            continue  # heads and examples lie on one axis
        asked = True
        if learned and reading.weights.shape[1] % declared == 0:
            continue
        if reading.met is not None and reading.met.shape[1] == declared:
            continue  # several softmaxes a head, joined before they meet values
        if reading.weights.shape[1] != declared:
            # Several softmaxes a head may be subtracted or mixed: only the author knows.
            times, rest = divmod(reading.weights.shape[1], declared)
            stands = ("init", "heads") if times > 1 and not rest else ("init",)
            return fails(
                "RG401",
                f"the softmax has {reading.weights.shape[1]} heads; {declared} are declared",
                about=reading.site.weights.name,
                lines=(reading.site.scores.line,),
                depends_on=stands,
                hidden="every shape is right and nothing raises",
            )
    return holds() if asked else None
