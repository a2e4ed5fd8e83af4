"""One candidate for the axes of an argument, and the words that all candidates share."""

from dataclasses import dataclass

__all__ = ["CONTENT", "TIMES", "Axes"]

TIMES = {
    **{"query": "T_dec", "key": "T_enc", "value": "T_enc", "self": "T", "step": "T_dec"},
    **{"second": "n_features", "past": "T_mem", "ids": "T", "scores": "T", "other": "T"},
    **{"weights": "T_enc"},
}
"""Time axis of an argument by its role."""

CONTENT = ("query", "key", "value", "self", "step", "second", "past", "other")
"""Roles of arguments that carry content."""


@dataclass(frozen=True)
class Axes:
    """One candidate: axis words, how unlikely, and who says so ("" is a mere guess)."""

    tokens: tuple[str, ...]
    cost: float
    said: str = ""

    @property
    def order(self) -> str:
        """Which of batch and time comes first, "" where there is no such pair."""
        if self.tokens == ("T", "batch"):
            return "time first"
        if "batch" not in self.tokens or len(self.tokens) < 3:
            return ""
        return "batch first" if self.tokens[0] == "batch" else "time first"
