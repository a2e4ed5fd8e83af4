"""Scoring a model on held-out pairs by the task's own metric, again and again."""

from regard.errors import InputError, explain
from regard.seq2seq.bleu import bleu
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
        The metric is unknown.
    BackendError
        It needs a package that is not installed.
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
            bleu(["a"], [["a"]])  # a missing package is better noticed now
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
            found = bleu([answer.target for answer in answers], self._texts)
            scores["bleu"] = 1.0 - found.score / 100.0
        return {name: scores[name] for name in self.names}
