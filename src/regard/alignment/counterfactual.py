"""What a model would have written with other weights: data for whoever doubts an alignment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError, ShapeError, explain

__all__ = ["ALTERATIONS", "Alteration", "ByPosition", "Counterfactual"]

Alteration = Literal["permute", "uniform", "ablate"]
"""How weights are changed: shuffled, made even, or without their largest."""

ALTERATIONS: tuple[Alteration, ...] = get_args(Alteration)
"""All of them."""


@dataclass(frozen=True, eq=False)
class ByPosition:
    """What the model would have written, had one source position been left out of one step.

    Parameters
    ----------
    target : sequence of sequences of str, (T_dec, T_enc)
        The token that step t puts first without position i.
    difference : (T_dec, T_enc)
        How far its distribution moved: the total variation distance, 0 to 1.

    Raises
    ------
    InputError, ShapeError
        It is not so.
    """

    target: tuple[tuple[str, ...], ...]
    difference: NDArray[np.float64]

    def __init__(self, target: Sequence[Sequence[str]], difference: Any) -> None:
        call = "ByPosition()"
        rows = []
        for row in _listed(call, "target", target):
            _check_tokens(call, "target", row)
            rows.append(tuple(row))
        try:
            values = np.asarray(difference, dtype=np.float64).copy()
        except (TypeError, ValueError) as error:
            raise _no_distances(call, f"{type(difference).__name__}: {error}") from error
        if not ((values >= 0) & (values <= 1)).all():
            raise _no_distances(call, str(values[~((values >= 0) & (values <= 1))][0]))
        widths = {len(row) for row in rows}
        shape = (len(rows), widths.pop() if widths else 0)
        if widths or values.shape != shape:
            raise ShapeError(
                explain(
                    f"{call}: `difference` does not fit `target`",
                    expected="both (T_dec, T_enc)",
                    got=f"target {'ragged' if widths else shape}, difference {values.shape}",
                )
            )
        values.setflags(write=False)
        object.__setattr__(self, "target", tuple(rows))
        object.__setattr__(self, "difference", values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByPosition):
            return NotImplemented
        same = bool(np.array_equal(self.difference, other.difference))
        return self.target == other.target and same

    def __hash__(self) -> int:
        return hash((self.target, self.difference.tobytes()))


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
    unaltered : sequence of str, length T_dec, optional
        The token that each step puts first with the model's own weights; the record's target
        where left out. They differ where the target was given, not written by the model.
    how : str
        What was done to the weights, in words.
    positions : ByPosition, optional
        The same for each source position, of ``ablate``.

    Raises
    ------
    InputError
        A token is no string, or a difference no number from 0 to 1.
    ShapeError
        The two differ in length.
    """

    target: tuple[str, ...]
    difference: tuple[float, ...]
    unaltered: tuple[str, ...] | None
    how: str
    positions: ByPosition | None

    def __init__(
        self,
        target: Sequence[str],
        difference: Sequence[float],
        *,
        unaltered: Sequence[str] | None = None,
        how: str = "",
        positions: ByPosition | None = None,
    ) -> None:
        call = "Counterfactual()"
        _check_tokens(call, "target", target)
        try:
            values = tuple(float(value) for value in difference)
        except (TypeError, ValueError) as error:
            raise _no_distances(call, f"{type(difference).__name__}: {error}") from error
        wrong = [value for value in values if not 0 <= value <= 1]
        if wrong:
            raise _no_distances(call, str(wrong[0]))
        if unaltered is not None:
            _check_tokens(call, "unaltered", unaltered)
        for name, what, found in (
            ("difference", "numbers", values),
            ("unaltered", "tokens", unaltered),
        ):
            if found is not None and len(found) != len(target):
                raise ShapeError(
                    explain(
                        f"{call}: `{name}` does not fit `target` on axis T_dec",
                        expected=f"{len(target)} {what}, one for each token of `target`",
                        got=f"{len(found)} {what}",
                    )
                )
        if not isinstance(how, str):
            raise InputError(
                explain(f"{call}: `how` is refused", expected="a string", got=repr(how)[:40])
            )
        if positions is not None and not (
            isinstance(positions, ByPosition) and len(positions.target) == len(target)
        ):
            raise InputError(
                explain(
                    f"{call}: `positions` does not fit `target` on axis T_dec",
                    expected=f"a ByPosition of {len(target)} steps",
                    got=f"{len(positions.target)} steps"
                    if isinstance(positions, ByPosition)
                    else type(positions).__name__,
                )
            )
        object.__setattr__(self, "target", tuple(target))
        object.__setattr__(self, "difference", values)
        object.__setattr__(self, "unaltered", None if unaltered is None else tuple(unaltered))
        object.__setattr__(self, "how", how)
        object.__setattr__(self, "positions", positions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counterfactual):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        told = (self.target, self.difference, self.unaltered, self.how)
        return (*told, self.positions)


def _listed(call: str, name: str, values: Any) -> Sequence[Any]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise InputError(
            explain(
                f"{call}: `{name}` is no list", expected="a list", got=type(values).__name__
            )
        )
    return values


def _no_distances(call: str, got: str) -> InputError:
    return InputError(
        explain(
            f"{call}: `difference` is no list of distances",
            expected="numbers from 0 to 1",
            got=got[:200],
        )
    )


def _check_tokens(call: str, name: str, tokens: Any) -> None:
    listed = isinstance(tokens, Sequence) and not isinstance(tokens, str | bytes)
    if not listed or not all(isinstance(token, str) for token in tokens):
        raise InputError(
            explain(
                f"{call}: `{name}` is no list of tokens",
                expected=f"{name}, a list of strings",
                got=type(tokens).__name__,
            )
        )
