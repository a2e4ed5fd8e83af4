"""Constraints on what a search may answer: allowed symbols, listed targets, a shortest length.

Probabilities stay the model's own: what is forbidden is passed over, and the rest is not scaled
up. So the answers from a lexicon are ranked by how likely the model finds each of them among
all targets, and scores with and without a constraint compare.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.errors import InputError, explain
from regard.seq2seq.vocab import BOS, EOS, FIRST, PAD, UNK

__all__ = ["Constraint", "Trie", "forbid_reserved"]

_NEVER = (PAD, BOS, UNK)


def forbid_reserved(symbol_scores: Tensor) -> Tensor:
    """Take padding, begin and unknown out of some scores, in place: no search answers them."""
    for index in _NEVER:
        symbol_scores[..., index] = -torch.inf
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
        self._keys = torch.from_numpy(keys)
        self._children = torch.from_numpy(children[order])
        self._starts = torch.from_numpy(starts.astype(np.int64))

    def forbidden(self, nodes: Tensor) -> Tensor:
        """Return ``(batch, symbols)``, True where a prefix ``(batch,)`` cannot go on so."""
        self._follow(nodes.device)
        first, end = self._starts[nodes], self._starts[nodes + 1]
        counts = end - first
        rows = torch.repeat_interleave(counts)  # row 0 as often as it has edges, and so on
        before = torch.cumsum(counts, 0) - counts
        edges = torch.arange(len(rows), device=rows.device) + (first - before)[rows]
        mask = torch.ones(len(nodes), self.symbols, dtype=torch.bool, device=nodes.device)
        mask[rows, self._keys[edges] % self.symbols] = False
        return mask

    def advance(self, nodes: Tensor, symbols: Tensor) -> Tensor:
        """Return the prefixes one symbol later; the empty one where there is none."""
        wanted = nodes * self.symbols + symbols
        places = torch.searchsorted(self._keys, wanted).clamp_(max=len(self._keys) - 1)
        return torch.where(self._keys[places] == wanted, self._children[places], 0)

    def _follow(self, device: torch.device) -> None:
        if self._keys.device != device:
            self._keys = self._keys.to(device)
            self._children = self._children.to(device)
            self._starts = self._starts.to(device)


@dataclass(frozen=True, eq=False)
class Constraint:
    """What a search may answer.

    Parameters
    ----------
    allowed : (target_symbols,), bool, optional
        True = may be answered. The end always may.
    trie : Trie, optional
        The only targets to answer. A limit below its longest cuts some of them.
    shortest : int
        Symbols that a target must have, the end not counted; from 0.

    Raises
    ------
    InputError
        ``shortest`` is negative, or nothing at all is allowed.
    """

    allowed: Tensor | None = None
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

    def start(self, rows: int, device: torch.device) -> Tensor | None:
        """Return the prefixes of some sequences that have not begun; None without a trie."""
        if self.trie is None:
            return None
        return torch.zeros(rows, dtype=torch.long, device=device)

    def restrict(self, log_probs: Tensor, nodes: Tensor | None, step: int) -> Tensor:
        """Set what may not follow to minus infinity, in place.

        Parameters
        ----------
        log_probs : (batch, target_symbols)
        nodes : (batch,) or None
            From :meth:`start` or :meth:`advance`.
        step : int
            Symbols that every sequence has so far.
        """
        if self.allowed is not None:
            allowed = self.allowed.to(log_probs.device).clone()
            allowed[EOS] = True
            log_probs.masked_fill_(~allowed, -torch.inf)
        if self.trie is not None and nodes is not None:
            log_probs.masked_fill_(self.trie.forbidden(nodes), -torch.inf)
        if step < self.shortest:
            log_probs[..., EOS] = -torch.inf
        return log_probs

    def advance(self, nodes: Tensor | None, symbols: Tensor) -> Tensor | None:
        """Return the prefixes one symbol later."""
        if self.trie is None or nodes is None:
            return None
        return self.trie.advance(nodes, symbols)
