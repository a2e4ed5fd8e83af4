"""What can be chosen about a search: one value for all of it."""

from dataclasses import dataclass, field

from regard.errors import InputError, explain
from regard.seq2seq.search.ranking import Ranking

__all__ = ["SearchSettings"]


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
