"""One lesson as one HTML file that asks nothing of any network."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from pygments.formatters import HtmlFormatter

from regard.alignment.colors import LIGHT, NIGHT, variables
from regard.alignment.inline import policy
from regard.learn.catalog import Lesson
from regard.learn.code_colors import Light
from regard.learn.figures import figure
from regard.learn.html import Directive, to_html
from regard.learn.quiz import page as quiz
from regard.learn.quiz.page import with_questions

__all__ = ["lesson_page", "page"]

_HERE = Path(__file__).parent
_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="$policy">
<title>$title</title>
<style>
$style
</style>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<header><nav aria-label="Lessons">$navigation</nav></header>
<main id="content">
$body
</main>
<footer>$foot</footer>
$script</body>
</html>
"""


def page(body: str, *, title: str, navigation: str = "", foot: str = "", code: str = "") -> str:
    """Return a whole document around a fragment.

    Parameters
    ----------
    body, navigation, foot : str
        HTML.
    title : str
        Plain text.
    code : str
        A script; it alone may run. "" for none.

    Returns
    -------
    html : str
        Its own policy forbids every request.
    """
    return Template(_FRAME).substitute(
        policy=policy(code),
        title=escape(title),
        style=_style(),
        navigation=navigation,
        body=body,
        foot=foot,
        script=f"<script>{code}</script>\n" if code else "",
    )


def lesson_page(
    lesson: Lesson,
    others: Sequence[Lesson],
    *,
    pages: Mapping[str, str],
    directives: dict[str, Directive] | None = None,
    code: str = "",
) -> str:
    """Return a lesson's page.

    Parameters
    ----------
    lesson : Lesson
    others : sequence of Lesson
        All lessons in their order, this one among them.
    pages : mapping of str
        Markdown files that lessons link to, by name, and the names of their pages.
    directives, code
        As :func:`regard.learn.html.to_html` and :func:`page` take them.

    Raises
    ------
    ValueError
        The lesson links to a file that is not in `pages`.
    """

    def link(target: str) -> str:
        if re.match(r"https?:|#", target):
            return target
        name, mark, anchor = target.partition("#")
        if name not in pages:
            raise ValueError(f"{lesson.path.name} links to {name}, which has no page")
        return pages[name] + mark + anchor

    text = to_html(lesson.text, folder=lesson.path.parent, link=link, directives=directives)
    body = with_questions(text, lesson.name)
    place = others.index(lesson)
    before = others[place - 1] if place else None
    after = others[place + 1] if place + 1 < len(others) else None
    turns = [
        f'<a rel="{rel}" href="{each.stem}.html">{word} {_plain(each.title)}</a>'
        for each, rel, word in ((before, "prev", "Before:"), (after, "next", "Next:"))
        if each is not None
    ]
    return page(
        f'<p class="quiet">Lesson {lesson.number} of {len(others)}, about {lesson.minutes} '
        f"minutes</p>\n{body}",
        title=f"{_plain(lesson.title)} - regard",
        navigation='<a href="index.html">All lessons</a>',
        foot=f'<nav class="turn" aria-label="Other lessons">{"".join(turns)}</nav>',
        code=code,
    )


def _plain(title: str) -> str:
    return escape(re.sub(r"[`$\\{}]", "", title))


def _style() -> str:
    light, night = variables(LIGHT), variables(NIGHT)
    colored = HtmlFormatter(style=Light).get_style_defs(".code")
    colored_night = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return (
        f":root {{ color-scheme: light; {light} }}\n{_colors_only(colored)}\n"
        "@media screen and (prefers-color-scheme: dark) {\n"
        f":root {{ color-scheme: dark; {night} }}\n{_colors_only(colored_night)}\n}}\n"
        + "".join(
            (_HERE / name).read_text(encoding="utf-8") for name in ("style.css", "math.css")
        )
        + figure.style()
        + quiz.style()
    )


def _colors_only(rules: str) -> str:
    """Return the rules of coloured words, without those of whole blocks and line numbers."""
    kept = [line for line in rules.splitlines() if re.match(r"\.code \.\w+ \{", line)]
    return "\n".join(re.sub(r" /\*.*?\*/", "", line) for line in kept)
