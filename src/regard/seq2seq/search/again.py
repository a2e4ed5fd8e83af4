"""Attention weights of answers that are known already, by running the model on them again."""

from dataclasses import replace

from torch import Tensor

from regard.seq2seq.search.forced import forced
from regard.seq2seq.search.hypothesis import Hypothesis
from regard.seq2seq.search.stepper import Stepper

__all__ = ["look_again"]


def look_again(
    model: Stepper,
    source: Tensor,
    source_lengths: Tensor | None,
    found: list[list[Hypothesis]],
) -> list[list[Hypothesis]]:
    """Return the same hypotheses with their attention weights.

    Parameters
    ----------
    model : Stepper
    source, source_lengths : Tensor
        What the hypotheses were found for: (batch, T_enc), and (batch,) or None.
    found : list of lists of Hypothesis
        One list an example.

    Notes
    -----
    While a beam search runs, it has to keep where every beginning looked, though few become
    answers. Where that would be too much, it is cheaper to look again.
    """
    flat = [(row, hypothesis) for row, each in enumerate(found) for hypothesis in each]
    if not flat or not model.attends:
        return found
    rows = [row for row, _ in flat]
    looked = forced(
        model, source, source_lengths, [hypothesis.ids for _, hypothesis in flat], rows
    ).weights
    assert looked is not None  # the model attends
    widths = [source.shape[1]] * len(found)
    if source_lengths is not None:
        widths = source_lengths.tolist()
    answers: list[list[Hypothesis]] = [[] for _ in found]
    for i, (row, hypothesis) in enumerate(flat):
        mine = looked[i, : len(hypothesis.ids), : widths[row]].copy()
        answers[row].append(replace(hypothesis, weights=mine))
    return answers
