"""The inputs where the weights say least of what moves the answer, for people to look at."""

from collections.abc import Sequence

import numpy as np

from regard.audit.measure import Columns
from regard.audit.sample import Sample
from regard.audit.verdict import Token, WorstInput

__all__ = ["worst_inputs"]


def worst_inputs(
    sample: Sample, places: Sequence[int], erased: Columns, *, count: int = 10
) -> tuple[WorstInput, ...]:
    """Return the inputs with the widest gap between what could fall and what the weights found.

    Parameters
    ----------
    sample : Sample
    places : sequence of int
        Where each input of the sample stands among those given.
    erased : columns
        Of :mod:`regard.audit.erase_input`, of the first inputs of the sample.
    count : int
    """
    top = np.asarray(erased["delete.attention.top1"], dtype=np.float64)
    drops = [np.asarray(row, dtype=np.float64) for row in erased["tokens.drop"]]
    largest = np.array([np.nanmax(row) for row in drops])
    order = np.argsort(-(largest - top), kind="stable")[:count]
    classes = getattr(sample.case, "classes", None)
    found = []
    for k in order.tolist():
        one = sample.inputs[k]
        predicted = int(sample.predicted[k])
        tokens = tuple(
            Token(
                text,
                float(sample.weights[k][i]),
                None if np.isnan(drops[k][i]) else float(drops[k][i]),
                i in (one.gold or ()),
            )
            for i, text in enumerate(one.tokens)
        )
        found.append(
            WorstInput(
                places[k],
                tokens,
                one.before,
                str(classes[predicted]) if classes is not None else str(predicted),
                float(sample.probabilities[k, predicted]),
                float(top[k]),
                float(largest[k]),
            )
        )
    return tuple(found)
