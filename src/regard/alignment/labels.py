"""Tokens as labels of pictures: visible, short, and how much room they take."""

import unicodedata

__all__ = ["LONGEST", "label", "label_width"]

LONGEST = 16
"""Characters of a label; longer tokens end in an ellipsis."""


def label(token: str) -> str:
    """Return a token as it can be shown: spaces made visible, control characters out.

    >>> label("a b"), label("")
    ('a␣b', '∅')
    """
    shown = "".join(
        "␣" if character == " " else character if character.isprintable() else "\ufffd"
        for character in token
    )
    return (shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…") or "∅"


def label_width(text: str, font_size: float) -> float:
    """Return about how wide a label is, in the unit of the font size, rather more than less."""
    return font_size * sum(map(_em, text))


def _em(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF" or character in "mwMW@%\u2026\u2014":
        return 1.05
    return 0.8 if character.isupper() else 0.66
