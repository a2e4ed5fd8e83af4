"""Padding that is told by rows of zeros: a row is padding only where every feature is 0."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import layout

__all__ = ["zero_rows"]


@relation("zero-rows-alone", "a row is padding only where every feature is 0", cost=1)
def zero_rows(bench: Bench) -> Verdict | None:
    """Make a real row sum to zero, negative, or zero in single features: it stays real."""
    here = layout(bench)
    for name, kind in bench.contract.kinds.items():
        if kind != "zero_padded" or not here.keys:
            continue
        axes = here.inputs[name]
        at = axes.at(*here.keys)
        if len(at) != 1 or at[0] != len(axes.shape) - 2:
            continue
        d = axes.shape[-1]
        whole = np.round(np.clip(bench.probe.noise(name, (d,), 21), -2, 2) * 8) / 8
        whole[whole == 0] = 0.5
        balanced = whole.copy()
        balanced[-1] -= balanced.sum()  # eighths: the sum is 0 in any order and precision
        rows = {
            "whose features sum to 0": balanced,
            "of negative features": -np.abs(whole),
            "whose first feature is 0": np.r_[0.0, whole[1:]],
            "whose last feature is 0": np.r_[whole[:-1], 0.0],
        }
        for what, row in rows.items():
            plain, louder = (bench.probe.args[name].copy() for _ in range(2))
            plain.reshape(axes.shape)[..., 0, :] = row
            louder.reshape(axes.shape)[..., 0, :] = row * 2.0
            out, other = bench.ok(**{name: plain}), bench.ok(**{name: louder})
            if out is None or other is None:
                continue
            for result in here.contexts():
                a, b = here.context(out, result), here.context(other, result)
                if a is None or b is None or (np.abs(a - b).max(axis=(1, 2)) > 1e-6).all():
                    continue
                return fails(
                    "RG202",
                    f"a real row of `{name}` {what} is taken for padding",
                    about=name,
                    measured=(
                        Measurement("change when that row doubles", "0", "must not be 0"),
                    ),
                    depends_on=(f"kinds.{name}",),
                    hidden="rows drawn at random never sum to 0; real features do",
                )
    return holds() if "zero_padded" in bench.contract.kinds.values() else None
