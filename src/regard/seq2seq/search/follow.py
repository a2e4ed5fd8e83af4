"""Searches that follow one sequence for each source: the likeliest symbol, or a drawn one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Integer
from numpy.typing import NDArray
from torch import Tensor

from regard.axes import checked
from regard.seq2seq.search.constraint import Constraint, forbid_reserved
from regard.seq2seq.search.hypothesis import Hypothesis
from regard.seq2seq.search.limits import limits_of
from regard.seq2seq.search.ranking import Ranking
from regard.seq2seq.search.record import Record
from regard.seq2seq.search.stepper import Stepper
from regard.seq2seq.vocab import BOS, EOS

__all__ = ["Chooser", "arrayed", "follow", "greedy", "quiet", "restrict"]

# Rows that have ended are dropped when they make up this share: dropping copies the others.
_DROP = 1 / 8

Chooser = Callable[[Tensor, Tensor, int], Tensor]
"""(log_probs (rows, symbols), rows' numbers in the batch, step) -> symbols (rows,)."""


@checked
def greedy(
    model: Stepper,
    source: Integer[Tensor, "batch T_enc"],
    source_lengths: Integer[Tensor, " batch"] | None = None,
    *,
    max_length: int | list[int],
    ranking: Ranking | None = None,
    constraint: Constraint | None = None,
    need_weights: bool = True,
) -> list[Hypothesis]:
    """Take the likeliest symbol at every step.

    Parameters
    ----------
    model : Stepper
        Left in the mode (training or not) that it came in; runs without dropout here.
    source : (batch, T_enc)
        Ids.
    source_lengths : (batch,), optional
        None: no source is padded.
    max_length : int or list of int
        Symbols that a target may have, the end not counted; one number for all, or one each.
        At least 0.
    ranking : Ranking, optional
        How to score what is found; changes nothing else.
    constraint : Constraint, optional
        What may be answered.
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

    Notes
    -----
    Rows that have ended leave the batch, so time is that of the symbols answered, not of the
    longest answer.
    """
    shortest = constraint.shortest if constraint is not None else 0
    limits = limits_of("greedy", max_length, source.shape[0], shortest)
    with quiet(model):
        return follow(
            model,
            source,
            source_lengths,
            limits,
            lambda log_probs, rows, step: log_probs.argmax(-1),
            ranking=ranking or Ranking(),
            constraint=constraint,
            need_weights=need_weights,
        )


@contextmanager
def quiet(model: Stepper) -> Iterator[None]:
    """Run a block without dropout and without gradients."""
    training = model.training
    if training:  # visiting all parts of a model takes as long as a step
        model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if training:
            model.train()


def arrayed(values: Tensor) -> NDArray[Any]:
    """Return numbers for what looks back at a search; of whatever precision, in single."""
    return (values.float() if values.is_floating_point() else values).cpu().numpy()


def restrict(
    log_probs: Tensor, constraint: Constraint, nodes: NDArray[np.int64] | None, step: int
) -> Tensor:
    """Set what a constraint forbids to minus infinity, in place.

    Parameters
    ----------
    log_probs : (rows, target_symbols)
    constraint, nodes, step
        As :meth:`~regard.seq2seq.search.constraint.Constraint.forbidden` takes them.
    """
    forbidden = constraint.forbidden(nodes, step, log_probs.shape[-1])
    if forbidden is None:
        return log_probs
    mask = torch.from_numpy(forbidden).to(log_probs.device)
    return log_probs.masked_fill_(mask, -torch.inf)


def follow(
    model: Stepper,
    source: Tensor,
    lengths: Tensor | None,
    limits: Sequence[int],
    choose: Chooser,
    *,
    ranking: Ranking,
    constraint: Constraint | None,
    need_weights: bool,
) -> list[Hypothesis]:
    """Follow one sequence for each source, each symbol chosen by ``choose``."""
    batch, t_enc = source.shape
    record = Record()
    if batch:
        _run(
            model,
            source,
            lengths,
            limits,
            choose,
            constraint=constraint,
            record=record,
            keep_weights=need_weights or bool(ranking.coverage),
        )
    widths = [t_enc] * batch if lengths is None else lengths.tolist()
    return list(record.hypotheses(limits, widths, ranking=ranking, need_weights=need_weights))


def _run(
    model: Stepper,
    source: Tensor,
    lengths: Tensor | None,
    limits: Sequence[int],
    choose: Chooser,
    *,
    constraint: Constraint | None,
    record: Record,
    keep_weights: bool,
) -> None:
    device = source.device
    rows = torch.arange(source.shape[0], device=device)
    last = torch.tensor(limits, device=device)
    previous = torch.full_like(rows, BOS)
    done = torch.zeros_like(rows, dtype=torch.bool)
    nodes = constraint.start(len(rows)) if constraint is not None else None
    memory, state = model.start(source, lengths)
    # One step more than the limit, in which a sequence may still end.
    for step in range(max(limits) + 1):
        scores, state, weights = model.step(previous, memory, state)
        log_probs = torch.log_softmax(forbid_reserved(scores), dim=-1)
        if constraint is not None:
            log_probs = restrict(log_probs, constraint, nodes, step)
        previous = choose(log_probs, rows, step)
        record.rows.append(arrayed(rows))
        record.symbols.append(arrayed(previous))
        record.log_probs.append(arrayed(log_probs.gather(1, previous.unsqueeze(1)).squeeze(1)))
        if keep_weights and weights is not None:
            record.weights.append(arrayed(weights))
        done = done | (previous == EOS) | (last <= step)
        ended = int(done.sum())
        if ended == len(rows):
            return
        if constraint is not None:
            nodes = constraint.advance(nodes, arrayed(previous))
        if ended > _DROP * len(rows):
            kept = (~done).nonzero().squeeze(1)
            memory, state = model.take(memory, state, kept)
            rows, previous, last, done = rows[kept], previous[kept], last[kept], done[kept]
            nodes = None if nodes is None else nodes[arrayed(kept)]
