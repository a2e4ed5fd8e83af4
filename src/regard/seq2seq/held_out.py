"""Scoring a model on held-out pairs by the task's own metric, again and again."""

from collections.abc import Sequence
from typing import Any

from regard.errors import InputError, explain
from regard.seq2seq.checkpoint import Description
from regard.seq2seq.metrics import error_rates
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.transducer import Transducer

__all__ = ["METRICS", "HeldOut"]

METRICS = ("symbol_error", "exact_match", "bleu")
"""What a run may choose its weights by."""


class HeldOut:
    """Scores a model; all results are error rates from 0, lower is better.

    ``symbol_error`` is the symbol error rate (PER, CER), ``exact_match`` the share of sources
    with a wrong answer (WER of words), ``bleu`` one minus a hundredth of the BLEU score.

    Parameters
    ----------
    description : Description
        Of the model that will be scored.
    pairs : Pairs
    metric : {"symbol_error", "exact_match", "bleu"}
        Which one comes first, and so decides.

    Raises
    ------
    InputError
        The metric is unknown, or needs a package that is not installed.
    """

    def __init__(self, description: Description, pairs: Pairs, metric: str) -> None:
        if metric not in METRICS:
            raise InputError(
                explain(
                    "HeldOut(): `metric` is unknown",
                    expected=", ".join(METRICS),
                    got=repr(metric),
                )
            )
        if metric == "bleu":
            _sacrebleu()
        self._description = description
        self._metric = metric
        references = pairs.references()
        self._sources = list(references)
        self._texts = list(references.values())
        target = description.target
        self._symbols = [[target.split(text) for text in texts] for texts in self._texts]

    @property
    def names(self) -> tuple[str, ...]:
        """The error rates that a call returns, the one that decides first."""
        named = ["symbol_error", "exact_match"]
        return (self._metric, *(name for name in named if name != self._metric))

    def __call__(self, model: Seq2Seq) -> dict[str, float]:
        """Return the error rates of a model, the one that decides first."""
        transducer = Transducer(model, self._description)
        answers = transducer.predict(self._sources, need_weights=False)
        rates = error_rates([answer.target_symbols for answer in answers], self._symbols)
        scores = {
            "symbol_error": rates.symbol_error_rate,
            "exact_match": rates.exact_match_error,
        }
        if self._metric == "bleu":
            scores["bleu"] = 1.0 - _bleu([answer.target for answer in answers], self._texts)
        return {name: scores[name] for name in self.names}


def _bleu(answers: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the BLEU score, 0 to 1."""
    most = max(len(texts) for texts in references)
    columns = [
        [texts[place] if place < len(texts) else None for texts in references]
        for place in range(most)
    ]
    return float(_sacrebleu().corpus_bleu(list(answers), columns).score) / 100.0


def _sacrebleu() -> Any:
    try:
        import sacrebleu  # noqa: PLC0415 - only sentences need it
    except ImportError as error:
        raise InputError(
            explain(
                "the metric bleu needs the package sacrebleu",
                expected="sacrebleu, of the extra regard[bleu]",
                got="no such package",
                help="pip install 'regard[bleu]', or choose another --metric",
            )
        ) from error
    return sacrebleu
