"""The derivative that the code gives against the one that its results have."""

import re

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Case, Verdict, fails, holds, relation
from regard.check.subject import Crash, Outcome

__all__ = ["derivative"]

_OWN = re.compile(r"\bbackward\b|\bdetach\b|\bno_grad\b|\.data\b|register_hook|stop_gradient")
# A step has no derivative; that of what is smooth beside it is lent to it on purpose.
_STEPS = re.compile(r"\bone_hot\b|\bargmax\b|\bround\(|\bsign\(|\bbernoulli\b")


@relation(
    "gradient-is-derivative",
    "df . u = (f(x + h u) - f(x - h u)) / 2h",
    everywhere=False,
    cost=4,
)
def derivative(bench: Bench) -> Verdict | None:
    """Where the code has a backward of its own or cuts gradients, compare with differences."""
    loaded = bench.case.loaded
    if loaded.library != "torch" or not _OWN.search(loaded.source):
        return None
    if _STEPS.search(loaded.source):
        return None
    exact = Case(
        loaded, bench.contract.with_(dtype="float64", mode="eval"), seed=bench.case.seed
    )
    wide = exact.bench(bench.sizes.which)
    if isinstance(wide.base, Crash):
        wide = bench
    found = wide.instance.gradients(wide.probe.args)
    if isinstance(found, Crash):
        return None
    step = 1e-5 if wide is not bench else 1e-2
    for name in wide.probe.floats():
        gradient = found.get(f"input:{name}")
        value = wide.probe.args[name]
        if wide.contract.kinds.get(name) is not None:
            continue
        toward = wide.probe.noise(name, value.shape, 31)
        sides = [wide.ok(**{name: value + sign * step * toward}) for sign in (1, -1)]
        if sides[0] is None or sides[1] is None:
            continue
        slope = (_weighed(sides[0]) - _weighed(sides[1])) / (2 * step)
        claimed = 0.0 if gradient is None else float((gradient * toward).sum())
        size = max(abs(slope), abs(claimed))
        if size > 1e-3 and abs(slope - claimed) > (1e-3 if wide is not bench else 0.1) * size:
            return fails(
                "RG704",
                f"the gradient of `{name}` is not the derivative of the results",
                about=name,
                measured=(
                    Measurement(
                        "along one direction", f"{claimed:.4g}", f"must be {slope:.4g}"
                    ),
                ),
                hidden="the forward result is right; only learning goes astray",
            )
    return holds()


def _weighed(out: Outcome) -> float:
    """The weighing of results that :meth:`Instance.gradients` differentiates."""
    import torch  # noqa: PLC0415 - the code under test runs on it

    generator = torch.Generator().manual_seed(5)
    total = 0.0
    for array, kind in zip(out.outputs, out.dtypes, strict=True):
        if array is None or not kind.startswith(("float", "bfloat")):
            continue
        drawn = torch.randn(array.shape, generator=generator)
        weigh = drawn.to(getattr(torch, kind)).double().numpy()
        total += float(np.where(np.isfinite(array), array * weigh, 0.0).sum())
    return total
