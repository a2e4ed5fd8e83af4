"""The bottleneck experiment: copy a sequence, and see what length does to it.

A model without attention must squeeze the whole source into one vector; with attention it can
look at every position. Copying needs nothing else, so accuracy against length shows the
bottleneck itself. The source is drawn anew for every step, so nothing can be learnt by heart.

Sequences are of 16 symbols; a target ends with ``EOS``. Chance is 1/16 a position.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import InputError, explain
from regard.seq2seq.batch import Batch
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.search import greedy
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.vocab import BOS, EOS

__all__ = ["CHANCE", "SYMBOLS", "CopyBatches", "CopyScore", "copy_score", "draw", "settings"]

SYMBOLS = 16
"""How many different symbols there are."""

CHANCE = 1 / SYMBOLS
"""The share of positions that a guess gets right."""

_FIRST = 4  # ids below are reserved: padding, begin, end, unknown
_EVALUATION = 1 << 40  # keeps evaluation draws apart from every step's


@dataclass(frozen=True)
class CopyScore:
    """How well a model copies sequences of one length, running freely.

    Attributes
    ----------
    length : int
        Content symbols; the end is one more.
    token_accuracy : float
        Share of content positions that are right, 0 to 1; what stands after an early end, or
        does not stand there at all, is wrong.
    exact_match : float
        Share of sequences that are right from the first symbol to the end in its place.
    """

    length: int
    token_accuracy: float
    exact_match: float


class CopyBatches:
    """Batches of random sequences, one length a batch, no padding.

    Parameters
    ----------
    shortest, longest : int
        Lengths are uniform between them, both included.
    batch : int
        Sequences in a batch.
    ramp : int
        Over the first `ramp` steps the longest length grows linearly to `longest`: alignments
        form on short sequences first. 0 for none.
    seed : int
        With the step, decides a batch.

    Raises
    ------
    InputError
        A length below 1, `longest` below `shortest`, or an empty batch.
    """

    def __init__(
        self, shortest: int, longest: int, *, batch: int, ramp: int = 0, seed: int = 0
    ) -> None:
        for name, fits, expected, got in (
            ("shortest", shortest >= 1, "at least 1", shortest),
            ("longest", longest >= shortest, f"at least shortest = {shortest}", longest),
            ("batch", batch >= 1, "at least 1", batch),
            ("ramp", ramp >= 0, "at least 0", ramp),
        ):
            if not fits:
                raise InputError(
                    explain(
                        f"CopyBatches(): `{name}` is refused", expected=expected, got=str(got)
                    )
                )
        self._range = (shortest, longest)
        self._batch = batch
        self._ramp = ramp
        self._seed = seed

    def at(self, step: int) -> Batch:
        """Return the batch of one step, counted from 0; the same one whenever asked."""
        generator = _generator(self._seed, step)
        shortest, longest = self._range
        length = int(torch.randint(shortest, longest + 1, (), generator=generator))
        if step < self._ramp:
            # Cut, not drawn anew, so that early batches are mostly of the longest length yet.
            length = max(shortest, min(length, math.ceil(longest * (step + 1) / self._ramp)))
        content = draw(self._batch, length, generator)
        begin = content.new_full((self._batch, 1), BOS)
        end = content.new_full((self._batch, 1), EOS)
        return Batch(
            source=torch.cat([content, end], dim=1),
            source_lengths=None,
            inputs=torch.cat([begin, content], dim=1),
            targets=torch.cat([content, end], dim=1),
        )


def draw(count: int, length: int, generator: torch.Generator) -> Tensor:
    """Return random content ids ``(count, length)``."""
    return torch.randint(_FIRST, _FIRST + SYMBOLS, (count, length), generator=generator)


def copy_score(model: Seq2Seq, length: int, *, count: int = 1000, seed: int = 0) -> CopyScore:
    """Let a model copy fresh sequences of one length, greedily and on its own output.

    Parameters
    ----------
    model : Seq2Seq
        Trained on :class:`CopyBatches`.
    length : int
        Content symbols of each sequence.
    count : int
        Number of sequences; none of them was seen in training but by chance.
    seed : int
        Decides the sequences; those of a step of training are others.

    Returns
    -------
    score : CopyScore
    """
    content = draw(count, length, _generator(seed, _EVALUATION + length))
    source = torch.cat([content, content.new_full((count, 1), EOS)], dim=1)
    found = greedy(model, source, max_length=length, need_weights=False)
    answers = torch.zeros_like(content)
    for row, hypothesis in enumerate(found):
        answers[row, : len(hypothesis.ids)] = torch.tensor(hypothesis.ids, dtype=torch.long)
    right = answers == content
    ended = torch.tensor([h.finished and len(h.ids) == length for h in found])
    return CopyScore(
        length=length,
        token_accuracy=float(right.double().mean()),
        exact_match=float((right.all(dim=1) & ended).double().mean()),
    )


def settings(
    attention: str, *, steps: int = 1000, longest: int = 80, seed: int = 0
) -> tuple[ModelConfig, CopyBatches, TrainConfig]:
    """Return the recipe: the same width, data and steps for every kind of attention.

    Parameters
    ----------
    attention : {"none", "bahdanau", "dot", "general", "concat"}
    steps : int
        Length of the run.
    longest : int
        Longest sequence in training; the shortest has one symbol.
    seed : int
        Of the weights and of the data.

    Returns
    -------
    model, batches, training
        For :func:`regard.seq2seq.train.train`.

    Notes
    -----
    Found by trial: at a third of this learning rate additive attention does not align at length
    80 within this many steps; without the ramp long lengths are learnt late; a v_a of usual
    size delays the alignment; with smaller batches or a looser clip some seeds lose their place
    in one long sequence out of ten.
    """
    model = ModelConfig(
        source_symbols=_FIRST + SYMBOLS,
        target_symbols=_FIRST + SYMBOLS,
        attention=attention,
        d_in=32,
        d_hidden=64,
        d_s=128,
        d_attn=64,
        dropout=0.0,
        v_scale=4.0,
    )
    batches = CopyBatches(1, longest, batch=48, ramp=3 * steps // 10, seed=seed)
    training = TrainConfig(
        steps=steps,
        learning_rate=1e-2,
        optimizer="adam",
        betas=(0.9, 0.99),
        warm_up=min(50, steps),
        decay="cosine",
        final_share=0.02,
        clip=0.3,
        seed=seed,
    )
    return model, batches, training


def _generator(seed: int, step: int) -> torch.Generator:
    # One stream a step: any step's batch can be made without those before it.
    return torch.Generator().manual_seed((seed * 0x9E3779B97F4A7C15 + step) & ((1 << 63) - 1))
