"""Tokens that people marked: how much weight lies there, and how often the top one is one.

People's marks say what is plausible to them, not what the model used: a map can please and
hide.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.interval import Estimate
from regard.audit.measure import Columns, Measure, means_of
from regard.audit.protocol import Numbers
from regard.audit.ranking import leave_one_out, order, token_gradients
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "average_precision", "run"]


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return mass, hits and average precision on marked tokens; None where none are marked.

    Returns
    -------
    columns : dict
        ``attention.mass``, ``uniform.mass``; ``attention.hit``, ``leave-one-out.hit``,
        ``gradient.hit``, ``random.hit`` (its expectation); ``attention.precision``,
        ``leave-one-out.precision``.
    """
    left_out = leave_one_out(sample, chunk)
    gradients = token_gradients(sample, chunk)
    rows = []
    for row, number in enumerate(chunk):
        one = sample.inputs[number]
        weights = sample.weights[number]
        rankings = {"attention": weights, "leave-one-out": left_out[row].drop}
        if gradients is not None:
            rankings["gradient"] = gradients[row]
        names = [f"{name}.{figure}" for name in rankings for figure in ("hit", "precision")]
        names += ["attention.mass", "uniform.mass", "random.hit"]
        marked = sorted(one.gold or ())
        found: dict[str, float | None] = dict.fromkeys(names)
        if marked:
            generator = sample.random(number, "gold ties")
            for name, importance in rankings.items():
                ranked = order(importance, one.free, generator)
                found[f"{name}.hit"] = float(ranked[0] in marked)
                found[f"{name}.precision"] = average_precision(ranked, marked)
            found["attention.mass"] = float(weights[marked].sum())
            found["uniform.mass"] = len(marked) / len(one.tokens)
            found["random.hit"] = len(set(marked) & set(one.free)) / len(one.free)
        rows.append(found)
    return {name: [found[name] for found in rows] for name in rows[0]}


def average_precision(ranked: Sequence[int], marked: Sequence[int]) -> float:
    """Return the mean, over marked tokens, of the precision where each is met; 0 to 1."""
    wanted = set(marked)
    hits = np.cumsum([place in wanted for place in ranked])
    at = [k for k, place in enumerate(ranked) if place in wanted]
    if not at:
        return 0.0
    return float(sum(hits[k] / (k + 1) for k in at) / len(wanted))


def table(columns: Columns, seed: int) -> Table:
    """Return the means over inputs with marks."""

    def mean(name: str) -> float | None:
        return float(np.nanmean(_numbers(columns[name]))) if name in columns else None

    def estimated(name: str) -> Estimate:
        return means_of(columns, seed)(_numbers(columns[name]))

    others = [name for name in ("leave-one-out", "gradient") if f"{name}.hit" in columns]
    best = max(others, key=lambda name: mean(f"{name}.hit") or 0.0)
    rows = (
        Row(
            "weight on marked tokens",
            estimated("attention.mass"),
            random=mean("uniform.mass"),
        ),
        Row(
            f"top token is marked (best: {best})",
            estimated("attention.hit"),
            random=mean("random.hit"),
            best=mean(f"{best}.hit"),
        ),
        Row(
            f"average precision (best: {best})",
            estimated("attention.precision"),
            best=mean(f"{best}.precision"),
        ),
    )
    return Table(
        "gold_mass",
        "Weight on the tokens that people marked",
        "whether the map agrees with what people think matters",
        "whether the model used those tokens: plausible and faithful are two things",
        rows,
        gates=True,
    )


def missing(sample: Sample) -> str | None:
    """Return that nobody marked anything, or None."""
    return None if any(one.gold for one in sample.inputs) else "no input has marked tokens"


def _numbers(column: Sequence[Any]) -> Numbers:
    return np.asarray(column, dtype=np.float64)


MEASURE = Measure("gold_mass", run, table, missing)
