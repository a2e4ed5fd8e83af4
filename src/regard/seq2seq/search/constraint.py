"""Constraints on what a search may answer: allowed symbols, listed targets, a shortest length.

Probabilities stay the model's own: what is forbidden is passed over, and the rest is not scaled
up. So the answers from a lexicon are ranked by how likely the model finds each of them among
all targets, and scores with and without a constraint compare.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.axes import Array
from regard.errors import InputError, explain
from regard.seq2seq.vocab import BOS, EOS, FIRST, PAD, UNK

__all__ = ["Constraint", "Trie", "forbid_reserved"]

_NEVER = (PAD, BOS, UNK)


def forbid_reserved(symbol_scores: Array) -> Array:
    """Take padding, begin and unknown out of some scores, in place: no search answers them."""
    for index in _NEVER:
        symbol_scores[..., index] = -math.inf
    return symbol_scores


class Trie:
    """Listed targets as a tree of prefixes.

    Parameters
    ----------
    targets : iterable of sequences of ids
        Without begin and end; repeats are one.
    symbols : int
        Size of the vocabulary.

    Attributes
    ----------
    longest : int
        Symbols of the longest target.

    Raises
    ------
    InputError
        There is no target, or one has an id that is reserved or outside the vocabulary.

    Notes
    -----
    Holds two numbers a prefix, sorted, so a step looks up the continuations of all its rows at
    once.
    """

    def __init__(self, targets: Iterable[Sequence[int]], symbols: int) -> None:
        edges: dict[int, int] = {}
        nodes, self.longest = 1, -1
        for target in targets:
            if not all(FIRST <= symbol < symbols for symbol in target):
                raise InputError(
                    explain(
                        "Trie(): a target has an id that no answer can have",
                        expected=f"ids from {FIRST} to {symbols - 1}",
                        got=repr(tuple(target))[:80],
                    )
                )
            node = 0
            for symbol in target:
                key = node * symbols + symbol
                if key not in edges:
                    edges[key] = nodes
                    nodes += 1
                node = edges[key]
            # Where it leads is never asked: a sequence is done after its end.
            edges[node * symbols + EOS] = 0
            self.longest = max(self.longest, len(target))
        if self.longest < 0:
            raise InputError(
                explain(
                    "Trie(): there is no target to answer",
                    expected="at least one",
                    got="none",
                )
            )
        keys = np.fromiter(edges.keys(), dtype=np.int64, count=len(edges))
        children = np.fromiter(edges.values(), dtype=np.int64, count=len(edges))
        order = np.argsort(keys)
        keys = keys[order]
        starts = np.searchsorted(keys, np.arange(nodes + 1) * symbols)
        self.symbols = symbols
        self._keys = keys
        self._children = children[order]
        self._starts = starts

    def forbidden(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return ``(batch, symbols)``, True where a prefix ``(batch,)`` cannot go on so."""
        first = self._starts[nodes]
        counts = self._starts[nodes + 1] - first
        rows = np.repeat(np.arange(len(nodes)), counts)  # row 0 as often as it has edges ...
        before = np.cumsum(counts) - counts
        edges = np.arange(len(rows)) + (first - before)[rows]
        mask = np.ones((len(nodes), self.symbols), dtype=np.bool_)
        mask[rows, self._keys[edges] % self.symbols] = False
        return mask

    def advance(
        self, nodes: NDArray[np.int64], symbols: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the prefixes one symbol later; the empty one where there is none."""
        wanted = nodes * self.symbols + symbols
        places = np.searchsorted(self._keys, wanted).clip(max=len(self._keys) - 1)
        return np.where(self._keys[places] == wanted, self._children[places], 0)


@dataclass(frozen=True, eq=False)
class Constraint:
    """What a search may answer.

    Parameters
    ----------
    allowed : (target_symbols,), bool, optional
        Of any library, on the CPU. True = may be answered. The end always may.
    trie : Trie, optional
        The only targets to answer. A limit below its longest cuts some of them.
    shortest : int
        Symbols that a target must have, the end not counted; from 0.

    Raises
    ------
    InputError
        ``shortest`` is negative, or nothing at all is allowed.
    """

    allowed: Array | None = None
    trie: Trie | None = None
    shortest: int = 0

    def __post_init__(self) -> None:
        if self.shortest < 0:
            raise InputError(
                explain(
                    "Constraint(): `shortest` is refused",
                    expected="a number from 0",
                    got=str(self.shortest),
                )
            )
        if self.allowed is not None and not bool(self.allowed[FIRST:].any()):
            raise InputError(
                explain(
                    "Constraint(): `allowed` has no symbol that can be answered",
                    expected="at least one symbol of the target vocabulary",
                    got="none",
                )
            )

    @property
    def free(self) -> bool:
        """Whether everything may be answered."""
        return self.allowed is None and self.trie is None and not self.shortest

    def start(self, rows: int) -> NDArray[np.int64] | None:
        """Return the prefixes of some sequences that have not begun; None without a trie."""
        return None if self.trie is None else np.zeros(rows, dtype=np.int64)

    def forbidden(
        self, nodes: NDArray[np.int64] | None, step: int, symbols: int
    ) -> NDArray[np.bool_] | None:
        """Say what may not follow.

        Parameters
        ----------
        nodes : (batch,) or None
            From :meth:`start` or :meth:`advance`.
        step : int
            Symbols that every sequence has so far.
        symbols : int
            Size of the vocabulary.

        Returns
        -------
        forbidden : (batch or 1, symbols), bool, or None
            One row where it is the same for all; None where everything may follow.
        """
        mask = np.zeros((1, symbols), dtype=np.bool_)
        if self.allowed is not None:
            mask = ~np.asarray(self.allowed)[None]
            mask[:, EOS] = False
        if self.trie is not None and nodes is not None:
            mask = mask | self.trie.forbidden(nodes)
        if step < self.shortest:
            mask[:, EOS] = True
        return mask if mask.any() else None

    def advance(
        self, nodes: NDArray[np.int64] | None, symbols: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Return the prefixes one symbol later."""
        if self.trie is None or nodes is None:
            return None
        return self.trie.advance(nodes, symbols)
