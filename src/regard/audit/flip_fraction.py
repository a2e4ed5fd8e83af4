"""Remove weights one after another until the answer flips, and count them.

Weights go in the order of attention, of their gradient, of attention times gradient, or at
random, and what is left is renormalised each time [1]_. Averages are over the inputs that flip
at all, so the share that never does stands beside them.

References
----------
.. [1] Serrano and Smith, "Is Attention Interpretable?", ACL 2019, section 5. arXiv:1906.03731
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.measure import Columns, Measure, means_of, needs_other_weights
from regard.audit.protocol import Numbers, ReadsOut, WeightDifferentiable
from regard.audit.ranking import order, random_orders
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "run", "weight_gradient"]

_SHUFFLES = 5
_RUN_AGAIN = 60  # inputs, where the model has to run for each weight removed
_ORDERS = ("attention", "gradient", "attention x gradient", "random")


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return the fraction of weights removed when the answer flips, None where it never does.

    Returns
    -------
    columns : dict
        By the order: ``attention``, ``gradient`` and ``attention x gradient`` where the case
        has gradients, ``random`` (mean over shuffles); and ``tried``: 0 where an input was
        passed over because the model would have to run too often.
    """
    exact = isinstance(sample.case, ReadsOut)
    gradients = _gradients(sample, chunk)
    orders: dict[str, list[list[list[int]]]] = {}
    tried = [float(exact or number < _RUN_AGAIN) for number in chunk]
    for row, number in enumerate(chunk):
        weights, free = sample.weights[number], sample.inputs[number].free
        generator = sample.random(number, "flip ties")
        orders.setdefault("attention", []).append([order(weights, free, generator)])
        if gradients is not None:
            slope = gradients[row]
            orders.setdefault("gradient", []).append([order(slope, free, generator)])
            product = [order(weights * slope, free, generator)]
            orders.setdefault("attention x gradient", []).append(product)
        orders.setdefault("random", []).append(random_orders(sample, number, _SHUFFLES))
    columns: dict[str, list[Any]] = {"tried": tried}
    for name, each in orders.items():
        fractions = [
            _fraction(sample, number, many) if there else None
            for number, many, there in zip(chunk, each, tried, strict=True)
        ]
        columns[name] = fractions
    return columns


def weight_gradient(scores: Numbers, answer: Numbers, predicted: int) -> Numbers:
    """Return the predicted class's gradient in the weights (T_enc,) of a linear read-out.

    Parameters
    ----------
    scores : (T_enc, outputs)
    answer : (classes,)
    predicted : int
    """
    if scores.shape[1] == 1:
        sign = 1.0 if predicted else -1.0
        found: Numbers = sign * answer[0] * answer[1] * scores[:, 0]
    else:
        found = answer[predicted] * (scores[:, predicted] - scores @ answer)
    return found


def table(columns: Columns, seed: int) -> Table:
    """Return the mean fraction of each order, and how many inputs never flip."""
    mean = means_of(columns, seed)
    tried = np.asarray(columns["tried"]) > 0
    rows = []
    for name in _ORDERS:
        if name not in columns:
            continue
        fractions = np.asarray(columns[name], dtype=np.float64)
        rows.append(Row(f"{name}: fraction removed", mean(np.where(tried, fractions, np.nan))))
        never = np.where(tried, np.isnan(fractions), np.nan)
        rows.append(Row(f"{name}: never flips", mean(never)))
    return Table(
        "flip_fraction",
        "Remove weights until the answer flips",
        "whether few of the largest weights hold the answer",
        "what the tokens do in their neighbours' states, and inputs that never flip, which are "
        "no part of the means",
        tuple(rows),
    )


def _gradients(sample: Sample, chunk: Sequence[int]) -> list[Numbers] | None:
    if isinstance(sample.case, ReadsOut):
        return [
            weight_gradient(
                sample.scores(number)[0],
                sample.probabilities[number],
                int(sample.predicted[number]),
            )
            for number in chunk
        ]
    if isinstance(sample.case, WeightDifferentiable):
        rows = sample.per_input(sample.case.weight_gradient, chunk)
        return [np.asarray(row, dtype=np.float64) for row in rows]
    return None


def _fraction(sample: Sample, number: int, orders: Sequence[Sequence[int]]) -> float | None:
    """Return the mean over orders of the fraction removed when the answer flips."""
    weights = sample.weights[number]
    length = len(weights)
    rows = [row for one in orders for row in _removed(weights, one)]
    flipped = sample.reread_many([number], [np.stack(rows)])[0].flipped
    steps = len(flipped) // len(orders)
    found = []
    for k in range(len(orders)):
        at = np.flatnonzero(flipped[k * steps : (k + 1) * steps])
        if at.size:
            found.append((at[0] + 1) / length)
    return float(np.mean(found)) if found else None


def _removed(weights: Numbers, one: Sequence[int]) -> list[Numbers]:
    """Return the weights after each removal, all but the last token's."""
    left = weights.copy()
    found = []
    for place in one[:-1]:
        left[place] = 0.0
        total = left.sum()
        if total > 0:
            found.append(left / total)
        else:  # nothing but zeros is left: the rest shares equally
            rest = np.ones_like(left)
            rest[list(one[: len(found) + 1])] = 0.0
            found.append(rest / rest.sum())
    return found


MEASURE = Measure("flip_fraction", run, table, needs_other_weights)
