"""What turns scores into weights, by name: an option of every attention of this package."""

from collections.abc import Callable
from functools import partial

from regard.attention.smoothing import smoothed
from regard.attention.sparse import entmax15, sparsemax
from regard.attention.weights import softmax
from regard.axes import Array
from regard.errors import ConventionError, ShapeError, explain

__all__ = ["NORMALIZERS", "Normalizer", "normalizer_of"]

Normalizer = Callable[[Array, Array | None], Array]
"""Any function of scores and mask, both ``(*batch, T_dec, T_enc)``, that returns weights.

The mask is None where everything may be attended. A normaliser of the caller's own must give
forbidden keys weight 0: their scores may hold anything.
"""

NORMALIZERS: dict[str, Callable[..., Array]] = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "smoothed": smoothed,
}
"""Every normaliser by its name."""


def normalizer_of(normalizer: str | Normalizer) -> Normalizer:
    """Return a normaliser as a function of scores and mask.

    Parameters
    ----------
    normalizer : str or callable
        A name of :data:`NORMALIZERS`, or a function of scores and mask, which is then called
        with both by position and whose result is checked to have the scores' shape.

    Returns
    -------
    normalizer : callable

    Raises
    ------
    ConventionError
        The name is unknown.
    """
    if callable(normalizer):
        return partial(_own, normalizer)
    if normalizer not in NORMALIZERS:
        known = ", ".join(f"`{name}`" for name in NORMALIZERS)
        raise ConventionError(
            explain(
                f"there is no normalizer {normalizer!r}",
                expected=f"one of {known}, or a function of scores and mask",
                got=repr(normalizer),
            )
        )
    return partial(_known, NORMALIZERS[normalizer])


def _known(function: Callable[..., Array], scores: Array, mask: Array | None) -> Array:
    return function(scores, mask=mask)


def _own(function: Normalizer, scores: Array, mask: Array | None) -> Array:
    weights = function(scores, mask)
    if getattr(weights, "shape", None) == scores.shape:
        return weights
    shape = getattr(weights, "shape", None)
    raise ShapeError(
        explain(
            "the normalizer's weights do not fit its scores",
            expected=f"weights {tuple(scores.shape)}, the shape of the scores",
            got=type(weights).__name__ if shape is None else f"weights {tuple(shape)}",
        )
    )
