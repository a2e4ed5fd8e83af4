"""What diagrams are made of: boxes, arrows, cells and words, in the colours of the page."""

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Literal

from regard.alignment.colors import LIGHT, NIGHT

__all__ = ["Drawing", "Point"]

Point = tuple[float, float]
"""x to the right and y down, in pixels."""

Anchor = Literal["start", "middle", "end"]

_NAMES = {
    **{name: name for name in ("ink", "quiet", "frame", "grid", "band", "paper")},
    "blue": "accent",
    "orange": "mark",
}
_COLORS = {name: (LIGHT[page], NIGHT[page]) for name, page in _NAMES.items()}
_HEAD = 7.0
_SUBSCRIPT = re.compile(r"_\{([^}]*)\}|_(\w)(?!\w)|\^\{([^}]*)\}|\^(\w)")


class Drawing:
    """One picture under construction.

    Parameters
    ----------
    width, height : float
        In pixels at its natural size.
    title : str
        The picture's name, for who does not see it.
    told : str
        What it shows, in sentences.
    """

    def __init__(self, width: float, height: float, *, title: str, told: str) -> None:
        self._size = (width, height)
        self._said = (title, told)
        self._parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: str | Sequence[str] = "",
        *,
        color: str = "frame",
        filled: bool = True,
    ) -> None:
        """Draw a rectangle with words in its middle, a line each."""
        fill = "d-fill-band" if filled else "d-none"
        self._parts.append(
            f'<rect class="{fill} d-{color}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}"'
            f' height="{_n(height)}" rx="6"/>'
        )
        lines = [words] if isinstance(words, str) else list(words)
        top = y + height / 2 - 17 * (len(lines) - 1) / 2 + 5
        for place, line in enumerate(lines):
            self.words(x + width / 2, top + 17 * place, line, anchor="middle")

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: Anchor = "start",
        color: str = "ink",
        size: float = 14,
        bold: bool = False,
    ) -> None:
        """Write a line; ``s_{t-1}`` and ``W^q`` are lowered and raised."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text class="d-text-{color}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"'
            f' font-size="{_n(size)}"{weight}>{_scripts(text, size)}</text>'
        )

    def line(self, *points: Point, color: str = "frame", dashed: bool = False) -> None:
        """Draw a line through the points."""
        path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        self._parts.append(f'<path class="d-none d-{color}" d="{path}"{dash}/>')

    def arrow(self, *points: Point, color: str = "ink", width: float = 1.4) -> None:
        """Draw a line through the points with a head at the last."""
        (x1, y1), (x2, y2) = points[-2:]
        length = math.hypot(x2 - x1, y2 - y1)
        along = ((x2 - x1) / length, (y2 - y1) / length)
        back = (x2 - _HEAD * along[0], y2 - _HEAD * along[1])
        aside = (-along[1] * _HEAD / 2, along[0] * _HEAD / 2)
        line = [*points[:-1], back]
        path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in line)
        head = " ".join(
            f"{_n(x)},{_n(y)}"
            for x, y in (
                (x2, y2),
                (back[0] + aside[0], back[1] + aside[1]),
                (back[0] - aside[0], back[1] - aside[1]),
            )
        )
        self._parts.append(
            f'<path class="d-none d-{color}" style="stroke-width:{_n(width)}" d="{path}"/>'
            f'<polygon class="d-fill-{color}" points="{head}"/>'
        )

    def cells(
        self, x: float, y: float, filled: Sequence[Sequence[bool]], *, side: float = 22
    ) -> None:
        """Draw a grid: True is a full cell, False an empty one."""
        for row, marks in enumerate(filled):
            for column, mark in enumerate(marks):
                kind = "d-fill-blue" if mark else "d-fill-paper"
                self._parts.append(
                    f'<rect class="{kind} d-frame" x="{_n(x + side * column)}"'
                    f' y="{_n(y + side * row)}" width="{_n(side)}" height="{_n(side)}"/>'
                )

    def dot(self, x: float, y: float, color: str = "blue") -> None:
        """Draw a point of a curve."""
        self._parts.append(
            f'<circle class="d-fill-{color}" cx="{_n(x)}" cy="{_n(y)}" r="3.5"/>'
        )

    def svg(self) -> str:
        """Return the picture; it refers to nothing outside itself."""
        width, height = self._size
        title, told = self._said
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img"'
                f' viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}"'
                f' height="{_n(height)}" font-family="system-ui, sans-serif">',
                f"<title>{escape(title)}</title>",
                f"<desc>{escape(told)}</desc>",
                f"<style>{_style()}</style>",
                *self._parts,
                "</svg>\n",
            ]
        )


def _style() -> str:
    """Return rules that reach no further than diagrams, on whatever page they stand."""
    light = "".join(f"--d-{name}:{colors[0]};" for name, colors in _COLORS.items())
    dark = "".join(f"--d-{name}:{colors[1]};" for name, colors in _COLORS.items())
    rules = [
        f".diagram{{{light}}}",
        f"@media screen and (prefers-color-scheme:dark){{.diagram{{{dark}}}}}",
        # A page with a switch says which it shows.
        f"[data-theme=light] .diagram{{{light}}}",
        f"@media screen{{[data-theme=dark] .diagram{{{dark}}}}}",
        ".diagram .d-none{fill:none;stroke-width:1.4}",
    ]
    for name in _COLORS:
        rules += [
            f".diagram .d-{name}{{stroke:var(--d-{name})}}",
            f".diagram .d-fill-{name}{{fill:var(--d-{name})}}",
            f".diagram .d-text-{name}{{fill:var(--d-{name})}}",
        ]
    return "".join(rules)


def _scripts(text: str, size: float) -> str:
    """Return the text with its lower and upper scripts as spans."""
    made, at = "", 0
    for match in _SUBSCRIPT.finditer(text):
        lower, upper = match[1] or match[2], match[3] or match[4]
        shift = 0.28 * size if lower else -0.4 * size
        made += escape(text[at : match.start()])
        made += f'<tspan dy="{_n(shift)}" font-size="{_n(0.75 * size)}">'
        made += f"{escape(lower or upper)}</tspan>"
        # A span without letters would not move the pen back.
        made += f'<tspan dy="{_n(-shift)}">\u200b</tspan>'
        at = match.end()
    return made + escape(text[at:])


def _n(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".")
