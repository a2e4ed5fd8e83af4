"""How far attention ranks tokens as leave-one-out and gradients do.

Kendall's tau-b, input by input [1]_, with what random numbers reach beside it. It does not tell
honest models from deceived ones: long tails of tokens that matter little decide it, and the
other methods disagree among themselves. So it is shown and no gate reads it.

References
----------
.. [1] Jain and Wallace, "Attention is not Explanation", NAACL 2019, section 4.1.
   arXiv:1902.10186
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.kendall import tau_b, top_overlap
from regard.audit.measure import Columns, Measure, means_of
from regard.audit.protocol import Numbers
from regard.audit.ranking import leave_one_out, token_gradients
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "run"]

_TOP = 3
_PAIRS = (
    ("attention", "leave-one-out"),
    ("attention", "gradient"),
    ("gradient", "leave-one-out"),
    ("random", "leave-one-out"),
)


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return tau, whether p <= 0.05, and the overlap of the three highest, for each pair.

    Returns
    -------
    columns : dict
        ``attention/leave-one-out.tau``, ``.significant``, ``.top3`` and so on; None where one
        of the two is constant.
    """
    left_out = leave_one_out(sample, chunk)
    gradients = token_gradients(sample, chunk)
    columns: dict[str, list[Any]] = {}
    for row, number in enumerate(chunk):
        free = np.asarray(sample.inputs[number].free)
        asked = free[np.isfinite(left_out[row].moved[free])]
        rankings: dict[str, Numbers] = {
            "attention": sample.weights[number][asked],
            "leave-one-out": left_out[row].moved[asked],
            "random": sample.random(number, "tau").random(len(asked)),
        }
        if gradients is not None:
            rankings["gradient"] = gradients[row][asked]
        for one, other in _PAIRS:
            if one in rankings and other in rankings:
                tau, p = tau_b(rankings[one], rankings[other])
                there = not np.isnan(tau)
                pair = f"{one}/{other}"
                overlap = top_overlap(rankings[one], rankings[other], _TOP)
                columns.setdefault(f"{pair}.tau", []).append(tau if there else None)
                columns.setdefault(f"{pair}.significant", []).append(
                    float(p <= 0.05) if there else None
                )
                columns.setdefault(f"{pair}.top{_TOP}", []).append(overlap)
    return columns


def table(columns: Columns, seed: int) -> Table:
    """Return the mean of each, pair by pair."""
    mean = means_of(columns, seed)
    rows = []
    for one, other in _PAIRS:
        pair = f"{one}/{other}"
        if f"{pair}.tau" not in columns:
            continue
        tau = mean(columns[f"{pair}.tau"])
        values = np.asarray(columns[f"{pair}.tau"], dtype=np.float64)
        # Where one of the two is constant there is no tau, and perhaps nowhere.
        spread = f" (sd {np.nanstd(values):.3f})" if tau.n else ""
        rows.append(Row(f"tau-b {one} / {other}{spread}", tau))
        share = mean(columns[f"{pair}.significant"])
        rows.append(Row(f"  of which p <= 0.05, {one} / {other}", share))
        top = mean(columns[f"{pair}.top{_TOP}"])
        rows.append(Row(f"  overlap of the top {_TOP}, {one} / {other}", top))
    return Table(
        "correlate",
        "Agreement of rankings",
        "whether attention orders tokens as another method does",
        "which of the two is right, and honesty: a map trained to hide can agree more than an "
        "honest one",
        tuple(rows),
    )


MEASURE = Measure("correlate", run, table)
