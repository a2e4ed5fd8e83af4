"""Inputs for every score, sizes distinct primes so that a swapped axis cannot hide."""

from typing import Any

import numpy as np

BATCH, T_DEC, T_ENC, D_S, D_H, D_ATTN, D_V = 2, 3, 13, 5, 7, 11, 17
SCORES = ("additive", "dot", "general", "concat", "scaled_dot")


def params_of(score: str, rng: np.random.Generator, d_s: int, d_h: int) -> dict[str, Any]:
    """Return the parameters that a score takes."""
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "additive": {"W_a": (D_ATTN, d_s), "U_a": (D_ATTN, d_h), "v_a": (D_ATTN,)},
        "general": {"W": (d_s, d_h)},
        "concat": {"W_c": (D_ATTN, d_s + d_h), "v_c": (D_ATTN,)},
    }
    return {name: rng.normal(size=shape) for name, shape in shapes.get(score, {}).items()}


def key_size(score: str) -> int:
    """Return d_h: dot products compare vectors of one size."""
    return D_S if score in ("dot", "scaled_dot") else D_H


def case(score: str, rng: np.random.Generator, batch: tuple[int, ...] = (BATCH,)) -> Any:
    """Return query, key, value and the score's parameters, float64."""
    d_h = key_size(score)
    query = rng.normal(size=(*batch, T_DEC, D_S))
    key = rng.normal(size=(*batch, T_ENC, d_h))
    value = rng.normal(size=(*batch, T_ENC, D_V))
    return query, key, value, params_of(score, rng, D_S, d_h)


def some_mask(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return a random mask whose first row is forbidden altogether and second row is not."""
    mask = rng.random(shape) < 0.6
    mask[..., 0, :] = False
    mask[..., 1, 0] = True
    return mask
