"""Targets that are known already, read to the model: their probabilities, and where it looks.

As :mod:`regard.seq2seq.search.forced` and ``again``, of which these are the NumPy form.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.seq2seq.runtime.cells import Ids
from regard.seq2seq.runtime.model import Steps, log_softmax
from regard.seq2seq.search import Hypothesis
from regard.seq2seq.search.constraint import forbid_reserved
from regard.seq2seq.search.written import Followed, written_out

__all__ = ["forced", "look_again"]


def forced(
    model: Steps,
    source: Ids,
    lengths: Ids,
    targets: Sequence[Sequence[int]],
    rows: Sequence[int] | None = None,
) -> Followed:
    """Read targets to a model: one for each source, or for each of ``rows`` of them."""
    ids, answers = written_out(targets)
    places = np.arange(len(targets))
    log_probs, looked = [], []
    memory, state = model.start(source, lengths)
    if rows is not None:
        memory, state = memory.take(np.array(rows)), state.take(np.array(rows))
    for step in range(ids.shape[1]):
        scores, state, weights = model.step(ids[:, step].copy(), memory, state)
        each = log_softmax(forbid_reserved(scores))
        log_probs.append(each[places, answers[:, step]])
        if weights is not None:
            looked.append(weights.astype(np.float32))
    return Followed(np.stack(log_probs, 1), np.stack(looked, 1) if looked else None)


def look_again(
    model: Steps, source: Ids, lengths: Ids, found: list[list[Hypothesis]]
) -> list[list[Hypothesis]]:
    """Return the same hypotheses, one list a source, with their attention weights."""
    if not model.attends:
        return found
    flat = [(row, hypothesis) for row, each in enumerate(found) for hypothesis in each]
    rows, targets = [row for row, _ in flat], [hypothesis.ids for _, hypothesis in flat]
    looked = forced(model, source, lengths, targets, rows).weights
    assert looked is not None  # the model attends
    answers: list[list[Hypothesis]] = [[] for _ in found]
    for i, (row, hypothesis) in enumerate(flat):
        mine = looked[i, : len(hypothesis.ids), : lengths[row]].copy()
        answers[row].append(replace(hypothesis, weights=mine))
    return answers
