"""What each figure starts from."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["given"]

_RUN = Path(__file__).with_name("run.json")


def given(name: str) -> dict[str, Any]:
    """Return the numbers that a figure starts from, as JSON knows them.

    Parameters
    ----------
    name : str
        One of :data:`regard.learn.figures.figure.FIGURES`.
    """
    return _GIVEN[name]()


def _state() -> dict[str, Any]:
    # The worked example that every lesson returns to.
    return {
        "keys": [[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]],
        "names": ["h1", "h2", "h3"],
        "starts": [
            {"name": "Near h1", "state": [0.9, 0.1, 0.2]},
            {"name": "Near h3", "state": [0.2, 0.8, 0.4]},
        ],
        "params": {
            "W_a": [[0.6, 0.3, 0.1], [0.1, 0.5, 0.4]],
            "U_a": [[0.5, 0.2, 0.3], [0.2, 0.6, 0.2]],
            "v_a": [0.8, 0.6],
        },
    }


def _temperature() -> dict[str, Any]:
    # Independent numbers of variance 1: a product of d of them has variance d (Vaswani et al.
    # 2017, section 3.2.1, footnote 4).
    draw = random.Random(3)
    query, *keys = _normal(draw, 6, 128)
    return {"query": query, "keys": keys}


def _mask() -> dict[str, Any]:
    return {"scores": _normal(random.Random(1), 6, 6)}


def _heads() -> dict[str, Any]:
    tokens = ["the", "cat", "that", "I", "saw", "slept"]
    states = _normal(random.Random(2), len(tokens), 8)
    return {"tokens": tokens, "states": [[round(1.5 * x, 1) for x in row] for row in states]}


def _shapes() -> dict[str, Any]:
    # Six primes: no two axes can be taken for each other.
    return {"sizes": {"batch": 2, "T_dec": 5, "T_enc": 7, "d_s": 11, "d_h": 13, "d_attn": 3}}


def _length() -> dict[str, Any]:
    return {"result": json.loads(_RUN.read_text(encoding="utf-8"))}


def _permutation() -> dict[str, Any]:
    return {
        "tokens": ["a", "dull", "film", "I", "did", "not", "enjoy"],
        "offers": [0.2, -2.4, 0.3, 0.1, -0.2, -1.9, 1.5],
        "bias": 0.4,
        "weights": [0.05, 0.35, 0.10, 0.05, 0.05, 0.25, 0.15],
        "least": 0.01,
    }


def _normal(draw: random.Random, rows: int, columns: int) -> list[list[float]]:
    return [[round(draw.gauss(0.0, 1.0), 2) for _ in range(columns)] for _ in range(rows)]


_GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "heads": _heads,
    "length": _length,
    "mask": _mask,
    "permutation": _permutation,
    "shapes": _shapes,
    "state": _state,
    "temperature": _temperature,
}
