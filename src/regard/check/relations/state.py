"""A call depends on its arguments alone: no dice, no memory of earlier calls."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.probe import Probe
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.subject import Outcome

__all__ = ["forgets", "repeatable"]


@relation("eval-repeatable", "the same call twice in eval mode gives the same", cost=1)
def repeatable(bench: Bench) -> Verdict | None:
    """Call again with another state of the random generators."""
    for seed in (1,):
        again = bench.instance.call(bench.probe.args, seed=seed)
        name = _differs(bench, again)
        if name:
            return fails(
                "RG803",
                f"`{name}` differs between two equal calls in eval mode",
                about=name,
                measured=(Measurement("change between two equal calls", *_gap(bench, again)),),
                hidden="every single result looks right; evaluation is random",
            )
    return holds()


@relation(
    "used-equals-fresh",
    "an object that was used gives what a fresh one gives",
    cost=2,
    everywhere=False,
)
def forgets(bench: Bench) -> Verdict | None:
    """Compare a fresh object with one that has served other calls, sizes and values."""
    used = bench.fresh()
    fresh = used.call(bench.probe.args)
    name = _differs(bench, fresh)
    if name:
        return _kept(bench, name, fresh)
    smaller = {
        axis: bench.sizes[axis] - 1
        for axis in ("batch", "T_enc", "T_dec", "T")
        if axis in bench.contract.every_axis and axis not in bench.contract.sizes
    }
    other = Probe(bench.contract, bench.sizes.with_(**smaller), seed=7)
    used.call(other.args)
    used.call(Probe(bench.contract, bench.sizes, seed=8).args)
    after = used.call(bench.probe.args)
    name = _differs(bench, after)
    return _kept(bench, name, after) if name else holds()


def _kept(bench: Bench, name: str, other: object) -> Verdict:
    values = [n for n, v in bench.contract.values.items() if isinstance(v, list)]
    after = f" with another `{values[0]}`" if values else ""
    return fails(
        "RG803",
        f"`{name}` depends on an earlier call{after}: something is kept that should not be",
        about=name,
        measured=(Measurement("used against fresh", *_gap(bench, other)),),
        hidden="the first call is right",
    )


def _differs(bench: Bench, other: object) -> str:
    if not isinstance(other, Outcome):
        return bench.out.names[0] if bench.out.names else "the result"
    for name, a, b in zip(bench.out.names, bench.out.outputs, other.outputs, strict=False):
        if a is not None and b is not None and a.dtype != object and not near(b, a, 1e-5):
            return name
    return ""


def _gap(bench: Bench, other: object) -> tuple[str, str]:
    if not isinstance(other, Outcome):
        return "raises", "must be 0"
    gap = max(
        float(np.nanmax(np.abs(a.astype(float) - b)))
        for a, b in zip(bench.out.outputs, other.outputs, strict=False)
        if a is not None and b is not None and a.shape == b.shape and a.size
    )
    return f"{gap:.3g}", "must be 0"
