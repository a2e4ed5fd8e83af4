"""What a transducer answers: texts, with the hypotheses they were made from."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.seq2seq.search import Hypothesis
from regard.seq2seq.vocab import UNK, Vocab

__all__ = ["UNKNOWN", "Answer", "Prediction", "answer_of"]

UNKNOWN = ("keep", "copy", "drop", "fail")
"""What to do with source symbols that the model never saw in training.

=========  ==================================================================================
``keep``   the model sees that something stood there, not what; the default
``copy``   as keep, and where it looks at such a symbol the symbol itself is answered
``drop``   the model does not see it
``fail``   the text is refused
=========  ==================================================================================
"""


@dataclass(frozen=True)
class Answer:
    """One of a model's answers to a source.

    Attributes
    ----------
    target : str
    target_symbols : tuple of str
        One for each row of the attention weights.
    hypothesis : Hypothesis
        Probabilities, score and attention weights.
    """

    target: str
    target_symbols: tuple[str, ...]
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Prediction:
    """A model's answers to one source.

    Attributes
    ----------
    source : str
        As it was given.
    source_symbols : tuple of str
        What the model read: one for each column of the attention weights.
    unknown : tuple of str
        Source symbols that the model never saw in training, each once.
    answers : tuple of Answer
        The best first; at least one.
    target, target_symbols, hypothesis
        Of the first answer.
    """

    source: str
    source_symbols: tuple[str, ...]
    unknown: tuple[str, ...]
    answers: tuple[Answer, ...]

    @property
    def target(self) -> str:  # noqa: D102 - described above
        return self.answers[0].target

    @property
    def target_symbols(self) -> tuple[str, ...]:  # noqa: D102 - described above
        return self.answers[0].target_symbols

    @property
    def hypothesis(self) -> Hypothesis:  # noqa: D102 - described above
        return self.answers[0].hypothesis


def answer_of(
    hypothesis: Hypothesis, target: Vocab, copied: Sequence[str | None] = ()
) -> Answer:
    """Turn a hypothesis into a text.

    Parameters
    ----------
    hypothesis : Hypothesis
    target : Vocab
    copied : sequence of (str or None), optional
        One for each source symbol: what to answer where the model looked at it most, in place
        of what it answered; None leaves that. A run of symbols that look at one place becomes
        one copy, whose id is ``UNK`` and whose log-probability is the run's.

    Notes
    -----
    Jean et al. 2015 (arXiv:1412.2007) replace unknown words of translations so, by where the
    attention looked.
    """
    weights = hypothesis.weights
    if weights is None or not any(symbol is not None for symbol in copied):
        symbols = tuple(target.name(i) for i in hypothesis.ids)
        return Answer(target.join(symbols), symbols, hypothesis)
    names: list[str] = []
    ids: list[int] = []
    log_probs: list[float] = []
    rows: list[int] = []
    last = -1
    for row, index in enumerate(hypothesis.ids):
        looked = int(weights[row].argmax())
        copy = copied[looked]
        if copy is not None and last == looked:
            log_probs[-1] += hypothesis.log_probs[row]
            continue
        last = looked
        names.append(target.name(index) if copy is None else copy)
        ids.append(index if copy is None else UNK)
        log_probs.append(hypothesis.log_probs[row])
        rows.append(row)
    log_probs += hypothesis.log_probs[len(hypothesis.ids) :]
    changed = Hypothesis(
        ids=tuple(ids),
        log_probs=tuple(log_probs),
        finished=hypothesis.finished,
        weights=weights[rows],
        score=hypothesis.score,
    )
    return Answer(target.join(names), tuple(names), changed)
