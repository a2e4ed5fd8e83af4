"""Error rates as text for people, or as a mapping for programs."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.seq2seq.metrics import ErrorRates

__all__ = ["score_lines", "score_mapping"]


def score_lines(rates: "ErrorRates") -> str:
    """Return three lines; percentages with two decimals."""
    return (
        f"  symbol error rate  {100 * rates.symbol_error_rate:6.2f} %  "
        f"({rates.edits} edits, {rates.symbols} reference symbols)\n"
        f"  exact-match error  {100 * rates.exact_match_error:6.2f} %  "
        f"({rates.wrong} of {rates.examples} sources)\n"
        f"  token accuracy     {100 * rates.token_accuracy:6.2f} %"
    )


def score_mapping(rates: "ErrorRates") -> dict[str, Any]:
    """Return the rates (0 to 1) and the counts behind them."""
    return {
        "symbol_error_rate": rates.symbol_error_rate,
        "exact_match_error": rates.exact_match_error,
        "token_accuracy": rates.token_accuracy,
        "edits": rates.edits,
        "symbols": rates.symbols,
        "wrong": rates.wrong,
        "examples": rates.examples,
    }
