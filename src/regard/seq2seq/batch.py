"""Batches of pairs, grouped by length, in an order that any step can be asked for.

A batch source answers :meth:`at` for every step number, and the answer depends on nothing but
the number: that is what lets a run that was stopped at step n go on as if it never had been.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import InputError, explain
from regard.seq2seq.vocab import BOS, EOS, PAD

__all__ = ["Batch", "Batches", "PairBatches", "collate", "collate_sources"]

Ids = Sequence[int]


@dataclass(frozen=True)
class Batch:
    """Some pairs as tensors of ids, padded with ``PAD``.

    Parameters
    ----------
    source : (batch, T_enc)
        Source symbols; without begin and end.
    source_lengths : (batch,) or None
        None when no source is padded: nothing need be masked then, which is faster.
    inputs : (batch, T_dec)
        What the decoder reads: ``BOS`` and the target.
    targets : (batch, T_dec)
        What it should answer: the target and ``EOS``.
    """

    source: Tensor
    source_lengths: Tensor | None
    inputs: Tensor
    targets: Tensor

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on another device."""
        lengths = None if self.source_lengths is None else self.source_lengths.to(device)
        return Batch(
            self.source.to(device), lengths, self.inputs.to(device), self.targets.to(device)
        )


class Batches(Protocol):
    """Anything that can be asked for the batch of a step."""

    def at(self, step: int) -> Batch:
        """Return the batch of one step, counted from 0; the same one whenever asked."""
        ...


class PairBatches:
    """Batches of nearly constant size, with sources of one length where the data allow.

    Parameters
    ----------
    examples : sequence of (source ids, target ids)
        Neither side empty; without begin and end.
    batch_tokens : int
        Upper bound of ``batch * (T_enc + T_dec)``, padding included. A pair that is longer than
        that makes a batch of its own.
    seed : int
        With the epoch, decides the order.

    Raises
    ------
    InputError
        No examples, an empty side, or a batch size below 1.

    Notes
    -----
    In every epoch each pair is seen once. The pairs of one source length fill batches; what is
    left over of all lengths, less than one batch of each, is sorted by length and shares
    batches with neighbours, so rare lengths do not make tiny ones.
    """

    def __init__(
        self, examples: Sequence[tuple[Ids, Ids]], *, batch_tokens: int, seed: int = 0
    ) -> None:
        if not examples or any(not source or not target for source, target in examples):
            raise InputError(
                explain(
                    "PairBatches(): `examples` lacks a source or a target",
                    expected="at least one pair, both sides with at least one symbol",
                    got=f"{len(examples)} pairs" + ", some with an empty side" * bool(examples),
                )
            )
        if batch_tokens < 1:
            raise InputError(
                explain(
                    "PairBatches(): `batch_tokens` is too small",
                    expected="at least 1",
                    got=str(batch_tokens),
                )
            )
        self._sources = _Flat([source for source, _ in examples])
        self._targets = _Flat([target for _, target in examples])
        self._batch_tokens = batch_tokens
        self._seed = seed
        self._first_steps = [0]  # of each epoch whose length is known, and of the next
        self._epoch = -1
        self._order: list[NDArray[np.intp]] = []

    def at(self, step: int) -> Batch:
        """Return the batch of one step, counted from 0 over all epochs."""
        rows = self._rows(step)
        return _collate(self._sources, self._targets, rows)

    def epoch_length(self, epoch: int = 0) -> int:
        """Count the batches of one epoch; epochs differ a little."""
        return len(self._batches_of(epoch))

    def _rows(self, step: int) -> NDArray[np.intp]:
        # Epochs differ in length, so those before the step have to be counted once.
        while step >= self._first_steps[-1]:
            length = self.epoch_length(len(self._first_steps) - 1)
            self._first_steps.append(self._first_steps[-1] + length)
        epoch = int(np.searchsorted(self._first_steps, step, side="right")) - 1
        return self._batches_of(epoch)[step - self._first_steps[epoch]]

    def _batches_of(self, epoch: int) -> list[NDArray[np.intp]]:
        if epoch != self._epoch:
            self._order = self._shuffled(epoch)
            self._epoch = epoch
        return self._order

    def _shuffled(self, epoch: int) -> list[NDArray[np.intp]]:
        random = np.random.default_rng([self._seed, epoch])
        t_enc = self._sources.lengths
        t_dec = self._targets.lengths + 1  # the end is read or answered too
        # Half a symbol of noise mixes neighbours, so no two epochs cut the same batches.
        order = np.lexsort((t_dec + random.uniform(-1.0, 1.0, len(t_dec)), t_enc))
        batches: list[NDArray[np.intp]] = []
        rest: list[NDArray[np.intp]] = []
        for rows in np.split(order, np.flatnonzero(np.diff(t_enc[order])) + 1):
            cut = self._cut(rows, t_enc, t_dec)
            # The last batch of a length is rarely full.
            batches.extend(cut[:-1])
            last = cut[-1]
            full = self._batch_tokens // int(t_enc[last[0]] + t_dec[last].max())
            (batches if len(last) >= full else rest).append(last)
        if rest:
            batches.extend(self._cut(np.concatenate(rest), t_enc, t_dec))
        return [batches[i] for i in random.permutation(len(batches))]

    def _cut(
        self, rows: NDArray[np.intp], t_enc: NDArray[np.int64], t_dec: NDArray[np.int64]
    ) -> list[NDArray[np.intp]]:
        """Cut sorted rows into runs whose padded size stays below the bound."""
        cuts, start, widest_enc, widest_dec = [], 0, 0, 0
        sizes = zip(t_enc[rows].tolist(), t_dec[rows].tolist(), strict=True)
        for i, (enc, dec) in enumerate(sizes):
            wide_enc, wide_dec = max(widest_enc, enc), max(widest_dec, dec)
            if i > start and (i + 1 - start) * (wide_enc + wide_dec) > self._batch_tokens:
                cuts.append(i)
                start, wide_enc, wide_dec = i, enc, dec
            widest_enc, widest_dec = wide_enc, wide_dec
        return np.split(rows, cuts)


