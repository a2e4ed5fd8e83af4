"""One question, as it is asked."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["WHEN", "Made", "Question", "ask"]

WHEN = ("before", "check", "after")
"""Before a lesson: what do you think? In it: did that come across? After it: can you use it?"""


@dataclass(frozen=True)
class Made:
    """What a question says, before its answers are mixed.

    Attributes
    ----------
    text : str
        Plain text; code stands between backquotes.
    right : str
    wrong : sequence of str
        Other answers; those that read like the right one, or like one before, are left out.
    because : str
        Why the right one is right.
    """

    text: str
    right: str
    wrong: Sequence[str]
    because: str


@dataclass(frozen=True)
class Question:
    """A question with its answers in the order in which they are offered.

    Attributes
    ----------
    name : str
        The same for every question that one maker makes: what is learnt is the kind.
    lesson : str
        A lesson's name.
    when : str
        One of :data:`WHEN`.
    text, because : str
        As in :class:`Made`.
    options : tuple of str
        Two to four.
    right : int
        Which of them is right, from 0.
    """

    name: str
    lesson: str
    when: str
    text: str
    options: tuple[str, ...]
    right: int
    because: str


def ask(name: str, lesson: str, when: str, made: Made, draw: random.Random) -> Question:
    """Mix the answers of a question.

    Raises
    ------
    ValueError
        No wrong answer is left.
    """
    others = [each for each in dict.fromkeys(made.wrong) if each != made.right][:3]
    if not others:
        raise ValueError(f"{name}: a question needs a wrong answer")
    options = [made.right, *others]
    draw.shuffle(options)
    return Question(
        name, lesson, when, made.text, tuple(options), options.index(made.right), made.because
    )
