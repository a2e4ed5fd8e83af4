"""Error rates of predicted sequences, against one or several references.

The reference that counts is the nearest one; among equally near ones the longest, as the
published letters-to-sounds results do.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from regard.errors import InputError, explain

__all__ = ["Counts", "ErrorRates", "counts", "error_rates", "nearest_reference"]

Symbols = Sequence[Hashable]


@dataclass(frozen=True)
class ErrorRates:
    """How far predictions are from their references.

    Attributes
    ----------
    symbol_error_rate : float
        Edits (substitutions, deletions, insertions, each 1) to the nearest reference, over the
        symbols of those references. From 0; above 1 when predictions are far too long. Called
        PER for phonemes, CER for characters.
    exact_match_error : float
        Share of examples that equal none of their references, 0 to 1. Called WER for words.
    token_accuracy : float
        Share of positions of the nearest reference that have the right symbol, 0 to 1. One
        symbol missed shifts all that follow: this is for tasks where positions matter.
    edits, symbols, wrong, examples, right_positions : int
        The counts behind the rates.
    """

    edits: int
    symbols: int
    wrong: int
    examples: int
    right_positions: int

    @property
    def symbol_error_rate(self) -> float:  # noqa: D102 - described above
        return self.edits / self.symbols

    @property
    def exact_match_error(self) -> float:  # noqa: D102 - described above
        return self.wrong / self.examples

    @property
    def token_accuracy(self) -> float:  # noqa: D102 - described above
        return self.right_positions / self.symbols


def nearest_reference(prediction: Symbols, references: Sequence[Symbols]) -> tuple[int, int]:
    """Find the reference with the fewest edits; of equals the longest, then the first.

    Returns
    -------
    index, edits : int
        Which reference, and its distance.
    """
    distances = [
        (Levenshtein.distance(prediction, reference), -len(reference), index)
        for index, reference in enumerate(references)
    ]
    edits, _, index = min(distances)
    return index, edits


def error_rates(
    predictions: Sequence[Symbols], references: Sequence[Sequence[Symbols]]
) -> ErrorRates:
    """Score predictions.

    Parameters
    ----------
    predictions : sequence of sequences of symbols
        One an example; lists or tuples of anything that can be compared, or strings. May be
        empty, which misses everything.
    references : sequence of lists of sequences of symbols
        One list an example, with at least one reference that is not empty.

    Returns
    -------
    rates : ErrorRates

    Raises
    ------
    InputError
        The numbers of predictions and references differ, or are 0, or an example has no
        reference or an empty one.

    Examples
    --------
    >>> error_rates(["cat", "dog"], [["cat", "kat"], ["dogs"]]).symbol_error_rate.__round__(3)
    0.143
    """
    each = counts(predictions, references)
    return ErrorRates(
        edits=sum(one.edits for one in each),
        symbols=sum(one.symbols for one in each),
        wrong=sum(one.edits > 0 for one in each),
        examples=len(each),
        right_positions=sum(one.right_positions for one in each),
    )


class Counts(NamedTuple):
    """What one example adds to :class:`ErrorRates`."""

    edits: int
    """To the nearest reference; 0 if the prediction is right."""

    symbols: int
    """Of that reference."""

    right_positions: int


def counts(
    predictions: Sequence[Symbols], references: Sequence[Sequence[Symbols]]
) -> list[Counts]:
    """Count for every example what :func:`error_rates` sums up.

    Parameters
    ----------
    predictions, references
        As :func:`error_rates` takes them.

    Returns
    -------
    each : list of Counts
        One an example, in order.

    Raises
    ------
    InputError
        As :func:`error_rates` does.
    """
    if len(predictions) != len(references) or not predictions:
        raise InputError(
            explain(
                "error_rates(): `predictions` and `references` do not match",
                expected="one list of references for each prediction, and at least one",
                got=f"{len(predictions)} predictions, {len(references)} lists of references",
            )
        )
    found = []
    for number, (prediction, known) in enumerate(zip(predictions, references, strict=True)):
        if not known or not all(len(reference) for reference in known):
            raise InputError(
                explain(
                    f"error_rates(): example {number} has no reference, or an empty one",
                    expected="at least one reference, each with at least one symbol",
                    got=repr(known)[:80],
                )
            )
        index, distance = nearest_reference(prediction, known)
        nearest = known[index]
        right = sum(a == b for a, b in zip(prediction, nearest, strict=False))
        found.append(Counts(distance, len(nearest), right))
    return found
