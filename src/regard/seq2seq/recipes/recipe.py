"""What a recipe is: data, settings that are known to work, and what others have reached."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from regard.seq2seq.job import JobSettings
from regard.seq2seq.metrics import ErrorRates
from regard.seq2seq.pairs import Pairs, read_pairs

__all__ = ["Measure", "Parts", "Published", "Recipe", "read_parts"]


class Parts(NamedTuple):
    """Data in three parts; no source is in two of them."""

    train: Pairs
    dev: Pairs
    """What the best weights are chosen on."""
    test: Pairs
    """What results are stated on."""


def read_parts(paths: Mapping[str, Path], names: Sequence[str], **how: Any) -> Parts:
    """Read the three parts from their files.

    Parameters
    ----------
    paths : mapping of str to Path
        Where each file is.
    names : sequence of str
        Of the files, in the order of the parts.
    **how
        As :func:`~regard.seq2seq.pairs.read_pairs` takes it.
    """
    read = (read_pairs(paths[name], **how) for name in names)
    # A model says what it was made from, not where that lay.
    return Parts(*(replace(part, name=name) for part, name in zip(read, names, strict=True)))


@dataclass(frozen=True)
class Measure:
    """A rate under the name that the task's literature gives it.

    Parameters
    ----------
    name : str
        "WER", "PER", "CER", "accuracy".
    rate : str
        The attribute of :class:`~regard.seq2seq.metrics.ErrorRates`.
    right : bool
        What is right is counted, not what is wrong.
    """

    name: str
    rate: str
    right: bool = False

    def of(self, rates: ErrorRates) -> float:
        """Return the measure in percent."""
        share: float = getattr(rates, self.rate)
        return 100.0 * (1.0 - share if self.right else share)


@dataclass(frozen=True)
class Published:
    """A result that others have published.

    Parameters
    ----------
    system : str
    values : mapping of str to float
        By the name of the measure, in percent.
    source : str
        Where it stands.
    note : str
        What makes it more or less than comparable.
    """

    system: str
    values: Mapping[str, float]
    source: str
    note: str = ""


@dataclass(frozen=True)
class Recipe:
    """A task that one command trains.

    Parameters
    ----------
    name, variant : str
        The verb's argument, and the language or data set.
    title : str
        For people.
    load : callable
        Returns the :class:`Parts`; reads files only when it is called.
    job : callable
        From a number of seconds and a seed to settings; they are laid out for one core.
    seconds : float
        The time that the recipe takes by default, by the wall clock.
    members : int
        Models that the recipe trains side by side, one a core, and lets answer together.
    beam : int
        Width of the search; 1 is greedy.
    measures : tuple of Measure
        The first one is what results are compared by.
    published : tuple of Published
        The best last; empty if none is known for this data.
    has_presets : bool
        Whether it also has settings with a number of steps instead of a time.
    """

    name: str
    variant: str
    title: str
    load: Callable[[], Parts]
    job: Callable[[float, int], JobSettings]
    seconds: float
    measures: tuple[Measure, ...]
    members: int = 1
    beam: int = 1
    published: tuple[Published, ...] = ()
    has_presets: bool = False
