"""Axes with their products opened, and masks of every kind read as booleans."""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MASKS", "Axes", "keep_of"]

MASKS = (
    *("keep", "drop", "keep_int", "drop_int", "keep_uint8", "keep_float01", "drop_float01"),
    *("additive", "lengths", "token_ids_pad0", "zero_padded"),
)


@dataclass(frozen=True)
class Axes:
    """Axis names of an array with product tokens opened, and the shape that opens them."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    token: tuple[int, ...]  # which token of the contract each name comes from

    def at(self, *names: str) -> tuple[int, ...]:
        """Positions of the names that are there."""
        return tuple(i for i, n in enumerate(self.names) if n in names)


def keep_of(kind: str, value: Any, total: int = 0) -> np.ndarray:
    """Read a mask argument of any kind as booleans, True = may attend."""
    array = np.asarray(value)
    if kind == "lengths":
        return np.arange(total)[None] < array.reshape(-1)[:, None]
    if kind.startswith("keep"):
        return array.astype(bool)
    if kind.startswith("drop"):
        return ~array.astype(bool)
    if kind == "zero_padded":
        return np.asarray(np.any(array != 0, axis=-1))
    return array != 0 if kind == "token_ids_pad0" else array > -1e3
