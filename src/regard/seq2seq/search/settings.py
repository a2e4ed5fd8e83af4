"""Searching as the settings say."""

from collections.abc import Sequence

from torch import Tensor

from regard.seq2seq.search.again import look_again
from regard.seq2seq.search.beam import beam_search
from regard.seq2seq.search.choices import SearchSettings
from regard.seq2seq.search.constraint import Constraint
from regard.seq2seq.search.draw import sample
from regard.seq2seq.search.follow import greedy
from regard.seq2seq.search.hypothesis import Hypothesis, best_first
from regard.seq2seq.search.stepper import Stepper

__all__ = ["search"]

# Weights that a beam may keep on the way, 256 MiB of them; above, the answers' are computed
# once more at the end.
_KEPT_WEIGHTS = 1 << 26


def search(
    model: Stepper,
    source: Tensor,
    source_lengths: Tensor | None,
    settings: SearchSettings,
    *,
    max_length: list[int],
    numbers: Sequence[int],
    constraint: Constraint | None,
    need_weights: bool,
) -> list[list[Hypothesis]]:
    """Search as the settings say.

    Parameters
    ----------
    model, source, source_lengths, max_length, constraint, need_weights
        As :func:`~regard.seq2seq.search.beam.beam_search` takes them; the settings' own limits
        are the caller's to put in.
    settings : SearchSettings
    numbers : sequence of int
        One for each source, by which drawing tells them apart.

    Returns
    -------
    found : list of lists of Hypothesis
        One list a source, the best first, of samples too.
    """
    ranking = settings.ranking
    if settings.temperature is not None:
        drawn = [
            sample(
                model,
                source,
                source_lengths,
                max_length=max_length,
                temperature=settings.temperature,
                seed=settings.seed,
                numbers=[number * settings.nbest + i for number in numbers],
                ranking=ranking,
                constraint=constraint,
                need_weights=need_weights,
            )
            for i in range(settings.nbest)
        ]
        return [best_first(each) for each in zip(*drawn, strict=True)]
    if settings.beam == 1:
        # A beam of one finds the same; this does less for it.
        found = greedy(
            model,
            source,
            source_lengths,
            max_length=max_length,
            ranking=ranking,
            constraint=constraint,
            need_weights=need_weights,
        )
        return [[hypothesis] for hypothesis in found]
    kept = settings.beam * max(max_length, default=0) * source.numel()
    later = need_weights and kept > _KEPT_WEIGHTS
    best = beam_search(
        model,
        source,
        source_lengths,
        max_length=max_length,
        beam=settings.beam,
        nbest=settings.nbest,
        ranking=ranking,
        constraint=constraint,
        need_weights=need_weights and not later,
    )
    return look_again(model, source, source_lengths, best) if later else best
