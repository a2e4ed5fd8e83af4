"""Whether an exported model says what the trained one says: every step, and whole answers."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from regard.errors import InputError, explain
from regard.seq2seq.batch import collate_sources
from regard.seq2seq.description import Description
from regard.seq2seq.ensemble import Ensemble
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.rewriter import Asked
from regard.seq2seq.runtime.model import Steps, log_softmax
from regard.seq2seq.runtime.transducer import NumpyTransducer, padded
from regard.seq2seq.search import SearchSettings
from regard.seq2seq.search.constraint import forbid_reserved
from regard.seq2seq.search.follow import quiet
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import BOS, EOS, FIRST

__all__ = ["LIMIT", "Agreement", "agreement", "made_up", "require_agreement"]

LIMIT = 1e-4
"""The largest difference of a log-probability or weight that an exact export may have."""

_SIDE_BY_SIDE = 256  # sources whose every step is compared
_BATCH = 64

_Differences: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True)
class Agreement:
    """How far an exported model is from the trained one.

    Attributes
    ----------
    sources : int
        Answered by both.
    same : int
        Of these, greedy answers that are equal.
    steps : int
        Steps compared one by one, both models led along the trained one's answers.
    difference : float
        The largest absolute difference of a log-probability there.
    probability_difference : float
        The same of the probability itself.
    weight_difference : float
        And of an attention weight.
    """

    sources: int
    same: int
    steps: int
    difference: float
    probability_difference: float
    weight_difference: float


def agreement(
    trained: Transducer, other: NumpyTransducer, sources: list[list[int]]
) -> Agreement:
    """Compare two forms of one model.

    Parameters
    ----------
    trained : Transducer
    other : NumpyTransducer
    sources : list of lists of int
        Ids, none of them empty.
    """
    model, steps_of = trained.model, other.model
    same, steps, largest = 0, 0, (0.0, 0.0, 0.0)
    ordered = sorted(sources, key=len)
    apart = max(1, len(ordered) // _SIDE_BY_SIDE)
    for first in range(0, len(ordered), _BATCH):
        batch = ordered[first : first + _BATCH]
        asked = _asked(trained.description, batch)
        found = [hypotheses[0].ids for hypotheses in trained.answer(asked)]
        same += sum(
            hypotheses[0].ids == ids
            for hypotheses, ids in zip(other.answer(asked), found, strict=True)
        )
        some = slice((-first) % apart, None, apart)
        if batch[some]:
            each = _side_by_side(model, steps_of, batch[some], found[some])
            steps += each[0]
            largest = _larger(largest, each[1])
    return Agreement(len(ordered), same, steps, *largest)


def made_up(description: Description, count: int = 256, seed: int = 0) -> list[list[int]]:
    """Return sources of random symbols, one unknown, as long as those of the training."""
    rng = np.random.default_rng(seed)
    longest = min(description.longest_source, 200)
    lengths = rng.integers(1, longest + 1, size=count)
    symbols = len(description.source)
    found = [rng.integers(FIRST, symbols, size=length).tolist() for length in lengths]
    found[0][-1] = FIRST - 1  # unknown
    return found


def require_agreement(name: str, found: Agreement) -> None:
    """Refuse an export that should be exact and is not.

    Raises
    ------
    InputError
        A step differs by more than :data:`LIMIT`, or an answer differs.
    """
    largest = max(found.difference, found.weight_difference)
    # A number that is none is no agreement either.
    if found.same == found.sources and largest <= LIMIT:
        return
    raise InputError(
        explain(
            f"{name}: the exported model does not agree with the trained one",
            expected=f"the same answers, and steps within {LIMIT:g}",
            got=f"{found.sources - found.same} of {found.sources} answers differ, "
            f"steps by up to {largest:.2g}",
            help="nothing was written",
        )
    )


def _asked(description: Description, batch: list[list[int]]) -> Asked:
    return Asked(
        ids=batch,
        numbers=list(range(len(batch))),
        limits=[description.longest_answer(len(ids)) for ids in batch],
        how=SearchSettings(),
        constraint=None,
        need_weights=False,
    )


def _side_by_side(
    model: Seq2Seq | Ensemble,
    other: Steps,
    sources: list[list[int]],
    answers: list[tuple[int, ...]],
) -> tuple[int, _Differences]:
    """Return the number of steps compared, and the largest differences."""
    longest = max(len(ids) for ids in answers) + 1
    given = np.full((len(sources), longest), EOS)
    given[:, 0] = BOS
    for row, ids in zip(given, answers, strict=True):
        row[1 : len(ids) + 1] = ids[: longest - 1]
    within = np.array([len(ids) for ids in answers])
    largest = (0.0, 0.0, 0.0)
    with quiet(model):
        memory, state = model.start(*collate_sources(sources))
        mine: Any
        mine, own = other.start(*padded(sources))
        for step in range(longest):
            previous = torch.from_numpy(given[:, step])
            scores, state, weights = model.step(previous, memory, state)
            theirs, own, looked = other.step(given[:, step].copy(), mine, own)
            on = within >= step
            wanted = log_softmax(forbid_reserved(scores.numpy().copy()))[on, EOS:]
            found = log_softmax(forbid_reserved(theirs.copy()))[on, EOS:]
            real = np.isfinite(wanted)
            now = [
                np.abs(found[real] - wanted[real]).max(),
                np.abs(np.exp(found[real]) - np.exp(wanted[real])).max(),
                0.0,
            ]
            if weights is not None and looked is not None:
                now[2] = np.abs(looked[on] - weights.numpy()[on]).max()
            largest = _larger(largest, (float(now[0]), float(now[1]), float(now[2])))
    return int((within + 1).sum()), largest


def _larger(one: _Differences, other: _Differences) -> _Differences:
    found = np.maximum(one, other)  # a NaN stays
    return (float(found[0]), float(found[1]), float(found[2]))
