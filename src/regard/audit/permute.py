"""Shuffle the weights among the tokens, everything before them unchanged.

An input counts with the median over its shuffles of how far the answer moves (total variation;
for one sigmoid |dp|), and is shown by its largest weight, since flat weights have nothing to
shuffle [1]_.

References
----------
.. [1] Jain and Wallace, "Attention is not Explanation", NAACL 2019, section 4.2.1.
   arXiv:1902.10186
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from regard.audit.interval import median_of
from regard.audit.measure import Columns, Measure, means_of, needs_other_weights
from regard.audit.protocol import ReadsOut
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "run"]

_SHUFFLES = 100
_RUN_AGAIN = 20  # shuffles where the model has to run for each
_BINS = (0.0, 0.25, 0.5, 0.75, 1.0)


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return each input's median movement (``moved``) and its largest weight (``largest``)."""
    count = _SHUFFLES if isinstance(sample.case, ReadsOut) else _RUN_AGAIN
    shuffles = []
    for number in chunk:
        generator = sample.random(number, "permute")
        weights = sample.weights[number]
        shuffles.append(np.stack([generator.permutation(weights) for _ in range(count)]))
    effects = sample.reread_many(chunk, shuffles)
    return {
        "moved": [float(np.median(each.moved)) for each in effects],
        "largest": [float(sample.weights[number].max()) for number in chunk],
    }


def table(columns: Columns, seed: int) -> Table:
    """Return the median over inputs, all and by largest weight."""
    moved, largest = (np.asarray(columns[name]) for name in ("moved", "largest"))
    median = partial(median_of, seed=seed, groups=columns.get("text"))
    rows = [
        Row("all inputs, median", median(moved)),
        Row("all inputs, mean", means_of(columns, seed)(moved)),
    ]
    for low, high in pairwise(_BINS):
        inside = (largest >= low) & ((largest < high) | (high == 1.0))
        if inside.any():
            name = f"largest weight {low:g} to {high:g}, median"
            rows.append(Row(name, median(np.where(inside, moved, np.nan))))
    return Table(
        "permute",
        "Shuffle the weights (how far the answer moves)",
        "how much the answer depends on which token got which weight",
        "honesty: flat weights, or states that all know the whole input, move little too; no "
        "gate reads it",
        tuple(rows),
    )


MEASURE = Measure("permute", run, table, needs_other_weights)
