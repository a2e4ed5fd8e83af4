"""Error rates of whatever answers texts."""

from regard.seq2seq.metrics import ErrorRates, error_rates
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.rewriter import Rewriter
from regard.seq2seq.search import SearchSettings

__all__ = ["rates_of"]


def rates_of(
    rewriter: Rewriter, pairs: Pairs, *, search: SearchSettings | None = None
) -> ErrorRates:
    """Score answers against the references of some pairs.

    Parameters
    ----------
    rewriter : Rewriter
    pairs : Pairs
        Several with one source give it several references.
    search : SearchSettings, optional
        How to search; greedy by default.

    Notes
    -----
    Symbols are compared, not ids: a reference with a symbol that the model never saw can never
    be matched, and counts as an error.
    """
    references = pairs.references()
    target = rewriter.description.target
    predictions = rewriter.predict(list(references), search=search, need_weights=False)
    return error_rates(
        [prediction.target_symbols for prediction in predictions],
        [[target.split(text) for text in texts] for texts in references.values()],
    )
