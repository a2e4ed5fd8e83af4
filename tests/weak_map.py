"""A map a little better than chance: what an audit of few inputs cannot decide on."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.audit import FunctionCase, Input

__all__ = ["weak_map"]


def weak_map(honest: FunctionCase) -> FunctionCase:
    """Return a case with an honest model's answers and most of its weight moved on by one.

    The right token is the first in a fifth of the inputs, the second in the others.
    """

    def inputs(texts: Sequence[Sequence[str]]) -> list[Input]:
        return [Input(tuple(tokens)) for tokens in texts]

    def moved(texts: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        rows = honest.weights(inputs(texts))
        shifts = [sum(map(ord, "".join(tokens[:2]))) % 5 > 0 for tokens in texts]
        return [
            0.6 * np.roll(row, 1) + 0.4 * row if shift else row
            for row, shift in zip(rows, shifts, strict=True)
        ]

    return FunctionCase(lambda texts: honest.predict(inputs(texts)), moved)
