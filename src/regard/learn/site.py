"""All lessons as a folder of pages that opens from disk."""

import re
from collections.abc import Iterator
from html import escape

from regard.check.skill import files as skill_files
from regard.learn.catalog import FOLDER, Lesson, lessons
from regard.learn.figures.figure import figure
from regard.learn.html import to_html
from regard.learn.page import lesson_page, page
from regard.learn.script import script

__all__ = ["INDEX", "names", "pages", "rendered"]

INDEX = "index.html"
"""The page that lists the lessons."""

_SKILL = "skill.html"
_FRONT = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)


def names() -> list[str]:
    """Return the names of the pages, the list of lessons first."""
    return [INDEX, *(f"{lesson.stem}.html" for lesson in lessons()), _SKILL]


def pages() -> Iterator[tuple[str, str]]:
    """Yield every page: its name and its HTML."""
    for name in names():
        yield name, rendered(name)


def rendered(name: str) -> str:
    """Return the HTML of one page.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Raises
    ------
    KeyError
        There is no such page.
    """
    if name == INDEX:
        return _index(lessons())
    if name == _SKILL:
        return _skill()
    found = {f"{lesson.stem}.html": lesson for lesson in lessons()}[name]
    linked = {f"{lesson.stem}.md": f"{lesson.stem}.html" for lesson in lessons()}
    return lesson_page(
        found,
        lessons(),
        pages={**linked, "skill.md": _SKILL},
        directives={"interactive": figure},
        code=script(),
    )


def _index(all_lessons: tuple[Lesson, ...]) -> str:
    rows = "".join(
        f'<li><a href="{lesson.stem}.html">{_inline(lesson.title)}</a>'
        f"<p>{_inline(lesson.summary)} About {lesson.minutes} minutes.</p></li>\n"
        for lesson in all_lessons
    )
    body = (
        "<h1>Attention, from the bottleneck to the transformer</h1>\n"
        "<p>Every block of code in these lessons was run, every number below one is what it "
        "printed, and every picture was drawn by it. <code>regard learn run NAME</code> runs a "
        f'lesson on your machine.</p>\n<ol class="lessons">\n{rows}</ol>'
    )
    return page(body, title="Lessons - regard")


def _skill() -> str:
    text = _FRONT.sub("", skill_files()["SKILL.md"])
    # Its references lie beside it in the folder that the command writes.
    body = to_html(
        re.sub(r"\[([^]]*)\]\(references/[^)]*\)", r"`\1`", text),
        folder=FOLDER,
    )
    told = "<p>This is the text that <code>regard skill</code> gives a coding assistant.</p>"
    return page(
        told + body,
        title="The attention-shapes skill - regard",
        navigation=f'<a href="{INDEX}">All lessons</a>',
    )


def _inline(text: str) -> str:
    made = to_html(text, folder=FOLDER).strip()
    return made.removeprefix("<p>").removesuffix("</p>") or escape(text)
