"""The copy experiment's results, read once: means and spreads over seeds, and what they say.

Tables, pictures and the report all read the figures here, so that they cannot disagree.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.errors import InputError, explain

__all__ = ["MEASURES", "Cell", "CopyResults", "model_name", "percent"]

MEASURES = {"token_accuracy": "tokens right", "exact_match": "whole sequences right"}
"""The measures of a copy model, each a share from 0 to 1, and what they are called in text."""

_BASELINE = "none"
_NAMES = {
    "none": "no attention",
    "bahdanau": "Bahdanau",
    "dot": "Luong dot",
    "general": "Luong general",
    "concat": "Luong concat",
    "scaled_dot": "scaled dot",
    "location": "location",
}


def model_name(key: str) -> str:
    """Return what a model is called in text; an unknown one keeps its own name.

    >>> model_name("dot")
    'Luong dot'
    """
    return _NAMES.get(key, key)


def percent(share: float) -> str:
    """Return a share as per cent with one decimal, never rounded up to all or down to none.

    >>> percent(0.9551), percent(0.99996), percent(0.0001), percent(1.0)
    ('95.5', '>99.9', '<0.1', '100.0')
    """
    if 0.9995 <= share < 1:
        return ">99.9"
    if 0 < share < 0.0005:
        return "<0.1"
    return f"{100 * share:.1f}"


class Cell(NamedTuple):
    """One model at one length: a mean over seeds, and the lowest and highest seed."""

    mean: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True)
class CopyResults:
    """The ``copy`` part of the demo's results.

    Parameters
    ----------
    chance : float or None
        Token accuracy of guessing, from 0 to 1.
    trained : (int, int)
        Shortest and longest length that was trained on.
    lengths : tuple of int
        Lengths that were measured, rising.
    models : dict
        ``models[model][measure][length]`` is the tuple of that cell's figures, one a seed, each
        from 0 to 1. Cells that were not measured are absent.
    steps : int or None
    seeds : tuple of int
    """

    chance: float | None
    trained: tuple[int, int]
    lengths: tuple[int, ...]
    models: Mapping[str, Mapping[str, Mapping[int, tuple[float, ...]]]]
    steps: int | None
    seeds: tuple[int, ...]

    @classmethod
    def read(cls, copy: Mapping[str, Any]) -> "CopyResults":
        """Read the dict as it stands in ``demo.json``.

        Models, measures, lengths and seeds may be missing; what is there must be sound.

        Raises
        ------
        InputError
            `trained_lengths` is missing or no range, or a figure is no share from 0 to 1.
        """
        trained = copy.get("trained_lengths")
        if not (isinstance(trained, list | tuple) and len(trained) == 2):
            raise InputError(
                explain(
                    "copy results: `trained_lengths` is no range",
                    expected="[shortest, longest]",
                    got=repr(trained),
                )
            )
        models = {
            model: {
                measure: _figures(f"{model}.{measure}", found[measure])
                for measure in MEASURES
                if found.get(measure)
            }
            for model, found in copy.get("models", {}).items()
        }
        measured = {n for found in models.values() for cells in found.values() for n in cells}
        listed = {int(length) for length in copy.get("lengths", ())}
        chance = copy.get("chance")
        return cls(
            chance=None if chance is None else float(chance),
            trained=(int(trained[0]), int(trained[1])),
            lengths=tuple(sorted(measured | listed)),
            # No attention first: it is what all others are held against.
            models=dict(sorted(models.items(), key=lambda item: item[0] != _BASELINE)),
            steps=copy.get("steps"),
            seeds=tuple(copy.get("seeds", ())),
        )

    def cell(self, model: str, length: int, measure: str = "token_accuracy") -> Cell | None:
        """Return a model's figures at a length, or None where it was not measured."""
        found = self.models.get(model, {}).get(measure, {}).get(length)
        if not found:
            return None
        return Cell(math.fsum(found) / len(found), min(found), max(found), len(found))

    def extrapolates(self, length: int) -> bool:
        """Return whether a length lies outside the lengths trained on."""
        return not self.trained[0] <= length <= self.trained[1]

    @property
    def attentive(self) -> tuple[str, ...]:
        """The models with attention."""
        return tuple(model for model in self.models if model != _BASELINE)

    @property
    def most_seeds(self) -> int:
        """The largest number of seeds behind any figure; 0 without figures."""
        cells = (values for found in self.models.values() for values in found.values())
        return max((len(figures) for found in cells for figures in found.values()), default=0)

    def best(self, length: int, measure: str = "token_accuracy") -> tuple[str, Cell] | None:
        """Return the model with attention that has the highest mean at a length, the first of
        equals, or None.
        """
        cells = [(model, self.cell(model, length, measure)) for model in self.attentive]
        known = [(model, cell) for model, cell in cells if cell is not None]
        return max(known, key=lambda item: item[1].mean, default=None)

    def gap(self, length: int, measure: str = "token_accuracy") -> float | None:
        """Return the best attention's mean minus that without attention, from -1 to 1."""
        best, without = self.best(length, measure), self.cell(_BASELINE, length, measure)
        return None if best is None or without is None else best[1].mean - without.mean

    def finding(self) -> str:
        """Return what the figures say, in sentences; every number in it is computed here."""
        trained = [n for n in self.lengths if not self.extrapolates(n) and self._known(n)]
        if not trained:
            return (
                "No model was measured at a length that it was trained on, so nothing is found."
            )
        longest = trained[-1]
        without, best = self.cell(_BASELINE, longest), self.best(longest)
        sentences = []
        if without is not None:
            guess = "" if self.chance is None else f"; chance is {100 * self.chance:.3g} %"
            sentences.append(
                f"At length {longest}, the longest trained length measured, the model without"
                f" attention gets {percent(without.mean)} % of the tokens right{guess}."
            )
        if best is not None:
            shares = [
                f"{model_name(model)} {percent(cell.mean)} %"
                for model in self.attentive
                if (cell := self.cell(model, longest)) is not None
            ]
            there = "" if sentences else f" at length {longest}"
            sentences.append(f"With attention{there}: {_list(shares)}.")
        sentences += self._trend([n for n in trained if self.gap(n) is not None])
        beyond = [n for n in self.lengths if n > self.trained[1] and self.best(n) is not None]
        if beyond and best is not None:
            model, cell = self.best(beyond[-1]) or best
            sentences.append(
                f"At length {beyond[-1]}, longer than anything in training, the best of them,"
                f" {model_name(model)}, gets {percent(cell.mean)} %."
            )
        return " ".join(sentences)

    def _known(self, length: int) -> bool:
        return any(self.cell(model, length) is not None for model in self.models)

    def _trend(self, lengths: list[int]) -> list[str]:
        """Compare the gap at the shortest and at the longest length."""
        if len(lengths) < 2:
            return []
        first, last = self.gap(lengths[0]) or 0.0, self.gap(lengths[-1]) or 0.0
        verb = (
            "widens"
            if last - first > 0.005
            else "narrows"
            if first - last > 0.005
            else "barely moves"
        )
        return [
            "The gap between the best attention and none"
            f" {verb} from {100 * first:.1f} points at length {lengths[0]}"
            f" to {100 * last:.1f} at length {lengths[-1]}."
        ]


def _figures(where: str, cells: Mapping[str, Any]) -> dict[int, tuple[float, ...]]:
    read = {}
    for length, seeds in cells.items():
        figures = tuple(seeds) if isinstance(seeds, Iterable) else (seeds,)
        for figure in figures:
            # `not` also catches NaN, which is neither above nor below.
            if not (isinstance(figure, int | float) and 0 <= figure <= 1):
                raise InputError(
                    explain(
                        f"copy results: a figure of {where} at length {length} is no share",
                        expected="numbers from 0 to 1, one a seed",
                        got=repr(figure),
                    )
                )
        if figures:
            read[int(length)] = figures
    return read


def _list(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]
