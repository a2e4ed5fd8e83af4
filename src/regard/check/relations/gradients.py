"""The derivative that the code gives against the one that its results have."""

import re
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Case, Verdict, fails, holds, relation
from regard.check.relations.layout import layout
from regard.check.relations.numerics import without_keys
from regard.check.subject import Crash, Outcome

__all__ = ["derivative", "finite", "hidden_keys"]

_OWN = re.compile(r"\bbackward\b|\bdetach\b|\bno_grad\b|\.data\b|register_hook|stop_gradient")
# A step has no derivative; that of what is smooth beside it is lent to it on purpose.
# Steps of a difference quotient and the share by which it may be off.
_FINE, _WIDER, _COARSE = (1e-5, 1e-3), (1e-2, 5e-3), (1e-2, 0.1)
_STEPS = re.compile(r"\bone_hot\b|\bargmax\b|\bround\(|\bsign\(|\bbernoulli\b")


@relation("gradient-finite", "a finite result has a finite gradient", cost=3, everywhere=False)
def finite(bench: Bench) -> Verdict | None:
    """Ask for gradients, where queries without keys may occur also of such a query."""
    if bench.instance.library != "torch" or not _is_finite(bench.out):
        return None
    here, args = layout(bench), bench.probe.args
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [({}, ())]
    if bench.contract.all_masked == "zeros":
        for name in here.key_masks():
            emptied = without_keys(here, name) if _is_array(args[name]) else None
            if emptied is not None:
                cases.append(({name: emptied}, ("all_masked", f"kinds.{name}")))
    for changes, depends_on in cases:
        out = bench.ok(**changes)
        found = bench.instance.gradients({**args, **changes})
        if out is None or not _is_finite(out) or isinstance(found, Crash):
            continue
        for name, gradient in found.items():
            if gradient is None or np.isfinite(gradient).all():
                continue
            short = name.split(":", 1)[1]
            rare = ", where a query has no key to attend to" if changes else ""
            return fails(
                "RG702",
                f"the gradient of `{short}` is not finite while the result is{rare}",
                about=short,
                measured=(Measurement(f"gradient of {short}", "NaN", "must be finite"),),
                depends_on=depends_on,
                hidden="every result and the loss are finite; the parameters are NaN next",
            )
    return holds()


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _is_finite(out: Outcome) -> bool:
    arrays = [a for a in out.outputs if a is not None and a.dtype.kind == "f"]
    return all(bool(np.isfinite(a).all()) for a in arrays)


@relation("gradient-of-hidden-keys", "d result / d key = 0 for a key that is hidden", cost=3)
def hidden_keys(bench: Bench) -> Verdict | None:
    """Where the code cuts gradients or has a backward, ask for those of padding."""
    here, source = layout(bench), bench.case.loaded.source
    if bench.instance.library != "torch" or not _OWN.search(source) or here.is_self:
        return None
    allowed = here.allowed().any(axis=1)
    if here.joined or not here.has_batch or allowed.all() or not here.key_masks():
        return None
    found = bench.instance.gradients(bench.probe.args)
    if isinstance(found, Crash):
        return None
    for name in here.key_parts():
        gradient, axes = found.get(f"input:{name}"), here.inputs[name]
        batch, keys = axes.at("batch"), axes.at(*here.keys)
        if gradient is None or len(batch) != 1 or len(keys) != len(here.keys):
            continue
        rest = tuple(i for i in range(len(axes.shape)) if i not in (*batch, *keys))
        moved = gradient.reshape(axes.shape).transpose(*batch, *keys, *rest)
        leak = np.abs(moved.reshape(*allowed.shape, -1)).max(axis=-1)[~allowed].max()
        if leak > 1e-6 * max(1.0, float(np.abs(gradient).max())):
            return fails(
                "RG703",
                f"a gradient reaches padding of `{name}`, which no query may attend to",
                about=name,
                measured=(Measurement("gradient of hidden keys", f"{leak:.3g}", "must be 0"),),
                depends_on=tuple(f"kinds.{n}" for n in here.key_masks()),
                hidden="no result shows it: changing a hidden key changes nothing",
            )
    return holds()


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
    fine = wide is not bench
    for name in wide.probe.floats():
        gradient = found.get(f"input:{name}")
        value = wide.probe.args[name]
        if wide.contract.kinds.get(name) is not None:
            continue
        toward = wide.probe.noise(name, value.shape, 31)
        claimed = 0.0 if gradient is None else float((gradient * toward).sum())
        slope = _unlike(wide, name, toward, claimed, _FINE if fine else _COARSE)
        # What is reckoned in single precision inside has slopes over wider steps alone.
        if slope is not None and fine:
            slope = _unlike(wide, name, toward, claimed, _WIDER)
        if slope is not None:
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


def _unlike(
    bench: Bench, name: str, toward: np.ndarray, claimed: float, how: tuple[float, float]
) -> float | None:
    """The slope of the results along a direction, where it is not the claimed one.

    ``how`` is the step to either side and the share by which they may differ.
    """
    step, slack = how
    value = bench.probe.args[name]
    sides = [bench.ok(**{name: value + sign * step * toward}) for sign in (1, -1)]
    if sides[0] is None or sides[1] is None:
        return None
    slope = (_weighed(sides[0]) - _weighed(sides[1])) / (2 * step)
    size = max(abs(slope), abs(claimed))
    return slope if size > 1e-3 and abs(slope - claimed) > slack * size else None


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
