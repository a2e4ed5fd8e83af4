"""A known target, read to a model: its probabilities, and the alignment that its look makes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.alignment.matrix import TOLERANCE, Alignment
from regard.alignment.words import merge
from regard.errors import InputError, explain
from regard.seq2seq.vocab import Vocab

__all__ = ["END", "Forced", "aligned"]

END = "</s>"
"""What the row of the end is called."""

_WORD = "\u2581"  # begins a piece that begins a word
_FEATURE = "\t"  # begins a feature's symbol


@dataclass(frozen=True)
class Forced:
    """What a model made of one known target.

    Attributes
    ----------
    source, target : str
        As they were given.
    source_symbols, target_symbols : tuple of str
        What the model read.
    unknown, unknown_target : tuple of str
        Symbols that the model never saw in training, each once.
    log_probs : tuple of float
        Natural logarithm of each target symbol's probability, given the source and the symbols
        before it; one more than ``target_symbols``, the end's. Minus infinity for an unknown
        symbol, which the model never answers.
    weights : (T_dec + 1, T_enc) or None
        One row for each symbol and the end's; None without attention.
    """

    source: str
    target: str
    source_symbols: tuple[str, ...]
    target_symbols: tuple[str, ...]
    unknown: tuple[str, ...]
    unknown_target: tuple[str, ...]
    log_probs: tuple[float, ...]
    weights: NDArray[np.float32] | None

    @property
    def log_prob(self) -> float:
        """Natural logarithm of the target's probability, its end included."""
        return sum(self.log_probs)


def aligned(
    forced: Forced,
    source: Vocab,
    target: Vocab,
    *,
    end: bool = False,
    pieces: bool = False,
    features: bool = True,
    made_by: dict[str, Any] | None = None,
) -> Alignment:
    """Return the alignment of one pair, symbols as people read them.

    Parameters
    ----------
    forced : Forced
    source, target : Vocab
        The model's.
    end : bool
        Add the row of the end, which belongs to no word.
    pieces : bool
        Keep the pieces of a side that is cut into subwords apart; else they are merged to words
        (:func:`regard.alignment.words.merge`).
    features : bool
        Keep the columns of features. Without them each row is scaled to sum to 1 again.
    made_by : dict, optional

    Returns
    -------
    alignment : Alignment
        Rows of an attention that may look at less than everything (local, monotonic) are
        scaled to sum to 1; ``made_by`` then says ``"rows": "scaled"``.

    Raises
    ------
    InputError
        The model has no attention, or the source is nothing but features and these go.
    """
    if forced.weights is None:
        raise InputError(
            explain(
                "aligned(): the model has no weights to align by",
                expected="a model with attention",
                got='attention "none"',
            )
        )
    made = dict(made_by or {})
    weights = forced.weights.astype(np.float64)
    rows = _labels(target, forced.target_symbols, pieces)
    columns = _labels(source, forced.source_symbols, pieces)
    if end:
        # A word of its own, where pieces are merged.
        rows.append(END if pieces or target.kind != "subwords" else _WORD + END)
    else:
        weights = weights[:-1]
    if not features:
        kept = [i for i, s in enumerate(forced.source_symbols) if not _is_feature(source, s)]
        if not kept:
            raise InputError(
                explain(
                    "aligned(): nothing is left of the source without its features",
                    expected="at least one symbol of the text",
                    got=repr(forced.source)[:80],
                )
            )
        weights, columns = weights[:, kept], [columns[i] for i in kept]
    sums = weights.sum(axis=1, keepdims=True)
    if (np.abs(sums - 1) > TOLERANCE)[sums > 0].any():
        made["rows"] = "scaled"
    if "rows" in made or not features:
        weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    alignment = Alignment(weights, rows, columns, made)
    if pieces:
        return alignment
    return merge(
        alignment,
        target="sentencepiece" if target.kind == "subwords" else None,
        source="sentencepiece" if source.kind == "subwords" else None,
    )


def _is_feature(vocab: Vocab, symbol: str) -> bool:
    return vocab.features and symbol.startswith(_FEATURE)


def _labels(vocab: Vocab, symbols: tuple[str, ...], pieces: bool) -> list[str]:
    apart = vocab.kind == "subwords" and not pieces
    return [
        # A feature is no piece of the word before it.
        (_WORD if apart and _is_feature(vocab, symbol) else "") + vocab.label(symbol)
        for symbol in symbols
    ]
