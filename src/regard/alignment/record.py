"""Every layer and head of one model in one sentence.

A record is sliced by layer and head under the numbers that the model gave them: the head that
was number 5 is number 5 in every slice.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.alignment.counterfactual import ALTERATIONS, Alteration, Counterfactual
from regard.alignment.matrix import TOLERANCE, Alignment
from regard.alignment.numbers import numbers_of
from regard.errors import InputError, RegardError, ShapeError, explain

__all__ = ["Record"]

_SHOWN = 20  # tokens, where a record is told as text


@dataclass(frozen=True, eq=False)
class Record:
    """Attention weights of all layers and heads for one pair of token lists.

    Parameters
    ----------
    weights : (layers, heads, T_dec, T_enc), (heads, T_dec, T_enc) or (T_dec, T_enc)
        Each row of each head is a distribution or all zero, as :class:`Alignment` has it. Kept
        with four axes, as a read-only float64 copy.
    target : sequence of str, length T_dec
    source : sequence of str, length T_enc
    name : str
        Which sentence; records of one name and different models are compared.
    model : str
        Whose weights; "" where there is but one.
    layers, heads : sequence of int, optional
        Their numbers in the model; 0, 1, 2 ... where left out.
    counterfactuals : mapping of {"permute", "uniform", "ablate"} to Counterfactual, optional
        What happened when the weights were shuffled, made equal, or set to zero.
    made_by : mapping of str, optional
        Where the weights came from; anything that JSON can hold.

    Raises
    ------
    ShapeError, InputError, BackendError
        As :class:`Alignment` does, naming the layer and the head; or the numbers of layers and
        heads do not fit, or a counterfactual does not.

    Examples
    --------
    >>> seen = Record([[[1.0, 0.0], [0.3, 0.7]]], target=["A", "B"], source=["a", "b"])
    >>> seen.weights.shape
    (1, 1, 2, 2)
    >>> seen.alignment(layer=0, head=0).links()
    ((0, 0), (1, 1))
    """

    weights: NDArray[np.float64]
    target: tuple[str, ...]
    source: tuple[str, ...]
    name: str
    model: str
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    counterfactuals: Mapping[Alteration, Counterfactual]
    made_by: Mapping[str, Any]

    def __init__(
        self,
        weights: Any,
        target: Sequence[str],
        source: Sequence[str],
        *,
        name: str = "",
        model: str = "",
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        counterfactuals: Mapping[Alteration, Counterfactual] | None = None,
        made_by: Mapping[str, Any] | None = None,
    ) -> None:
        matrix = _stacked(weights)
        for label, text in (("name", name), ("model", model)):
            if not isinstance(text, str):
                raise _refused(label, "a string", repr(text)[:40])
        numbers = {
            axis: _numbered(axis, given, size)
            for axis, given, size in (
                ("layers", layers, matrix.shape[0]),
                ("heads", heads, matrix.shape[1]),
            )
        }
        _check_heads(matrix, target, source, numbers)
        matrix.setflags(write=False)
        object.__setattr__(self, "weights", matrix)
        object.__setattr__(self, "target", tuple(target))
        object.__setattr__(self, "source", tuple(source))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "layers", numbers["layers"])
        object.__setattr__(self, "heads", numbers["heads"])
        object.__setattr__(
            self,
            "counterfactuals",
            _checked(counterfactuals or {}, len(target), len(source)),
        )
        object.__setattr__(self, "made_by", dict(made_by or {}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        mine, theirs = self._identity(), other._identity()
        return mine == theirs and bool(np.array_equal(self.weights, other.weights))

    def __hash__(self) -> int:
        return hash((self.weights.tobytes(), self.target, self.source, self.name, self.model))

    def __repr__(self) -> str:
        layers, heads, steps, states = self.weights.shape
        return (
            f"Record(name={self.name!r}, model={self.model!r}, layers={layers}, heads={heads}, "
            f"T_dec={steps}, T_enc={states}, target={_few(self.target)}, "
            f"source={_few(self.source)})"
        )

    def alignment(self, *, layer: int, head: int | Literal["mean"]) -> Alignment:
        """Return one head's alignment, or the mean of the layer's heads.

        Parameters
        ----------
        layer : int
            By its number in the model.
        head : int or "mean"

        Raises
        ------
        InputError
            There is no such layer or head.
        """
        stack = self.weights[_place("layer", layer, self.layers)]
        chosen = (
            stack.mean(axis=0) if head == "mean" else stack[_place("head", head, self.heads)]
        )
        made = {**self.made_by, "layer": layer, "head": head}
        if self.model:
            made["model"] = self.model
        return Alignment(_renewed(chosen), self.target, self.source, made)

    def slice(
        self, *, layers: Iterable[int] | None = None, heads: Iterable[int] | None = None
    ) -> "Record":
        """Return a record of some layers and heads, in the order asked for.

        Raises
        ------
        InputError
            There is no such layer or head, or none is left.
        """
        kept = {
            axis: known if asked is None else tuple(asked)
            for axis, asked, known in (
                ("layers", layers, self.layers),
                ("heads", heads, self.heads),
            )
        }
        for axis, numbers in kept.items():
            if not numbers:
                raise _refused(axis, "at least one number", "none")
        rows = [_place("layer", number, self.layers) for number in kept["layers"]]
        columns = [_place("head", number, self.heads) for number in kept["heads"]]
        return Record(
            self.weights[np.ix_(rows, columns)],
            self.target,
            self.source,
            name=self.name,
            model=self.model,
            layers=kept["layers"],
            heads=kept["heads"],
            counterfactuals=self.counterfactuals,
            made_by=self.made_by,
        )

    def entropy(self) -> NDArray[np.float64]:
        r"""Return how spread each row is: :math:`-\sum_i \alpha_i \log_2 \alpha_i`.

        Returns
        -------
        entropy : (layers, heads, T_dec)
            In bits, from 0 (one source token has it all) to log2(T_enc); NaN where a step
            looked at nothing.
        """
        safe = np.where(self.weights > 0, self.weights, 1.0)
        bits = -(self.weights * np.log2(safe)).sum(axis=-1)
        bits[~self.weights.any(axis=-1)] = np.nan
        return np.asarray(np.maximum(bits, 0.0))

    def _repr_html_(self) -> str:
        from regard.alignment.notebook import record_html  # noqa: PLC0415 - only in notebooks

        return record_html(self)

    def _identity(self) -> tuple[Any, ...]:
        return (
            *(self.target, self.source, self.name, self.model, self.layers, self.heads),
            *(dict(self.counterfactuals), dict(self.made_by)),
        )


def _few(tokens: Sequence[str]) -> str:
    shown = ", ".join(map(repr, tokens[:_SHOWN]))
    return f"[{shown}{', ...' if len(tokens) > _SHOWN else ''}]"


def _stacked(weights: Any) -> NDArray[np.float64]:
    matrix = numbers_of(weights, "Record()", "weights (layers, heads, T_dec, T_enc)")
    if not 2 <= matrix.ndim <= 4 or not matrix.size:
        wrong = "has an empty axis" if 2 <= matrix.ndim <= 4 else f"has {matrix.ndim} axes"
        raise ShapeError(
            explain(
                f"Record(): `weights` {wrong}",
                expected="weights (layers, heads, T_dec, T_enc); layers, or layers and heads, "
                "may be left out",
                got=f"weights {matrix.shape}",
                help="take one example out of the batch" if matrix.ndim == 5 else None,
            )
        )
    return matrix.reshape((1,) * (4 - matrix.ndim) + matrix.shape)


def _numbered(axis: str, given: Sequence[int] | None, size: int) -> tuple[int, ...]:
    if given is None:
        return tuple(range(size))
    listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    whole = listed and all(isinstance(n, int) and not isinstance(n, bool) for n in given)
    if not whole or min(given, default=0) < 0 or len(set(given)) != len(given):
        raise _refused(axis, "different whole numbers from 0", repr(given)[:60])
    if len(given) != size:
        raise ShapeError(
            explain(
                f"Record(): `{axis}` does not fit `weights` on axis {axis}",
                expected=f"{size} numbers",
                got=f"{len(given)} numbers",
                because=f"{axis} = {size} comes from `weights`",
            )
        )
    return tuple(given)


def _check_heads(
    weights: NDArray[np.float64],
    target: Sequence[str],
    source: Sequence[str],
    numbers: Mapping[str, tuple[int, ...]],
) -> None:
    # The first head's alignment checks the tokens, and says what is wrong with them.
    suspects = [(0, 0)]
    with np.errstate(invalid="ignore", over="ignore"):
        sums = weights.sum(axis=-1)
        fine = np.isfinite(sums) & ((np.abs(sums - 1) <= TOLERANCE) | (sums == 0))
        fine &= (weights >= 0).all(axis=-1)
    suspects += [(int(i), int(j)) for i, j in np.argwhere(~fine.all(axis=-1))[:1]]
    for layer, head in suspects:
        try:
            Alignment(weights[layer, head], target, source)
        except RegardError as error:
            if weights.shape[:2] == (1, 1):
                raise
            at = f"layer {numbers['layers'][layer]}, head {numbers['heads'][head]}"
            raise type(error)(f"{at}: {error}") from error


def _checked(
    given: Mapping[Alteration, Counterfactual], steps: int, states: int
) -> dict[Alteration, Counterfactual]:
    for name, value in given.items():
        if name not in ALTERATIONS or not isinstance(value, Counterfactual):
            raise _refused(
                "counterfactuals",
                f"a Counterfactual for {', '.join(ALTERATIONS)}",
                f"{name!r}: {type(value).__name__}",
            )
        if len(value.target) != steps:
            raise ShapeError(
                explain(
                    f"Record(): the counterfactual {name!r} does not fit on axis T_dec",
                    expected=f"{steps} steps",
                    got=f"{len(value.target)} steps",
                )
            )
        if value.positions is not None and value.positions.difference.shape[1] != states:
            raise ShapeError(
                explain(
                    f"Record(): the positions of {name!r} do not fit on axis T_enc",
                    expected=f"{states} positions",
                    got=f"{value.positions.difference.shape[1]} positions",
                )
            )
    return dict(given)


def _place(what: str, number: Any, known: tuple[int, ...]) -> int:
    if isinstance(number, bool) or number not in known:
        raise InputError(
            explain(
                f"there is no {what} {number}",
                expected=f"{what} {_ranges(known)}",
                got=str(number),
            )
        )
    return known.index(number)


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers for people: 0 to 5, 8."""
    parts = []
    for _, run in itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        ends = dict.fromkeys((found[0], found[-1]))
        parts.append(" to ".join(map(str, ends)))
    return ", ".join(parts)


def _renewed(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a mean's rows summing to 1 again: some heads may have looked at nothing."""
    sums = weights.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1) > TOLERANCE
    return np.where(off & (sums > 0), weights / np.where(sums > 0, sums, 1.0), weights)


def _refused(name: str, expected: str, got: str) -> InputError:
    return InputError(explain(f"Record(): `{name}` is refused", expected=expected, got=got))
