"""The settings of an aligner, and what each is for."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from regard.errors import InputError, explain

__all__ = ["AlignerSettings"]


@dataclass(frozen=True)
class AlignerSettings:
    """How an aligner is trained; the defaults were chosen on 37 sentence pairs with gold links.

    Parameters
    ----------
    epochs : int
        Passes over the corpus, 2 to 1000. In the first third every word chooses for itself,
        then the choices form a chain.
    time_budget : float
        Seconds instead of passes; 0 counts passes.
    seed : int
        Of the order in which batches are seen.
    sparsity : float
        Prior counts of each word pair; less means fewer translations a word.
    spelling : float
        Prior counts of two words that are spelled the same; 0 where spelling means nothing.
    empty : float
        Share of the words that are taken to have no partner, above 0 and below 1.
    agree : bool
        Whether each direction learns from what both believe.

    Raises
    ------
    InputError
        A value is outside its range.
    """

    epochs: int = 15
    time_budget: float = 0.0
    seed: int = 0
    sparsity: float = 1e-4
    spelling: float = 1.0
    empty: float = 0.1
    agree: bool = True

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("epochs", 2 <= self.epochs <= 1000, "2 to 1000"),
            ("time_budget", 0 <= self.time_budget < float("inf"), "0 or more seconds"),
            ("sparsity", 0 < self.sparsity <= 10, "above 0 and at most 10"),
            ("spelling", 0 <= self.spelling <= 1000, "0 to 1000"),
            ("empty", 0 < self.empty < 1, "above 0 and below 1"),
        ):
            if not fits:
                raise InputError(
                    explain(
                        f"AlignerSettings(): `{name}` is refused",
                        expected=expected,
                        got=repr(getattr(self, name)),
                    )
                )

    def to_json(self) -> dict[str, Any]:
        """Return the values by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` returned.

        Raises
        ------
        TypeError, InputError
            It is something else.
        """
        return cls(**form)
