"""BLEU and chrF of translations, computed by sacrebleu, which is optional.

Both are of a whole corpus. What makes a score comparable is the signature beside it: it names
the tokenisation, the number of references and sacrebleu's version [1]_.

References
----------
.. [1] Post, "A Call for Clarity in Reporting BLEU Scores", WMT 2018. arXiv:1804.08771
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.errors import BackendError, InputError, explain

__all__ = ["CorpusScore", "bleu", "chrf"]

Texts = Sequence[str]


@dataclass(frozen=True)
class CorpusScore:
    """A corpus score, 0 to 100, higher is better, and what makes it comparable."""

    score: float
    signature: str


def bleu(
    predictions: Texts, references: Sequence[Texts], *, tokenize: str = "13a"
) -> CorpusScore:
    """Return BLEU: how many n-grams of the predictions the references have.

    Parameters
    ----------
    predictions : sequence of str
        One text an example.
    references : sequence of sequences of str
        One list an example, each with at least one reference; the lists may differ in length.
    tokenize : str
        As sacrebleu names it: ``13a`` for plain text, ``none`` for text that is cut into words
        by spaces already.

    Raises
    ------
    BackendError
        sacrebleu is not installed.
    InputError
        The numbers of predictions and references differ or are 0, or an example has no
        reference.
    """
    metric = _sacrebleu("bleu").BLEU(tokenize=tokenize, force=True)
    return _scored(metric, "bleu", predictions, references)


def chrf(predictions: Texts, references: Sequence[Texts]) -> CorpusScore:
    """Return chrF2: the F-score of character n-grams, recall counting twice.

    Parameters
    ----------
    predictions, references
        As :func:`bleu` takes them.

    Raises
    ------
    BackendError, InputError
        As :func:`bleu` does.
    """
    return _scored(_sacrebleu("chrf").CHRF(), "chrf", predictions, references)


def _sacrebleu(name: str) -> Any:
    try:
        import sacrebleu.metrics as found  # noqa: PLC0415 - optional
    except ImportError as error:
        raise BackendError(
            explain(
                f"{name}() needs sacrebleu, which is not installed",
                expected="sacrebleu",
                got="nothing",
                help="pip install 'regard[bleu]'",
            )
        ) from error
    return found


def _scored(
    metric: Any, name: str, predictions: Texts, references: Sequence[Texts]
) -> CorpusScore:
    if len(predictions) != len(references) or not predictions or not all(references):
        raise InputError(
            explain(
                f"{name}(): `predictions` and `references` do not match",
                expected="one list of at least one reference for each prediction",
                got=f"{len(predictions)} predictions, {len(references)} lists of references"
                + ", some empty" * (not all(references)),
            )
        )
    # sacrebleu wants the first references of all, then the second ones, None for those missing.
    most = max(map(len, references))
    streams = [
        [known[i] if i < len(known) else None for known in references] for i in range(most)
    ]
    score = metric.corpus_score(list(predictions), streams)
    return CorpusScore(float(score.score), str(metric.get_signature()))
