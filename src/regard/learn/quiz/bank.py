"""All questions, by lesson and by when they are asked."""

import random
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from regard.errors import InputError, explain
from regard.learn.quiz import numbers, shapes
from regard.learn.quiz.question import WHEN, Made, Question, ask

__all__ = ["endless", "fixed", "names", "question", "questions"]

_MAKERS = {**shapes.MAKERS, **numbers.MAKERS}


@cache
def fixed() -> dict[str, dict[str, Any]]:
    """Return the questions of ``questions.toml``, by name."""
    path = files("regard.learn.quiz") / "questions.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def names(lesson: str | None = None, when: str | None = None) -> list[str]:
    """Return the names of questions, in the order of :data:`WHEN`.

    Parameters
    ----------
    lesson : str, optional
        A lesson's name; None for all.
    when : {"before", "check", "after"}, optional
        None for all.
    """
    return [
        name
        for moment in WHEN
        if when in (None, moment)
        for name, home, asked in _homes()
        if asked == moment and lesson in (None, home)
    ]


def endless(name: str) -> bool:
    """Return whether the question is made anew each time it is asked."""
    return name in _MAKERS


def question(name: str, seed: int) -> Question:
    """Make a question.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    seed : int
        The same seed makes the same question.

    Raises
    ------
    InputError
        There is no such question.
    """
    draw = random.Random(f"{name} {seed}")
    if name in _MAKERS:
        lesson, when, make = _MAKERS[name]
        return ask(name, lesson, when, make(draw), draw)
    if name not in fixed():
        raise InputError(
            explain(
                f"quiz: there is no question {name!r}",
                expected="a name that `regard learn quiz --list` prints",
                got=repr(name),
            )
        )
    said = fixed()[name]
    right, *wrong = said["options"]
    made = Made(said["text"], right, wrong, said["because"])
    return ask(name, said["lesson"], said["when"], made, draw)


def questions(
    lesson: str | None = None, when: str | None = None, *, seed: int = 0
) -> list[Question]:
    """Make the questions of a lesson, or of all."""
    return [question(name, seed) for name in names(lesson, when)]


def _homes() -> Iterator[tuple[str, str, str]]:
    for name, said in fixed().items():
        yield name, said["lesson"], said["when"]
    for name, (lesson, when, _) in _MAKERS.items():
        yield name, lesson, when
