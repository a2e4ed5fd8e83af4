"""Zero one weight, renormalise the rest, and see whether the answer flips.

The token stays in its neighbours' states, so an answer that does not move says that this weight
was not needed, not that the token was not. Compared with zeroing another weight drawn at random
among all the others [1]_.

References
----------
.. [1] Serrano and Smith, "Is Attention Interpretable?", ACL 2019, section 4. arXiv:1906.03731
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.measure import Columns, Measure, means_of, needs_other_weights
from regard.audit.protocol import Numbers
from regard.audit.ranking import order
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "discordant", "run", "without_weight"]


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return, for each input, what zeroing its largest and another weight did.

    Returns
    -------
    columns : dict
        ``top.divergence`` and ``random.divergence`` (Jensen-Shannon), ``top.drop`` and
        ``random.drop`` (of the predicted class's probability), ``top.flip`` and ``random.flip``
        (0 or 1), ``both.flip``, ``neither.flip``: the cells of the published two-by-two table.
    """
    asked = []
    for number in chunk:
        generator = sample.random(number, "single weight")
        ranked = order(sample.weights[number], sample.inputs[number].free, generator)
        other = ranked[1 + int(generator.integers(len(ranked) - 1))]
        asked += [
            (number, without_weight(sample.weights[number], place))
            for place in (ranked[0], other)
        ]
    effects = sample.reread(asked)
    found: dict[str, list[Any]] = {}
    for name, rows in (("top", slice(0, None, 2)), ("random", slice(1, None, 2))):
        found[f"{name}.divergence"] = effects.divergence[rows].tolist()
        found[f"{name}.drop"] = effects.drop[rows].tolist()
        found[f"{name}.flip"] = effects.flipped[rows].astype(float).tolist()
    top, rest = effects.flipped[0::2], effects.flipped[1::2]
    found["both.flip"] = (top & rest).astype(float).tolist()
    found["neither.flip"] = (~top & ~rest).astype(float).tolist()
    return found


def without_weight(weights: Numbers, place: int) -> Numbers:
    """Return weights with one set to zero and the rest scaled to sum to 1.

    Where nothing is left, the rest shares equally.
    """
    left = weights.copy()
    left[place] = 0.0
    total = left.sum()
    if total > 0:
        scaled: Numbers = left / total
        return scaled
    left[:] = 1 / max(len(left) - 1, 1)
    left[place] = 0.0
    return left


def discordant(top_only: int, random_only: int) -> float:
    """Return McNemar's exact two-sided p for flips by the one only and by the other only."""
    n = top_only + random_only
    if not n:
        return 1.0
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    k = np.arange(min(top_only, random_only) + 1)
    tail = np.exp(logs[n] - logs[k] - logs[n - k] - n * np.log(2)).sum()
    return float(min(1.0, 2 * tail))


def table(columns: Columns, seed: int) -> Table:
    """Return how often and how far one weight moves the answer."""
    mean = means_of(columns, seed)
    top, other = (np.asarray(columns[f"{name}.flip"]) for name in ("top", "random"))
    p = discordant(int((top > other).sum()), int((other > top).sum()))
    rows = [
        Row(
            name,
            mean(columns[f"top.{figure}"]),
            random=float(np.mean(columns[f"random.{figure}"])),
        )
        for name, figure in (
            (f"answer flips (McNemar p = {p:.2g})", "flip"),
            ("drop of p(predicted)", "drop"),
            ("Jensen-Shannon divergence of the answers", "divergence"),
        )
    ]
    return Table(
        "erase_weights",
        "Zero the largest weight, renormalise the rest",
        "whether the answer needs this weight, everything before it unchanged",
        "whether it needs the token, which stays in its neighbours' states",
        tuple(rows),
    )


MEASURE = Measure("erase_weights", run, table, needs_other_weights)
