"""Examples of one batch have nothing to do with each other."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.subject import Crash, Outcome

__all__ = ["alone", "apart", "one_example"]


@relation("example-alone", "f(examples)[b] = f(examples[b])", cost=2)
def alone(bench: Bench) -> Verdict | None:
    """Run single examples and compare them with their rows in the batch."""
    here = layout(bench)
    if not here.has_batch or "batch" in bench.contract.sizes:
        return None
    single = bench.case.bench(bench.sizes.which, batch=1)
    for b in (here.batch - 1, 1):
        out = single.instance.call(one_example(here, b))
        if isinstance(out, Crash):
            return fails(
                "RG105",
                f"one example alone raises {out.kind}; in a batch it runs",
                lines=tuple(reversed(out.lines)),
                quote=out.message,
                hidden="the code runs while batch > 1",
            )
        difference = _differs(here, layout(single), bench.out, out, b)
        if difference:
            name, gap = difference
            return fails(
                "RG802",
                f"`{name}` of an example depends on the batch it is in",
                about=name,
                measured=(Measurement("alone against in a batch", f"{gap:.3g}", "must be 0"),),
                hidden="a batch of one is right; every shape is right",
            )
    return holds()


@relation("examples-apart", "another example's content changes nothing", cost=2)
def apart(bench: Bench) -> Verdict | None:
    """Change the content of one example and watch the others."""
    here = layout(bench)
    if not here.has_batch:
        return None
    for b in (0, here.batch - 1):
        changes = {
            n: here.noised(n, batch=b) for n in here.content if here.inputs[n].at("batch")
        }
        out = bench.ok(**changes)
        if not changes or out is None:
            return None
        for name in bench.contract.out_names:
            pair = _pair(here, here, bench.out, out, name)
            if pair is None:
                continue
            others = [i for i in range(here.batch) if i != b]
            if not near(pair[1][others], pair[0][others], _loose(bench)):
                gap = np.abs(pair[1][others] - pair[0][others]).max()
                return fails(
                    "RG801",
                    f"`{name}` of one example changes with another example's content",
                    about=name,
                    measured=(
                        Measurement("change in the other examples", f"{gap:.3g}", "must be 0"),
                    ),
                    hidden="a batch of one is right; every shape is right",
                )
    return holds()


def one_example(here: Layout, b: int) -> dict[str, Any]:
    """The arguments of the plain run, cut down to example ``b``."""
    args: dict[str, Any] = {}
    for name, value in here.probe.args.items():
        axes = here.inputs[name]
        at = axes.at("batch")
        if not at or name in here.contract.values:
            args[name] = value
        elif isinstance(value, list):
            args[name] = [value[b]]
        elif isinstance(value, tuple):
            args[name] = tuple(_cut(v, axes, at[0], b) for v in value)
        else:
            args[name] = _cut(value, axes, at[0], b)
    return args


def _cut(value: np.ndarray, axes: Any, at: int, b: int) -> np.ndarray:
    opened = value.reshape(axes.shape).take([b], axis=at)
    sizes = [1] * (max(axes.token) + 1)
    for token, size in zip(axes.token, opened.shape, strict=True):
        sizes[token] *= size
    return opened.reshape(sizes)


def _pair(
    here: Layout, there: Layout, a: Outcome, b: Outcome, name: str
) -> tuple[np.ndarray, np.ndarray] | None:
    if name == here.contract.weights:
        x, y = here.alignment(a), there.alignment(b)
    else:
        x, y = here.context(a, name), there.context(b, name)
    return None if x is None or y is None else (x, y)


def _differs(
    here: Layout, there: Layout, a: Outcome, single: Outcome, b: int
) -> tuple[str, float] | None:
    for name in here.contract.out_names:
        pair = _pair(here, there, a, single, name)
        if pair is None or pair[0].shape[0] != here.batch:
            continue
        if not near(pair[1][0], pair[0][b], _loose(here.bench)):
            return name, float(np.abs(pair[1][0] - pair[0][b]).max())
    return None


def _loose(bench: Bench) -> float:
    return 2e-2 if bench.contract.dtype in ("float16", "bfloat16") else 1e-4
