"""How to search: one value for everything that can be chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from regard.errors import InputError, explain
from regard.seq2seq.search.again import look_again
from regard.seq2seq.search.beam import beam_search
from regard.seq2seq.search.constraint import Constraint
from regard.seq2seq.search.greedy import greedy
from regard.seq2seq.search.hypothesis import Hypothesis
from regard.seq2seq.search.ranking import Ranking
from regard.seq2seq.search.sample import sample
from regard.seq2seq.search.stepper import Stepper

__all__ = ["SearchSettings", "search"]

# Weights that a beam may keep on the way, 256 MiB of them; above, the answers' are computed
# once more at the end.
_KEPT_WEIGHTS = 1 << 26


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Parameters
    ----------
    beam : int
        Beginnings that are followed together; 1 is the greedy search.
    nbest : int
        Answers a source: at most `beam`, or any number of samples.
    ranking : Ranking
        Length and coverage penalties.
    temperature : float, optional
        Draw answers instead, with this temperature; `beam` is then 1.
    seed : int
        Of the drawing, from 0.
    min_length : int
        Symbols that a target must have, from 0.
    max_length : int, optional
        Symbols that a target may have; by default what the model's description says.

    Raises
    ------
    InputError
        A value is outside its range, or two contradict each other.
    """

    beam: int = 1
    nbest: int = 1
    ranking: Ranking = field(default_factory=Ranking)
    temperature: float | None = None
    seed: int = 0
    min_length: int = 0
    max_length: int | None = None

    def __post_init__(self) -> None:
        drawn = self.temperature is not None
        rows = (
            ("beam", self.beam >= 1, "at least 1", self.beam),
            ("beam", not drawn or self.beam == 1, "1, where a temperature is given", self.beam),
            ("nbest", self.nbest >= 1, "at least 1", self.nbest),
            (
                "nbest",
                drawn or self.nbest <= self.beam,
                f"at most beam = {self.beam}: a beam has no more answers",
                self.nbest,
            ),
            (
                "temperature",
                self.temperature is None or 0 < self.temperature < float("inf"),
                "a positive number",
                self.temperature,
            ),
            ("seed", self.seed >= 0, "at least 0", self.seed),
            ("min_length", self.min_length >= 0, "at least 0", self.min_length),
            (
                "max_length",
                self.max_length is None or self.max_length >= self.min_length,
                f"at least min_length = {self.min_length}",
                self.max_length,
            ),
        )
        for name, fits, expected, got in rows:
            if not fits:
                raise InputError(
                    explain(
                        f"SearchSettings(): `{name}` is refused",
                        expected=expected,
                        got=str(got),
                    )
                )


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
        One list a source, the best first; of samples, the one drawn first.
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
        return [list(each) for each in zip(*drawn, strict=True)]
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
