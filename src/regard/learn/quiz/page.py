"""Questions as they stand in a page: to be read without scripts, to be answered with them."""

import json
import re
from html import escape
from pathlib import Path

from regard.alignment import inline
from regard.learn.quiz.bank import endless, names, question
from regard.learn.quiz.question import WHEN, Question

__all__ = ["SCRIPT", "section", "style", "with_questions"]

_HERE = Path(__file__).parent
SCRIPT = _HERE / "quiz.js"
"""The module that asks; it needs the figures' ``parts.js``."""
_TITLES = {
    "before": "Before you read: what do you think?",
    "check": "Did that come across?",
    "after": "Now that you have read it",
}
_VARIANTS = 8  # of a question that is made anew; the terminal has no end of them


def section(lesson: str, when: str, alternative: str = "") -> str:
    """Return the HTML of a lesson's questions.

    Parameters
    ----------
    lesson : str
        A lesson's name.
    when : {"before", "check", "after"}
    alternative : str
        HTML above the questions.

    Returns
    -------
    html : str
        "" if there are none.

    Raises
    ------
    ValueError
        ``when`` is none of the three.
    """
    if when not in WHEN:
        raise ValueError(f"section(): when is one of {WHEN}, not {when!r}")
    made = {
        name: [question(name, seed) for seed in range(_VARIANTS if endless(name) else 1)]
        for name in names(lesson, when)
    }
    if not made:
        return ""
    forms = [
        {
            "id": name,
            "variants": [
                {
                    "text": each.text,
                    "options": each.options,
                    "right": each.right,
                    "because": each.because,
                }
                for each in variants
            ],
        }
        for name, variants in made.items()
    ]
    text = inline.data(json.dumps(forms, ensure_ascii=False))
    read = "".join(_read(variants[0]) for variants in made.values())
    title = f"quiz-{lesson}-{when}"
    return (
        f'<section class="quiz" data-when="{when}" aria-labelledby="{title}">\n'
        f'<h2 id="{title}">{_TITLES[when]}</h2>\n{alternative}'
        f'<div class="questions">\n<ol>{read}</ol>\n</div>\n'
        f'<script type="application/json">{text}</script>\n</section>\n'
    )


def with_questions(html: str, lesson: str) -> str:
    """Set a lesson's questions into its HTML.

    They come under the title, before the last part, and at the end.

    Parameters
    ----------
    html : str
        With one ``h1``.
    lesson : str
        A lesson's name.
    """
    title, mark, text = html.partition("</h1>")
    before, check, after = (section(lesson, when) for when in WHEN)
    at = text.rfind("<h2")
    at = len(text) if at < 0 else at
    return f"{title}{mark}\n{before}{text[:at]}{check}{text[at:]}{after}"


def style() -> str:
    """Return the style sheet of questions; colours are the page's own variables."""
    return (_HERE / "quiz.css").read_text(encoding="utf-8")


def _read(one: Question) -> str:
    options = "".join(f"<li>{_code(option)}</li>" for option in one.options)
    answer = f"{_code(one.options[one.right])}. {_code(one.because)}"
    return (
        f"<li><p>{_code(one.text)}</p><ul>{options}</ul>"
        f"<details><summary>The answer</summary><p>{answer}</p></details></li>"
    )


def _code(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
