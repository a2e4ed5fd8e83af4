r"""Directions in which the weights can move without anything behind them noticing.

Weights :math:`\alpha` over T_enc values :math:`V` (T_enc, d_v) give the same weighted sum as
:math:`\alpha + x` for every x with :math:`[V\;1]^\top x = 0`: T_enc minus the rank of
:math:`[V\;1]` directions, which is more than none as soon as T_enc > d_v + 1. Stronger than
another weighting with the same answer: here the whole context vector stays.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.distances import jensen_shannon
from regard.audit.measure import Columns, Measure, means_of
from regard.audit.protocol import Numbers, ReadsOut
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "farthest_unnoticed", "free_directions", "run"]

_VERTICES = 5_000
_LINES = 64
_RELATIVE = 1e-9  # singular values below this share of the largest count as zero


def free_directions(values: Numbers) -> Numbers:
    """Return an orthonormal basis (directions, T_enc) of what the context does not notice.

    Parameters
    ----------
    values : (T_enc, d_v)
    """
    noticed = np.concatenate([values, np.ones((len(values), 1))], axis=1)
    left, singular, _ = np.linalg.svd(noticed, full_matrices=True)
    rank = int((singular > _RELATIVE * singular[0]).sum())
    found: Numbers = left[:, rank:].T
    return found


def farthest_unnoticed(
    weights: Numbers, values: Numbers, generator: np.random.Generator
) -> tuple[float, bool]:
    """Return how far weights can go with the same context vector, and whether that is exact.

    Parameters
    ----------
    weights : (T_enc,)
    values : (T_enc, d_v)
    generator : numpy.random.Generator
        Where there are too many vertices to try, lines are drawn; the answer is then a lower
        bound.

    Returns
    -------
    divergence : float
        Jensen-Shannon, 0 to 0.693.
    exact : bool
    """
    directions = free_directions(values)
    count, length = directions.shape
    if not count:
        return 0.0, True
    rank = length - count
    if math.comb(length, rank) <= _VERTICES:
        return _over_vertices(weights, values, rank), True
    steps = generator.normal(size=(_LINES, count)) @ directions
    best = 0.0
    for step in itertools.chain(directions, steps):
        for way in (step, -step):
            shrinking = way < -1e-12
            reach = (weights[shrinking] / -way[shrinking]).min()
            best = max(best, float(jensen_shannon(weights, weights + reach * way)))
    return best, False


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return each input's number of free directions, and how far the weights can go in them."""
    case = sample.case
    assert isinstance(case, ReadsOut)  # or `missing` had said so
    columns: dict[str, list[Any]] = {"directions": [], "any": [], "divergence": [], "exact": []}
    for number, read in zip(chunk, sample.per_input(case.read_out, chunk), strict=True):
        values = np.asarray(read.values, dtype=np.float64)
        count = len(free_directions(values))
        generator = sample.random(number, "null space")
        divergence, exact = farthest_unnoticed(sample.weights[number], values, generator)
        columns["directions"].append(float(count))
        columns["any"].append(float(count > 0))
        columns["divergence"].append(divergence)
        columns["exact"].append(float(exact))
    return columns


def table(columns: Columns, seed: int) -> Table:
    """Return the means."""
    mean = means_of(columns, seed)
    bound = "" if min(columns["exact"]) else " (at least)"
    rows = (
        Row("free directions", mean(columns["directions"])),
        Row("inputs with any", mean(columns["any"])),
        Row(
            f"farthest weights, same context (JSD){bound}",
            mean(columns["divergence"]),
        ),
    )
    return Table(
        "null_space",
        "Weights that nothing behind them could tell apart",
        "that a map is one of many with the very same context vector",
        "which of them the model would choose: it computes exactly one",
        rows,
    )


def missing(sample: Sample) -> str | None:
    """Return why there is no null space to look at, or None."""
    return None if isinstance(sample.case, ReadsOut) else "the case has no read_out"


def _over_vertices(weights: Numbers, values: Numbers, rank: int) -> float:
    """Return the largest divergence over the vertices of all unnoticed weights.

    A vertex is zero but on as many tokens as the rank, whose rows are independent.
    """
    noticed = np.concatenate([values, np.ones((len(values), 1))], axis=1)
    target = weights @ noticed
    best = 0.0
    for support in itertools.combinations(range(len(weights)), rank):
        rows = noticed[list(support)]
        solved, _, found, _ = np.linalg.lstsq(rows.T, target, rcond=None)
        if found < rank or solved.min() < -1e-9:
            continue
        if np.abs(solved @ rows - target).max() > 1e-7 * (1 + np.abs(target).max()):
            continue
        vertex = np.zeros_like(weights)
        vertex[list(support)] = np.maximum(solved, 0.0)
        best = max(best, float(jensen_shannon(weights, vertex / vertex.sum())))
    return best


MEASURE = Measure("null_space", run, table, missing)
