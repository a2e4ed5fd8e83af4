"""How far an error rate might be another one on other examples of the same kind.

The bootstrap draws as many examples as there are, with replacement, many times over; the
middle of the rates so found is the interval [1]_. It knows of the test examples' chance alone:
that another seed trains another model is seen by training with other seeds.

References
----------
.. [1] Efron, "Bootstrap Methods: Another Look at the Jackknife", Annals of Statistics 7, 1979.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import InputError, explain
from regard.seq2seq.metrics import Symbols, counts

__all__ = ["MEASURES", "Interval", "bootstrap"]

MEASURES = ("symbol_error_rate", "exact_match_error", "token_accuracy")
"""The rates of :class:`~regard.seq2seq.metrics.ErrorRates`."""

_AT_ONCE = 1 << 22  # drawn examples held in memory


@dataclass(frozen=True)
class Interval:
    """A rate and its surroundings.

    Attributes
    ----------
    rate : float
        On the examples as they are.
    low, high : float
        Of the middle ``level`` of the resampled rates.
    level : float
        0 to 1.
    """

    rate: float
    low: float
    high: float
    level: float


def bootstrap(
    predictions: Sequence[Symbols],
    references: Sequence[Sequence[Symbols]],
    *,
    measure: str = "exact_match_error",
    level: float = 0.95,
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return a rate with its bootstrap interval.

    Parameters
    ----------
    predictions, references
        As :func:`~regard.seq2seq.metrics.error_rates` takes them.
    measure : str
        One of :data:`MEASURES`.
    level : float
        Above 0 and below 1.
    samples : int
        How often is drawn anew, from 1.
    seed : int
        From 0.

    Returns
    -------
    interval : Interval

    Raises
    ------
    InputError
        An argument is outside its range, or as
        :func:`~regard.seq2seq.metrics.error_rates` says.

    Examples
    --------
    >>> interval = bootstrap(["a"] * 80 + ["b"] * 20, [["a"]] * 100)
    >>> interval.rate, 0.1 < interval.low < 0.2 < interval.high < 0.3
    (0.2, True)
    """
    for name, fits, expected, got in (
        ("measure", measure in MEASURES, " or ".join(MEASURES), measure),
        ("level", 0 < level < 1, "above 0 and below 1", level),
        ("samples", samples >= 1, "at least 1", samples),
        ("seed", seed >= 0, "at least 0", seed),
    ):
        if not fits:
            raise InputError(
                explain(f"bootstrap(): `{name}` is refused", expected=expected, got=repr(got))
            )
    each = np.array(
        [
            (one.edits, one.symbols, one.edits > 0, 1, one.right_positions)
            for one in counts(predictions, references)
        ],
        dtype=np.int64,
    )
    above, below = {
        "symbol_error_rate": (0, 1),
        "exact_match_error": (2, 3),
        "token_accuracy": (4, 1),
    }[measure]
    above_each, below_each = each[:, above], each[:, below]
    random = np.random.default_rng(seed)
    size = len(each)
    rates: list[float] = []
    while len(rates) < samples:
        some = min(samples - len(rates), max(1, _AT_ONCE // size))
        drawn = random.integers(size, size=(some, size))
        rates += (above_each[drawn].sum(1) / below_each[drawn].sum(1)).tolist()
    low, high = np.quantile(rates, [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        float(above_each.sum() / below_each.sum()), float(low), float(high), float(level)
    )
