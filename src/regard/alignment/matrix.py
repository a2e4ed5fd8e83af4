r"""An alignment: attention weights together with the tokens that they join.

Rows are decoder steps and belong to the target, columns are encoder states and belong to the
source, as everywhere in regard: ``weights[t, i]`` says how much step t looked at state i.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regard.alignment.numbers import numbers_of
from regard.errors import InputError, ShapeError, explain

__all__ = ["TOLERANCE", "Alignment"]

TOLERANCE = 1e-2
"""How far a row's sum may be from 1. Weights that were rounded to four decimals and written to
a file, or computed in bfloat16, stay within it at a few hundred source tokens."""


@dataclass(frozen=True, eq=False, init=False)
class Alignment:
    r"""Attention weights and the tokens on both sides.

    Parameters
    ----------
    weights : (T_dec, T_enc)
        Non-negative, finite. Each row sums to 1 within :data:`TOLERANCE`, or is all zero where
        a step could look at nothing. Kept as a read-only float64 copy.
    target : sequence of str, length T_dec
        What the decoder wrote, one token a row.
    source : sequence of str, length T_enc
        What the encoder read, one token a column.
    made_by : mapping of str, optional
        Where the weights came from (command, model, seed); anything that JSON can hold.

    Raises
    ------
    ShapeError
        `weights` has not two axes, an axis is empty, or a side has the wrong token count.
    InputError
        A weight is negative or not finite, a row does not sum to 1, or a token is no string.
    BackendError
        `weights` cannot be read as an array of numbers.

    Examples
    --------
    >>> weights = [[0.9, 0.1, 0.0], [0.2, 0.2, 0.6]]
    >>> seen = Alignment(weights, target=["F", "L"], source=["p", "h", "l"])
    >>> seen.links()
    ((0, 0), (2, 1))
    >>> seen.monotonicity()
    1.0
    """

    weights: NDArray[np.float64]
    target: tuple[str, ...]
    source: tuple[str, ...]
    made_by: Mapping[str, Any]

    def __init__(
        self,
        weights: Any,
        target: Sequence[str],
        source: Sequence[str],
        made_by: Mapping[str, Any] | None = None,
    ) -> None:
        matrix = numbers_of(weights, "Alignment()", "weights (T_dec, T_enc)")
        _check_shape(matrix)
        for name, axis, tokens in (("target", 0, target), ("source", 1, source)):
            _check_tokens(name, tokens, matrix.shape, axis)
        _check_values(matrix)
        matrix.setflags(write=False)
        # The dataclass is frozen, so even its own constructor has to go around the lock.
        object.__setattr__(self, "weights", matrix)
        object.__setattr__(self, "target", tuple(target))
        object.__setattr__(self, "source", tuple(source))
        object.__setattr__(self, "made_by", dict(made_by or {}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alignment):
            return NotImplemented
        return (
            self.target == other.target
            and self.source == other.source
            and dict(self.made_by) == dict(other.made_by)
            and bool(np.array_equal(self.weights, other.weights))
        )

    def __hash__(self) -> int:
        return hash((self.weights.tobytes(), self.target, self.source))

    def _repr_html_(self) -> str:
        from regard.alignment.notebook import alignment_html  # noqa: PLC0415 - in notebooks only

        return alignment_html(self)

    def links(self) -> tuple[tuple[int, int], ...]:
        """Return the hard link of each step: the source position with the largest weight.

        Returns
        -------
        links : tuple of (source position, target position)
            Counted from 0, the source first as in the Pharaoh format, in the target's order.
            The first of equal weights wins; a step that looked at nothing has no link.
        """
        best = self.weights.argmax(axis=1)
        return tuple((int(best[t]), int(t)) for t in np.flatnonzero(self.weights.any(axis=1)))

    def monotonicity(self) -> float | None:
        r"""Return the share of steps whose link does not move back in the source.

        .. math::

           m = \frac{1}{n - 1} \sum_{k=2}^{n} [a_k \ge a_{k-1}], \qquad
           a_k = \arg\max_i \alpha_{t_k, i}

        where :math:`t_1 < \dots < t_n` are the steps that looked at anything.

        Returns
        -------
        m : float or None
            From 0 (every step moves back) to 1 (none does); None with fewer than two links,
            where the measure is not defined. A decoder that never moves also has 1: read it
            beside :meth:`diagonal_mass`.
        """
        places = [source for source, _ in self.links()]
        if len(places) < 2:
            return None
        forward = sum(later >= earlier for earlier, later in itertools.pairwise(places))
        return forward / (len(places) - 1)

    def diagonal_mass(self, *, within: float = 1.0) -> float | None:
        r"""Return the share of weight near the straight line from corner to corner.

        .. math::

           D = \sum_{t,i} \alpha_{t,i} \, [\,|i + 1/2 - (t + 1/2) \, T_{enc} / T_{dec}| \le w\,]
               \;\Big/\; \sum_{t,i} \alpha_{t,i}

        where positions are counted from 0.

        Parameters
        ----------
        within : float
            w, in source positions to either side; not negative.

        Returns
        -------
        D : float or None
            From 0 to 1; weights spread evenly give about (2w + 1) / T_enc. None where no step
            looked at anything.

        Raises
        ------
        InputError
            `within` is negative or not a number.
        """
        if not within >= 0:
            raise InputError(
                explain(
                    "diagonal_mass(): `within` is no distance",
                    expected="a number of source positions, 0 or more",
                    got=str(within),
                )
            )
        steps, states = self.weights.shape
        if not self.weights.any():
            return None
        line = (np.arange(steps) + 0.5) * states / steps
        distance = np.abs(np.arange(states)[None, :] + 0.5 - line[:, None])
        # Distances are sums of halves and ratios: the border must not hang on the last bit.
        near = np.where(distance <= within + 1e-9, self.weights, 0.0)
        return float(near.sum() / self.weights.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and strings, as :meth:`from_dict` takes them."""
        return {
            "target": list(self.target),
            "source": list(self.source),
            "weights": self.weights.tolist(),
            "made_by": dict(self.made_by),
        }

    def to_json(self) -> str:
        """Return JSON text. Every weight is written with all its digits, so that it reads back
        bit for bit.

        Raises
        ------
        InputError
            `made_by` holds something that JSON cannot.
        """
        try:
            return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                explain(
                    "Alignment: `made_by` does not go into JSON",
                    expected="strings, finite numbers, lists and dicts of them",
                    got=str(error),
                )
            ) from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build an alignment from the keys target, source, weights and, optionally, made_by.

        Raises
        ------
        InputError
            A key is missing, or `data` is no mapping.
        ShapeError, InputError, BackendError
            As the constructor does.
        """
        keys = set(data) if isinstance(data, Mapping) else set()
        missing = [key for key in ("target", "source", "weights") if key not in keys]
        if missing:
            raise InputError(
                explain(
                    f"Alignment: {' and '.join(missing)} missing",
                    expected="a mapping with the keys target, source and weights",
                    got=", ".join(map(str, keys)) or f"{type(data).__name__} without keys",
                )
            )
        return cls(data["weights"], data["target"], data["source"], data.get("made_by"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        InputError
            `text` is no JSON, or a key is missing.
        ShapeError, InputError, BackendError
            As the constructor does.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InputError(
                explain(
                    "Alignment: the text is no JSON",
                    expected="an object with the keys target, source and weights",
                    got=str(error),
                )
            ) from error
        return cls.from_dict(data)


def _check_shape(weights: NDArray[np.float64]) -> None:
    if weights.ndim == 2 and weights.size:
        return
    wrong = f"has {weights.ndim} axes, not 2" if weights.ndim != 2 else "has an empty axis"
    raise ShapeError(
        explain(
            f"Alignment(): `weights` {wrong}",
            expected="weights (T_dec, T_enc), both at least 1",
            got=f"weights {weights.shape}",
            help="take one example, and one head, out of a batch" if weights.ndim > 2 else None,
        )
    )


def _check_tokens(name: str, tokens: Any, shape: tuple[int, ...], axis: int) -> None:
    listed = isinstance(tokens, Sequence) and not isinstance(tokens, str | bytes)
    strange = [token for token in tokens if not isinstance(token, str)] if listed else [tokens]
    if strange:
        raise InputError(
            explain(
                f"Alignment(): `{name}` is no list of tokens",
                expected=f"{name}, a list of strings",
                got=f"{type(strange[0]).__name__} {str(strange[0])[:40]!r}"
                + (" in the list" if listed else ""),
                help=f"list({name}) makes every character a token"
                if isinstance(tokens, str)
                else None,
            )
        )
    if len(tokens) != shape[axis]:
        label = ("T_dec", "T_enc")[axis]
        raise ShapeError(
            explain(
                f"Alignment(): `{name}` does not fit `weights` on axis {label}",
                expected=f"{name} of {shape[axis]} tokens",
                got=f"{name} of {len(tokens)} tokens",
                because=f"{label} = {shape[axis]} comes from `weights` {shape}",
            )
        )


def _check_values(weights: NDArray[np.float64]) -> None:
    for bad, what, expected in (
        (~np.isfinite(weights), "is not finite", "finite weights"),
        (weights < 0, "is negative", "weights of 0 or more"),
    ):
        if bad.any():
            step, state = (int(place) for place in np.argwhere(bad)[0])
            raise InputError(
                explain(
                    f"Alignment(): a weight {what}",
                    expected=expected,
                    got=f"weights[{step}, {state}] = {weights[step, state]}",
                )
            )
    with np.errstate(over="ignore"):  # a sum beyond all numbers is not 1 either
        sums = weights.sum(axis=1)
    off = weights.any(axis=1) & (np.abs(sums - 1) > TOLERANCE)
    if off.any():
        step = int(np.flatnonzero(off)[0])
        turned = weights.shape[0] > 1 and bool(
            (abs(weights.sum(axis=0) - 1) <= TOLERANCE).all()
        )
        raise InputError(
            explain(
                "Alignment(): a row of `weights` does not sum to 1",
                expected=f"a decoder step's row sums to 1 within {TOLERANCE} or is all zero",
                got=f"weights[{step}] sums to {sums[step]:.4g}",
                help="the columns do sum to 1: pass the transpose" if turned else None,
            )
        )
