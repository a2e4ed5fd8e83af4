"""Constraints written as texts: allowed symbols and a lexicon of targets."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError, explain
from regard.seq2seq.search.constraint import Constraint, Trie
from regard.seq2seq.vocab import FIRST, UNK, Vocab

__all__ = ["Wanted", "wanted"]


class Wanted(NamedTuple):
    """A constraint, and what of the texts could not be part of it."""

    constraint: Constraint | None
    """None where nothing is constrained."""

    unknown: tuple[str, ...]
    """Allowed symbols that the model cannot answer."""

    left_out: int
    """Targets of the lexicon that it cannot answer, or that are too short or too long."""


def wanted(
    vocab: Vocab,
    *,
    allow: Iterable[str] | None = None,
    lexicon: Iterable[str] | None = None,
    min_length: int = 0,
    max_length: int | None = None,
) -> Wanted:
    """Make a constraint from texts.

    Parameters
    ----------
    vocab : Vocab
        The target's.
    allow : iterable of str, optional
        Texts whose symbols are the only ones that may be answered.
    lexicon : iterable of str, optional
        The only targets that may be answered. Empty texts and repeats are passed over.
    min_length, max_length : int, optional
        Symbols of a target. They thin out the lexicon; otherwise `max_length` is the search's
        affair.

    Raises
    ------
    InputError
        Nothing is left that could be answered.

    Examples
    --------
    >>> vocab = Vocab.of(["abc"], kind="chars")
    >>> wanted(vocab, lexicon=["ab", "cab", "xyz"]).left_out
    1
    """
    allowed: NDArray[np.bool_] | None = None
    unknown: tuple[str, ...] = ()
    if allow is not None:
        symbols = dict.fromkeys(s for text in allow for s in vocab.split(text))
        known = set(vocab.symbols)
        unknown = tuple(symbol for symbol in symbols if symbol not in known)
        allowed = np.array([False] * FIRST + [symbol in symbols for symbol in vocab.symbols])
        if not bool(allowed.any()):
            raise InputError(
                explain(
                    "`allow` has no symbol that the model can answer",
                    expected=f"some of its {len(vocab) - FIRST} symbols, as "
                    + " ".join(repr(symbol) for symbol in vocab.symbols[:7]),
                    got=" ".join(repr(symbol) for symbol in list(symbols)[:7]) or "nothing",
                )
            )
    trie, left_out = None, 0
    if lexicon is not None:
        kept = []
        for text in lexicon:
            target = vocab.encode(text)
            if not target:
                continue
            fits = min_length <= len(target) and (
                max_length is None or len(target) <= max_length
            )
            may = UNK not in target and (allowed is None or bool(allowed[target].all()))
            if fits and may:
                kept.append(target)
            else:
                left_out += 1
        if not kept:
            raise InputError(
                explain(
                    "`lexicon` has no target that the model can answer",
                    expected="at least one, of symbols that it knows and of allowed length",
                    got=f"{left_out} that are not" if left_out else "nothing",
                )
            )
        trie = Trie(kept, len(vocab))
    if allowed is None and trie is None and not min_length:
        return Wanted(None, unknown, left_out)
    return Wanted(Constraint(allowed, trie, min_length), unknown, left_out)
