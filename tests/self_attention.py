"""The contract of a layer that attends over its own rows, masked, and returns its weights."""

from typing import Any

__all__ = ["CONTRACT"]

CONTRACT: dict[str, Any] = {
    "init": {"d_model": "d_model", "heads": "heads"},
    "inputs": {"x": "batch T d_model", "mask": "batch T"},
    "kinds": {"mask": "keep"},
    "returns": [
        {"name": "context", "axes": "batch T d_model"},
        {"name": "weights", "axes": "batch heads T T"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
}
