"""A figure as it stands in a page."""

import json
from html import escape
from pathlib import Path
from typing import Any

from regard.alignment import inline
from regard.alignment.explorer.bundle import HERE
from regard.errors import InputError, explain
from regard.learn.figures.given import given

__all__ = ["FIGURES", "SCRIPTS", "figure", "style"]

_HERE = Path(__file__).parent
_MODULES = (
    "numbers.js",
    "parts.js",
    "chart.js",
    "heads.js",
    "length.js",
    "mask.js",
    "permutation.js",
    "shapes.js",
    "state.js",
    "temperature.js",
)
SCRIPTS = (HERE / "elements.js", *map(_HERE.joinpath, _MODULES))
"""The modules, each after those that it imports."""

FIGURES = {
    "state": (
        "Drag the decoder's state",
        "Drag s, or move to it with Tab and use the arrow keys. The lines are as thick as the "
        "weights.",
    ),
    "temperature": (
        "Temperature and scaling",
        "The more numbers two vectors have, the larger their products: without the division by "
        "√d one key takes all.",
    ),
    "mask": (
        "Build a mask",
        "Choose a mask, or press cells to forbid and permit pairs; arrow keys move between "
        "them.",
    ),
    "heads": (
        "Cut into heads",
        "The same numbers, cut into more heads of fewer numbers: each head has weights of its "
        "own. Press a word to see where it looks.",
    ),
    "shapes": (
        "The shape walk",
        "Type sizes, choose a mistake, and see which line stops and which runs on with a wrong "
        "shape.",
    ),
    "length": (
        "Accuracy against length",
        "Point at a mark, or move to it with Tab. A file that you open stays on your machine.",
    ),
    "permutation": (
        "The permutation game",
        "Move the weights as far as you can while the answer stays the same.",
    ),
}
"""Title and directions of each figure, by name."""


def figure(name: str, alternative: str = "", *, data: Any = None) -> str:
    """Return the HTML of a figure.

    Parameters
    ----------
    name : str
        One of :data:`FIGURES`.
    alternative : str
        HTML that stands in its place where no script runs.
    data : optional
        What it starts from, instead of its own numbers: anything that is JSON. For ``length``
        ``{"result": ...}`` with what `regard demo` wrote.

    Raises
    ------
    InputError
        There is no such figure.

    Notes
    -----
    A page has each figure once at most. It needs :func:`style`, and
    :func:`regard.learn.script.script` at its end.
    """
    if name not in FIGURES:
        raise InputError(
            explain(
                "figure(): `name` is no figure",
                expected="one of " + ", ".join(FIGURES),
                got=repr(name),
            )
        )
    title, directions = FIGURES[name]
    text = inline.data(json.dumps(given(name) if data is None else data, ensure_ascii=False))
    return (
        f'<figure class="interactive" data-figure="{name}" id="figure-{name}"'
        f' aria-labelledby="figure-{name}-title">\n'
        f'<figcaption><strong id="figure-{name}-title">{escape(title)}</strong> '
        f"{escape(directions)}</figcaption>\n"
        f'<div class="figure">{alternative}</div>\n'
        f'<script type="application/json">{text}</script>\n</figure>\n'
    )


def style() -> str:
    """Return the style sheet of figures; colours are the page's own variables."""
    return (_HERE / "figures.css").read_text(encoding="utf-8")
