"""A whole model trained to answer alike and attend elsewhere, as far as it gets.

Other weights for one input say little: one equation leaves them free. A model has to find its
own, for all inputs at once, with parameters that it shares among them [1]_. So for a rising
lambda another model of the same kind is trained on the audited one's answers and against its
weights, and it is shown how much of the answers the distance costs. With lambda 0 nothing
pushes the weights away: so far apart they are by another start alone.

References
----------
.. [1] Wiegreffe and Pinter, "Attention is not not Explanation", EMNLP 2019, section 4.
   arXiv:1908.04626
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit import erase_input
from regard.audit.distances import jensen_shannon, total_variation
from regard.audit.gates import gain_of
from regard.audit.interval import Estimate
from regard.audit.measure import Columns, Measure
from regard.audit.protocol import Imitable
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "STRENGTHS", "run"]

STRENGTHS = (0.0, 0.001, 0.01, 0.1)
"""The lambdas that are tried."""
_COMPARED = 200  # inputs on which answers and weights are compared
_ERASED = 60  # inputs on which the adversary is audited itself
_FIGURES = {
    "answers": "answers apart (TVD)",
    "weights": "weights apart (JSD)",
    "accuracy": "its accuracy",
    "f1": "its F1",
    "share": "F of its own weights with one token",
}


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return what some adversaries reached.

    Returns
    -------
    columns : dict
        ``strength``; ``answers`` and ``weights``: how far both are from the audited model's,
        the mean over inputs; ``accuracy``, ``f1`` (None where there are not two classes) on
        held-out inputs; ``share``: F of the adversary's own weights.
    """
    case = sample.case
    assert isinstance(case, Imitable)  # or `missing` had said so
    columns: dict[str, list[Any]] = {name: [] for name in ("strength", *_FIGURES)}
    for place in chunk:
        trained = case.train_adversary(strength=STRENGTHS[place], seed=sample.seed + 1)
        other = Sample(trained.case, sample.inputs[:_COMPARED], seed=sample.seed)
        few = Sample(trained.case, sample.inputs[:_ERASED], seed=sample.seed)
        erased = erase_input.run(few, range(len(few)))
        columns["strength"].append(STRENGTHS[place])
        apart = total_variation(other.probabilities, sample.probabilities[: len(other)])
        columns["answers"].append(float(apart.mean()))
        # Row by row: inputs differ in length.
        pairs = zip(other.weights, sample.weights, strict=False)
        columns["weights"].append(float(np.mean([jensen_shannon(*pair) for pair in pairs])))
        columns["accuracy"].append(trained.accuracy)
        columns["f1"].append(trained.f1)
        columns["share"].append(gain_of(erased, "delete", "top1", seed=sample.seed).value)
    return columns


def table(columns: Columns, seed: int) -> Table:
    """Return each adversary's figures; one training each, so there is no interval."""
    rows = []
    for place, strength in enumerate(columns["strength"]):
        for name, title in _FIGURES.items():
            value = columns[name][place]
            if value is not None:
                found = Estimate(value, value, value, 1)
                rows.append(Row(f"lambda {strength:g}: {title}", found))
    return Table(
        "adversary_model",
        "A model trained to answer alike with other weights (one training each)",
        "whether a model of this kind can give these answers with another map, and at what "
        "cost",
        "anything about the audited model: the adversary is another one, and lambda decides "
        "how hard it tries",
        tuple(rows),
    )


def missing(sample: Sample) -> str | None:
    """Return why no adversary can be trained, or None."""
    return None if isinstance(sample.case, Imitable) else "the case has no train_adversary"


MEASURE = Measure(
    "adversary_model", run, table, missing, lambda sample: len(STRENGTHS), 1, 1, trains=True
)
