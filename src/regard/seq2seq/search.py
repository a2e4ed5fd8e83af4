"""Search: from a model and sources to target sequences."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Integer
from numpy.typing import NDArray
from torch import Tensor

from regard.axes import checked
from regard.errors import InputError, explain
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.vocab import BOS, EOS, PAD, UNK

__all__ = ["Hypothesis", "greedy"]


@dataclass(frozen=True)
class Hypothesis:
    """One target sequence that a search found.

    Attributes
    ----------
    ids : tuple of int
        Without begin and end.
    log_probs : tuple of float
        Natural logarithm of each symbol's probability, at most 0. If finished, one more than
        ids: the last one is that of the end.
    finished : bool
        False if the limit came before the end.
    weights : (T_dec, T_enc) or None
        Attention weights, one row for each of ``ids``, one column for each source symbol,
        padding cut off; None without attention.
    """

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finished: bool
    weights: NDArray[np.float32] | None

    @property
    def log_prob(self) -> float:
        """Natural logarithm of the whole sequence's probability."""
        return sum(self.log_probs)


@checked
def greedy(
    model: Seq2Seq,
    source: Integer[Tensor, "batch T_enc"],
    source_lengths: Integer[Tensor, " batch"] | None = None,
    *,
    max_length: int | list[int],
    need_weights: bool = True,
) -> list[Hypothesis]:
    """Take the likeliest symbol at every step.

    Parameters
    ----------
    model : Seq2Seq
        Left in the mode (training or not) that it came in; runs without dropout here.
    source : (batch, T_enc)
        Ids.
    source_lengths : (batch,), optional
        None: no source is padded.
    max_length : int or list of int
        Symbols that a target may have, the end not counted; one number for all, or one each.
        At least 0.
    need_weights : bool
        Keep the attention weights; costs memory, changes nothing else.

    Returns
    -------
    hypotheses : list of Hypothesis
        In the order of the batch. Padding, begin and unknown are never answered.

    Raises
    ------
    InputError
        ``max_length`` is negative or has another length than the batch.
    """
    limits = _limits(max_length, source.shape[0])
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            ids, log_probs, weights = _run(model, source, source_lengths, limits, need_weights)
    finally:
        model.train(training)
    t_enc = (
        [source.shape[1]] * len(limits) if source_lengths is None else source_lengths.tolist()
    )
    return [
        _trimmed(
            ids[i], log_probs[i], None if weights is None else weights[i, :, : t_enc[i]], n
        )
        for i, n in enumerate(limits)
    ]


def _limits(max_length: int | list[int], batch: int) -> list[int]:
    limits = [max_length] * batch if isinstance(max_length, int) else list(max_length)
    if len(limits) != batch or any(limit < 0 for limit in limits):
        raise InputError(
            explain(
                "greedy(): `max_length` is refused",
                expected=f"a number from 0, or {batch} of them",
                got=repr(max_length)[:80],
            )
        )
    return limits


def _run(
    model: Seq2Seq,
    source: Tensor,
    lengths: Tensor | None,
    limits: list[int],
    need_weights: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32] | None]:
    memory, state = model.start(source, lengths)
    previous = torch.full((source.shape[0],), BOS, device=source.device)
    last = torch.tensor(limits, device=source.device)
    done = torch.zeros_like(previous, dtype=torch.bool)
    never = torch.tensor([PAD, BOS, UNK], device=source.device)
    ids, log_probs, weights = [], [], []
    # One step more than the limit, in which a sequence may still end.
    for step in range(max(limits, default=-1) + 1):
        scores, state, looked = model.step(previous, memory, state)
        scores = scores.index_fill(-1, never, -torch.inf)
        best, previous = torch.log_softmax(scores, dim=-1).max(dim=-1)
        ids.append(previous)
        log_probs.append(best)
        if need_weights and looked is not None:
            weights.append(looked)
        done = done | (previous == EOS) | (last <= step)
        if bool(done.all()):
            break
    if not ids:
        empty = np.zeros((source.shape[0], 0))
        return empty.astype(np.int64), empty.astype(np.float32), None
    return (
        torch.stack(ids, dim=1).cpu().numpy(),
        torch.stack(log_probs, dim=1).float().cpu().numpy(),
        torch.stack(weights, dim=1).float().cpu().numpy() if weights else None,
    )


def _trimmed(
    ids: NDArray[np.int64],
    log_probs: NDArray[np.float32],
    weights: NDArray[np.float32] | None,
    limit: int,
) -> Hypothesis:
    ends = np.flatnonzero(ids[: limit + 1] == EOS)
    finished = len(ends) > 0
    length = int(ends[0]) if finished else limit
    return Hypothesis(
        ids=tuple(ids[:length].tolist()),
        log_probs=tuple(log_probs[: length + finished].tolist()),
        finished=finished,
        # A copy: a view would keep the whole batch's weights alive.
        weights=None if weights is None else weights[:length].copy(),
    )
