"""Attention weights of answers that are known already, by running the model on them again.

As :mod:`regard.seq2seq.search.again`, of which this is the NumPy form.
"""

from dataclasses import replace

import numpy as np

from regard.seq2seq.runtime.cells import Ids
from regard.seq2seq.runtime.model import Steps
from regard.seq2seq.search import Hypothesis
from regard.seq2seq.vocab import BOS, PAD

__all__ = ["look_again"]


def look_again(
    model: Steps, source: Ids, lengths: Ids, found: list[list[Hypothesis]]
) -> list[list[Hypothesis]]:
    """Return the same hypotheses, one list a source, with their attention weights."""
    if not model.attends:
        return found
    flat = [(row, hypothesis) for row, each in enumerate(found) for hypothesis in each]
    rows = np.array([row for row, _ in flat])
    longest = max(len(hypothesis.ids) for _, hypothesis in flat)
    ids = np.full((len(flat), longest + 1), PAD)
    ids[:, 0] = BOS
    for i, (_, hypothesis) in enumerate(flat):
        ids[i, 1 : len(hypothesis.ids) + 1] = hypothesis.ids
    looked = np.zeros((len(flat), longest, source.shape[1]), np.float32)
    memory, state = model.start(source, lengths)
    memory, state = memory.take(rows), state.take(rows)
    for step in range(longest):
        _, state, weights = model.step(ids[:, step].copy(), memory, state)
        if weights is not None:
            looked[:, step] = weights
    answers: list[list[Hypothesis]] = [[] for _ in found]
    for i, (row, hypothesis) in enumerate(flat):
        mine = looked[i, : len(hypothesis.ids), : lengths[row]].copy()
        answers[row].append(replace(hypothesis, weights=mine))
    return answers
