"""Imports every module of relations, which registers them."""

from regard.check.relations import (
    batch,
    influence,
    layer,
    numerics,
    order,
    padding,
    receptive,
    recurrent,
    returns,
    state,
    weights,
)

__all__ = [
    "batch",
    "influence",
    "layer",
    "numerics",
    "order",
    "padding",
    "receptive",
    "recurrent",
    "returns",
    "state",
    "weights",
]
