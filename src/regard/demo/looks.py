"""How each model looks in a picture: colour, marker and line style, three signs at once.

The colours follow Okabe and Ito's set for colour-blind readers, darkened where they would be
faint as text on white. Markers and line styles alone tell the models apart in grey.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["LOOKS", "SPARE", "Look", "looks"]


class Look(NamedTuple):
    """A model's colour on white and on a dark page, its marker and its line style."""

    color: str
    dark: str
    marker: str
    dash: Any  # as matplotlib's `linestyle`


LOOKS = {
    "none": Look("#4d5663", "#b4bdc9", "X", (0, (5, 1.5))),
    "bahdanau": Look("#0072b2", "#58b0ee", "o", "solid"),
    "dot": Look("#c04f00", "#f2935a", "s", (0, (7, 1.2, 1.2, 1.2))),
    "general": Look("#00805f", "#42c29a", "^", (0, (2.5, 1))),
}
SPARE = (
    Look("#a8527f", "#de90b8", "D", (0, (9, 2))),
    Look("#7f6500", "#d2b441", "v", (0, (1, 0.8))),
    Look("#5a4fcf", "#a59dff", "P", (0, (4, 1, 1, 1, 1, 1))),
)


def looks(models: Sequence[str]) -> dict[str, Look]:
    """Return a look for each model; those without one of their own share the spare ones."""
    strange = [model for model in models if model not in LOOKS]
    lent = {model: SPARE[place % len(SPARE)] for place, model in enumerate(strange)}
    return {model: LOOKS.get(model) or lent[model] for model in models}