def collate(examples: Sequence[tuple[Ids, Ids]]) -> Batch:
    """Make one batch of a few pairs of ids."""
    sources = _Flat([source for source, _ in examples])
    targets = _Flat([target for _, target in examples])
    return _collate(sources, targets, np.arange(len(examples)))


def collate_sources(sources: Sequence[Ids]) -> tuple[Tensor, Tensor | None]:
    """Pad sources of ids to ``(batch, T_enc)``; lengths are None where all are equal."""
    flat = _Flat(sources)
    return _padded_sources(flat, np.arange(len(sources)))


class _Flat:
    """Many sequences of ids end to end: no memory for padding, fast to gather from."""

    def __init__(self, sequences: Sequence[Ids]) -> None:
        self.lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)
        self._ids = np.fromiter((i for ids in sequences for i in ids), dtype=np.int64)

    def padded(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        lengths = self.lengths[rows]
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        places = np.where(inside, self._starts[rows][:, None] + columns, 0)
        return np.where(inside, self._ids[places], PAD)


def _collate(sources: _Flat, targets: _Flat, rows: NDArray[np.intp]) -> Batch:
    source, lengths = _padded_sources(sources, rows)
    target = targets.padded(rows)
    inputs = np.full((len(rows), target.shape[1] + 1), PAD, dtype=np.int64)
    answers = inputs.copy()
    inputs[:, 0] = BOS
    inputs[:, 1:] = target
    answers[:, :-1] = target
    answers[np.arange(len(rows)), targets.lengths[rows]] = EOS
    return Batch(source, lengths, torch.from_numpy(inputs), torch.from_numpy(answers))


def _padded_sources(sources: _Flat, rows: NDArray[np.intp]) -> tuple[Tensor, Tensor | None]:
    lengths = sources.lengths[rows]
    same = bool((lengths == lengths[0]).all())
    return torch.from_numpy(sources.padded(rows)), None if same else torch.from_numpy(lengths)
