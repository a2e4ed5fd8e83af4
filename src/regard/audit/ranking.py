"""In which order tokens are erased: by weight, by leave-one-out, by gradient, by chance.

Ties are broken at random, anew for each input: breaking them by position would favour whatever
stands first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.audit.protocol import Differentiable, Numbers
from regard.audit.sample import Sample

__all__ = ["LONGEST", "LeftOut", "leave_one_out", "order", "random_orders", "token_gradients"]

LONGEST = 64
"""Tokens of an input that are left out one by one; of longer inputs so many are drawn."""
_SURE = 16  # of those, the ones with the largest weights


@dataclass(frozen=True)
class LeftOut:
    """What leaving out each token did; each (T_enc,), NaN where it was not left out.

    Attributes
    ----------
    drop : drop of the predicted class's probability
    moved : total variation distance of the answers
    """

    drop: Numbers
    moved: Numbers

    @property
    def complete(self) -> bool:
        """Whether every token that may be erased was left out."""
        return bool(np.isfinite(self.drop).all())


def leave_one_out(sample: Sample, chunk: Sequence[int]) -> list[LeftOut]:
    """Leave out the tokens of some inputs, one at a time."""
    asked = []
    places = []
    for number in chunk:
        one = sample.inputs[number]
        chosen = _chosen(sample, number)
        places.append(chosen)
        asked += [(number, one.without([i])) for i in chosen]
    effects = sample.effects(asked)
    found, start = [], 0
    for number, chosen in zip(chunk, places, strict=True):
        length = len(sample.inputs[number].tokens)
        drop, moved = np.full(length, np.nan), np.full(length, np.nan)
        end = start + len(chosen)
        drop[chosen], moved[chosen] = effects.drop[start:end], effects.moved[start:end]
        found.append(LeftOut(drop, moved))
        start = end
    return found


def token_gradients(sample: Sample, chunk: Sequence[int]) -> list[Numbers] | None:
    """Return abs(input x gradient) of some inputs (T_enc,), or None where the case has none."""
    if not isinstance(sample.case, Differentiable):
        return None
    rows = sample.per_input(sample.case.token_gradient, chunk)
    return [np.asarray(row, dtype=np.float64) for row in rows]


def order(
    importance: Numbers, positions: Sequence[int], generator: np.random.Generator
) -> list[int]:
    """Return positions, the most important first; what is NaN comes last."""
    shuffled = generator.permutation(np.asarray(positions, dtype=np.int64))
    values = importance[shuffled]
    values = np.where(np.isnan(values), -np.inf, values)
    return [int(i) for i in shuffled[np.argsort(-values, kind="stable")]]


def random_orders(sample: Sample, number: int, count: int) -> list[list[int]]:
    """Return so many random orders of an input's tokens."""
    generator = sample.random(number, "random order")
    free = np.asarray(sample.inputs[number].free, dtype=np.int64)
    return [generator.permutation(free).tolist() for _ in range(count)]


def _chosen(sample: Sample, number: int) -> list[int]:
    free = sample.inputs[number].free
    if len(free) <= LONGEST:
        return list(free)
    generator = sample.random(number, "left out")
    ranked = order(sample.weights[number], free, generator)
    rest = generator.permutation(ranked[_SURE:])[: LONGEST - _SURE]
    return sorted([*ranked[:_SURE], *(int(i) for i in rest)])
