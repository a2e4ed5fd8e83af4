"""What a model would have written with other weights: data for whoever doubts an alignment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from regard.errors import InputError, ShapeError, explain

__all__ = ["ALTERATIONS", "Alteration", "Counterfactual"]

Alteration = Literal["permute", "uniform", "ablate"]
"""How weights are changed: shuffled, made even, or without their largest."""

ALTERATIONS: tuple[Alteration, ...] = get_args(Alteration)
"""All of them."""


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """What the model would have written, had its weights been others.

    The prefix stays the one of the record at every step, as under teacher forcing: each step
    says what one changed row does, not what follows from an earlier change.

    Parameters
    ----------
    target : sequence of str, length T_dec
        The token that each step then puts first.
    difference : sequence of float, length T_dec
        How far its distribution moved: the total variation distance, 0 to 1.

    Raises
    ------
    InputError
        A token is no string, or a difference no number from 0 to 1.
    ShapeError
        The two differ in length.
    """

    target: tuple[str, ...]
    difference: tuple[float, ...]

    def __init__(self, target: Sequence[str], difference: Sequence[float]) -> None:
        _check_tokens("target", target)
        try:
            values = tuple(float(value) for value in difference)
        except (TypeError, ValueError) as error:
            values = (np.nan,)
            said = f"{type(difference).__name__}: {error}"
        else:
            said = next((str(value) for value in values if not 0 <= value <= 1), "")
        if any(not 0 <= value <= 1 for value in values):
            raise InputError(
                explain(
                    "Counterfactual(): `difference` is no list of distances",
                    expected="one number from 0 to 1 for each step",
                    got=said,
                )
            )
        if len(values) != len(target):
            raise ShapeError(
                explain(
                    "Counterfactual(): `difference` does not fit `target` on axis T_dec",
                    expected=f"{len(target)} numbers, one for each token of `target`",
                    got=f"{len(values)} numbers",
                )
            )
        object.__setattr__(self, "target", tuple(target))
        object.__setattr__(self, "difference", values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counterfactual):
            return NotImplemented
        return (self.target, self.difference) == (other.target, other.difference)

    def __hash__(self) -> int:
        return hash((self.target, self.difference))


def _check_tokens(name: str, tokens: Any) -> None:
    listed = isinstance(tokens, Sequence) and not isinstance(tokens, str | bytes)
    if not listed or not all(isinstance(token, str) for token in tokens):
        raise InputError(
            explain(
                f"Counterfactual(): `{name}` is no list of tokens",
                expected=f"{name}, a list of strings",
                got=type(tokens).__name__,
            )
        )
