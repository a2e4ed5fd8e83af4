"""How near is equal: the one table of every tolerance the contract uses.

==========  ===============  ==============  ==============================================
type        result           row sum         what the figures stand for
==========  ===============  ==============  ==============================================
float64     1e-12            1e-12           a few thousand roundings
float32     1e-5             1e-5            a few hundred roundings
float16     1e-2             2**-10          scores rounded in half, the softmax in float32
bfloat16    8e-2             2**-7           scores rounded in half, the softmax in float32
==========  ===============  ==============  ==============================================

`result` holds for contexts and weights, relative to the largest number of what is expected or
to 1, whichever is larger. `row sum` is how far a row of weights may be from 1: weights that
were normalised in float32 and then rounded are off by at most half a unit of the last place of
1, of which the two half types allow a whole one: a softmax that adds up thousands of keys in
half precision is off by more. Gradients are compared with central differences of step ``1e-5``
in float64 to ``1e-6``, relative to the larger of the two and to 1; the differences' own error
is about ``1e-10``. Gradients that should be each other's equal are compared like results.

"Bit-identical", "exactly 0" and "unchanged" mean what they say: no tolerance at all.
"""

import numpy as np

__all__ = ["DIFFERENCE", "GRADIENT", "RESULT", "ROW_SUM", "near"]

RESULT = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 8e-2}
"""Largest distance of a result, by number type."""

ROW_SUM = {"float64": 1e-12, "float32": 1e-5, "float16": 2**-10, "bfloat16": 2**-7}
"""Largest distance of a row's sum from 1, by number type."""

GRADIENT = 1e-6
"""Largest distance of a derivative from its finite difference, float64."""

DIFFERENCE = 1e-5
"""Step of the finite differences."""


def near(expected: np.ndarray, tolerance: float) -> float:
    """Return the absolute distance that `tolerance` allows from these numbers.

    >>> near(np.array([3.0, -50.0]), 1e-5)
    0.0005
    """
    finite = np.abs(expected[np.isfinite(expected)])
    return tolerance * max(1.0, float(finite.max(initial=0.0)))
