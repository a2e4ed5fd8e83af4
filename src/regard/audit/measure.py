"""The tests of an audit: what each needs, how it runs, how its figures are shown.

A measure returns columns: for each input one number (or a list of them), computed from that
input alone and the sample's seed. So it can stop after any input, go on later, and every figure
has a bootstrap interval over inputs. Beside them an audit puts a column ``text``: what each
input belongs to, itself unless it is a step of a text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from regard.audit.interval import Estimate, mean_of
from regard.audit.sample import Sample
from regard.audit.verdict import Table

__all__ = ["FEWEST", "Columns", "Measure", "means_of", "needs_other_weights"]

FEWEST = 20
"""Inputs, below which no interval means anything."""

Columns: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Measure:
    """One test.

    Parameters
    ----------
    name : str
        As ``--tests`` and the JSON call it.
    run : callable
        Takes the sample and places of inputs in it; returns columns.
    table : callable
        Takes the columns and the seed of the bootstrap; returns what is shown.
    missing : callable
        Takes the sample; returns why the test cannot run on it, or None.
    size : callable
        Takes the sample; returns how many pieces the test has: its inputs, or trainings.
    step : int
        Pieces at a time.
    fewest : int
        Pieces below which nothing is shown.
    trains : bool
        Whether it trains models: it then has to be asked for.
    """

    name: str
    run: Callable[[Sample, Sequence[int]], dict[str, list[Any]]]
    table: Callable[[Columns, int], Table]
    missing: Callable[[Sample], str | None] = lambda sample: None
    size: Callable[[Sample], int] = len
    step: int = 50
    fewest: int = FEWEST
    trains: bool = False


def means_of(columns: Columns, seed: int) -> Callable[[Any], Estimate]:
    """Return what estimates means over the inputs of columns: steps of one text go together."""
    return partial(mean_of, seed=seed, groups=columns.get("text"))


def needs_other_weights(sample: Sample) -> str | None:
    """Return why other weights cannot be tried on a sample, or None."""
    return None if sample.rereads else "the case has neither predict_with nor read_out"
