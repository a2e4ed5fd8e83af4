"""How quickly a model answers."""

import time
from dataclasses import dataclass

from regard.seq2seq.rewriter import Asked, Rewriter
from regard.seq2seq.search import SearchSettings

__all__ = ["Speed", "speed_of"]

_ENOUGH = 0.3  # seconds of work that a rate is taken from


@dataclass(frozen=True)
class Speed:
    """Sources a second of processor time, one thread."""

    greedy: float
    alone: float
    """Each answered by itself, as a program does that has one at a time."""


def speed_of(rewriter: Rewriter, sources: list[list[int]]) -> Speed:
    """Time greedy answers to sources, as lists of ids."""
    rewriter.get_ready()
    ordered = sorted(sources, key=len)
    batches = [ordered[first : first + 128] for first in range(0, len(ordered), 128)]
    return Speed(
        greedy=_rate(rewriter, batches),
        alone=_rate(rewriter, [[ids] for ids in ordered[:: max(1, len(ordered) // 50)]]),
    )


def _rate(rewriter: Rewriter, batches: list[list[list[int]]]) -> float:
    description = rewriter.description
    asked = [
        Asked(
            ids=batch,
            numbers=list(range(len(batch))),
            limits=[description.longest_answer(len(ids)) for ids in batch],
            how=SearchSettings(),
            constraint=None,
            need_weights=False,
        )
        for batch in batches
    ]
    rewriter.answer(asked[0])  # what happens only once
    count, spent = 0, 0.0
    while spent < _ENOUGH:
        for each in asked:
            began = time.process_time()
            rewriter.answer(each)
            spent += time.process_time() - began
            count += len(each.ids)
    return count / spent
