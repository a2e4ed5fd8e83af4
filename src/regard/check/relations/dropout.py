"""Dropout: of weights and not of scores, in training and not in evaluation."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.reading import used_weights
from regard.check.subject import Crash, Instance, Outcome

__all__ = ["drops_in_training", "on_weights"]


@relation(
    "dropout-on-weights", "in training, weights are 0 or w / (1 - p)", everywhere=False, cost=3
)
def on_weights(bench: Bench) -> Verdict | None:
    """Record a run in training mode and see what is dropped."""
    if not _rates(bench):
        return None
    trace = _training_trace(bench)
    if trace is None:
        return None
    if trace.crash is not None:
        return fails(
            "RG101",
            f"in training mode the code raises {trace.crash.kind}",
            lines=tuple(reversed(trace.crash.lines)),
            quote=trace.crash.message,
            hidden="evaluation mode runs",
        )
    live = trace.live()
    for site in trace.sites:
        if site.weights.index not in live:
            continue
        dropped = next((n for n in site.pre_ops if n.op == "dropout"), None)
        if dropped is not None and _acts(dropped):
            return fails(
                "RG504",
                "dropout acts on the scores: a dropped key gets score 0 and so a weight, not "
                "weight 0",
                about=site.scores.name,
                lines=(dropped.line,),
                hidden="evaluation is right; only training differs",
            )
        verdict = _rescaled(site, _hidden_late(bench, site))
        if verdict is not None:
            return verdict
    return holds() if trace.sites else None


def _hidden_late(bench: Bench, site: Any) -> np.ndarray | bool:
    """Which weights of a softmax a mask behind it takes, told by the run without dropout."""
    plain = bench.trace
    if plain is None or isinstance(plain, Crash) or site.index >= len(plain.sites):
        return False
    same = plain.sites[site.index]
    before, after = same.weights.value, used_weights(same).value
    if before.shape != after.shape or before.shape != site.weights.value.shape:
        return False
    return np.asarray((np.abs(before) > 1e-6) & (np.abs(after) <= 1e-6))


def _rescaled(site: Any, hidden: np.ndarray | bool) -> Verdict | None:
    """What dropout leaves must make up for what it takes."""
    before, after = site.weights.value, used_weights(site).value
    if before.shape != after.shape or np.array_equal(before, after):
        return None
    fine = (before > 1e-6) & ~np.asarray(hidden)
    ratio = after[fine] / before[fine]
    left = ratio[np.abs(ratio) > 1e-6]
    if left.size in (0, ratio.size) or left.max() - left.min() > 1e-3 * left.max():
        return None  # a late mask or a renormalisation, no dropout
    share = left.size / ratio.size
    if abs(float(left.mean()) * share - 1.0) < 0.3:
        return None
    return fails(
        "RG303",
        f"dropout leaves {share:.0%} of the weights and scales them by {left.mean():.2f}",
        level="warning",
        about=site.weights.name,
        measured=(Measurement("factor", f"{left.mean():.3f}", f"must be {1 / share:.2f}"),),
        lines=(used_weights(site).line,),
        hidden="evaluation is right; training sees smaller contexts",
    )


@relation(
    "drops-in-training",
    "with a dropout rate, training is random",
    strict=True,
    everywhere=False,
    cost=2,
)
def drops_in_training(bench: Bench) -> Verdict | None:
    """Run twice in training mode with other random numbers."""
    if not any(p > 0 for p in _rates(bench)):
        return None
    made = Instance(bench.case.loaded, bench.contract.with_(mode="train"), bench.sizes)
    one, two = (made.call(bench.probe.args, seed=s) for s in (0, 1))
    if not isinstance(one, Outcome) or not isinstance(two, Outcome):
        return None
    for a, b in zip(one.outputs, two.outputs, strict=False):
        if a is not None and b is not None and a.shape == b.shape and not np.array_equal(a, b):
            return holds()
    return fails("RG803", "nothing is dropped in training although a rate is given")


def _rates(bench: Bench) -> list[float]:
    """Rates of the module's dropout parts."""
    module = bench.instance.module
    if module is None:
        return []
    rates = [float(m.p) for m in module.modules() if type(m).__name__.startswith("Dropout")]
    rates += [
        float(v)
        for m in module.modules()
        for n, v in vars(m).items()
        if isinstance(v, float) and ("drop" in n or n == "p") and 0 <= v < 1
    ]
    return rates


def _training_trace(bench: Bench) -> Any:
    from regard.check.trace import record  # noqa: PLC0415 - needs torch

    training = bench.contract.with_(mode="train")
    made = Instance(bench.case.loaded, training, bench.sizes)
    if bench.contract.mode != "train":
        _set_rates(made.module)
    found = record(made, bench.probe, bench.sizes)
    return None if isinstance(found, Crash) else found


def _set_rates(module: Any) -> None:
    """A rate of zero, as contracts like to ask for, would drop nothing."""
    for part in module.modules():
        if type(part).__name__.startswith("Dropout") and part.p == 0:
            part.p = 0.3


def _acts(node: Any) -> bool:
    return bool(node.inputs) and not np.array_equal(node.value, node.inputs[0].value)
