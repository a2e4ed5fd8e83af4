"""The normaliser of a module: the softmax kernel, or any other by name or as a function."""

from torch import Tensor

from regard.attention.normalizers import Normalizer, normalizer_of
from regard.kernels.softmax import masked_softmax

__all__ = ["normalize", "require_normalizer"]


def require_normalizer(normalizer: str | Normalizer) -> str | Normalizer:
    """Return what a module is to remember of its option.

    Raises
    ------
    ConventionError
        The name is unknown.
    """
    normalizer_of(normalizer)
    return normalizer


def normalize(
    normalizer: str | Normalizer, scores: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Turn scores into weights.

    Parameters
    ----------
    normalizer : str or callable
        What :func:`require_normalizer` let through.
    scores : (..., T_dec, T_enc)
    mask : bool, any shape that broadcasts to that of the scores, optional
        True = may attend.

    Returns
    -------
    weights : (..., T_dec, T_enc)

    Raises
    ------
    ShapeError
        A function of the caller's changed the shape.
    """
    if normalizer == "softmax":
        return masked_softmax(scores, mask)
    # The others are public functions, which broadcast nothing.
    full = None if mask is None else mask.expand_as(scores)
    weights: Tensor = normalizer_of(normalizer)(scores, full)
    return weights
