"""The lessons that the package has, in their order."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from regard.errors import InputError, explain

__all__ = ["FOLDER", "Lesson", "find", "lessons", "parse"]

FOLDER = Path(__file__).parent / "lessons"
"""Where the lessons lie."""

_NAME = re.compile(r"(\d\d)-([a-z0-9-]+)\.md")
_FRONT = re.compile(r"\A---\n(.*?)\n---\n+", re.DOTALL)


@dataclass(frozen=True)
class Lesson:
    """One lesson.

    Attributes
    ----------
    number : int
        Its place, from 1.
    name : str
        Short, as ``regard learn read NAME`` takes it.
    title : str
        Its first heading; may hold code marks and equations.
    summary : str
        One sentence: what a reader can do afterwards.
    minutes : int
        About how long it takes to read and to run.
    text : str
        Markdown without the front matter.
    path : Path
        The file.
    """

    number: int
    name: str
    title: str
    summary: str
    minutes: int
    text: str
    path: Path

    @property
    def stem(self) -> str:
        """Return the name of its pages, without a suffix: ``04-step-order``."""
        return self.path.stem


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return all lessons in their order."""
    paths = sorted(path for path in FOLDER.glob("*.md") if _NAME.fullmatch(path.name))
    return tuple(parse(path) for path in paths)


def find(name: str) -> Lesson:
    """Return the lesson of a name, a number, or an unmistakable beginning of a name.

    Raises
    ------
    InputError
        No lesson, or several, fit.
    """
    given = name.strip().lower()
    exact = [
        each
        for each in lessons()
        if given in {each.name, each.stem, str(each.number), f"{each.number:02}"}
    ]
    found = exact or [each for each in lessons() if given and each.name.startswith(given)]
    if len(found) == 1:
        return found[0]
    raise InputError(
        explain(
            f"learn: `{name}` names {'several lessons' if found else 'no lesson'}",
            expected="a number or one of " + ", ".join(each.name for each in lessons()),
            got=", ".join(each.name for each in found) or repr(name),
            help="regard learn lists them",
        )
    )


def parse(path: Path) -> Lesson:
    """Return the lesson of a file.

    Raises
    ------
    ValueError
        Its name, front matter or heading is not as a lesson's must be.
    """
    named = _NAME.fullmatch(path.name)
    text = path.read_text(encoding="utf-8")
    front = _FRONT.match(text)
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    if named is None or front is None or heading is None:
        raise ValueError(f"{path.name}: a lesson is NN-name.md with front matter and a heading")
    said = dict(line.split(": ", 1) for line in front[1].splitlines())
    return Lesson(
        number=int(named[1]),
        name=named[2],
        title=heading[1],
        summary=said["summary"],
        minutes=int(said["minutes"]),
        text=text[front.end() :],
        path=path,
    )
