"""Give every token the same weight: whether the answer needs the weights at all.

A model that keeps its answers under equal weights was not using them; one that loses them may
have been using them for anything. Training with equal weights is another test
(:mod:`regard.audit.retrain`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.distances import jensen_shannon
from regard.audit.measure import Columns, Measure, means_of, needs_other_weights
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "equal_weights", "run"]


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return what equal weights did.

    Returns
    -------
    columns : dict
        ``moved`` (total variation), ``flip`` (0 or 1), ``divergence`` of the weights themselves
        from equal ones.
    """
    rows = [equal_weights(sample, number) for number in chunk]
    effects = sample.reread(list(zip(chunk, rows, strict=True)))
    return {
        "moved": effects.moved.tolist(),
        "flip": effects.flipped.astype(float).tolist(),
        "divergence": [
            float(jensen_shannon(sample.weights[number], row))
            for number, row in zip(chunk, rows, strict=True)
        ],
    }


def equal_weights(sample: Sample, number: int) -> Any:
    """Return equal weights (T_enc,) for one input."""
    length = len(sample.inputs[number].tokens)
    return np.full(length, 1 / length)


def table(columns: Columns, seed: int) -> Table:
    """Return the means."""
    mean = means_of(columns, seed)
    rows = (
        Row("answer flips", mean(columns["flip"])),
        Row("answer moves (total variation)", mean(columns["moved"])),
        Row("weights from equal ones (JSD)", mean(columns["divergence"])),
    )
    return Table(
        "uniform",
        "Give every token the same weight",
        "whether this trained model's answers need its weights",
        "whether the task needs attention: a model trained with equal weights might do as well",
        rows,
    )


MEASURE = Measure("uniform", run, table, needs_other_weights)
