"""Targets that are known, as arrays of what is read and what is to be answered."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.seq2seq.vocab import BOS, EOS, PAD

__all__ = ["Followed", "written_out"]


class Followed(NamedTuple):
    """What was seen while targets were read to a model.

    Both have a row for every symbol and one for the end; what stands behind a target's end has
    no meaning.
    """

    log_probs: NDArray[np.float32]
    """(targets, T_dec + 1): of each symbol, given the source and the symbols before it."""

    weights: NDArray[np.float32] | None
    """(targets, T_dec + 1, T_enc): row t is what was read to answer symbol t."""


def written_out(targets: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], ...]:
    """Return what is read and what is to be answered, both (targets, T_dec + 1)."""
    longest = max(len(target) for target in targets)
    ids = np.full((len(targets), longest + 1), PAD, dtype=np.int64)
    answers = np.full_like(ids, EOS)
    ids[:, 0] = BOS
    for row, target in enumerate(targets):
        ids[row, 1 : len(target) + 1] = target
        answers[row, : len(target)] = target
    return ids, answers
