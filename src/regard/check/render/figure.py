"""Static SVG: the tensors on the way, and weights before and after a fix.

No figure needs its colours: an axis is known by its name, a wrong one by an outline and a
word, a weight by the table that goes with the figure. Ink is ``currentColor``, so that a
figure reads on a light and on a dark page.
"""

import math
from collections.abc import Sequence
from html import escape

from regard.check.finding import Finding, Report, Step
from regard.check.render.wording import axes, plain

__all__ = ["path_of", "tensors", "weights"]

Grid = Sequence[Sequence[float]]

_FONT = 'font-family="ui-monospace, monospace" font-size="12" fill="currentColor"'
_LETTER = 7.3  # width of a character at that size
_ROW = 30
_BOX = 22


def path_of(finding: Finding, report: Report) -> list[Step]:
    """Return the tensors up to the finding, in the order of their making, its own the last."""
    steps = list(finding.trace or report.tensors)
    own = finding.tensor
    steps = [s for s in steps if own is None or s.name != own.name or s.axes != own.axes]
    if own is not None:
        steps.append(Step(finding.location.line, own.name, own.axes))
    return steps


def tensors(finding: Finding, report: Report) -> str:
    """Return one row a tensor: its line, its name, a labelled box an axis; "" without any."""
    steps = path_of(finding, report)
    if not steps:
        return ""
    own = finding.tensor
    names = max(len(plain(step.name)) for step in steps)
    left = 64 + names * _LETTER + 14
    parts: list[str] = []
    width = left
    for row, step in enumerate(steps):
        y = row * _ROW + 4
        last = own is not None and row == len(steps) - 1
        parts.append(_text(4, y + 15, f"line {step.line}" if step.line > 0 else "input"))
        parts.append(_text(64, y + 15, step.name, bold=last))
        x = left
        expected = own.expected if own is not None and last else ()
        for at, axis in enumerate(step.axes):
            wrong = bool(expected) and (at >= len(expected) or expected[at] != axis)
            drawn, wide = _box(x, y, axis, wrong)
            parts.append(drawn)
            x += wide + 6
        if last:
            said = f"must be {axes(expected)}" if expected else "found here"
            parts.append(_text(x + 4, y + 15, said, bold=True))
            x += 4 + (len(said) + 1) * _LETTER
        width = max(width, x)
    return _svg(width + 4, len(steps) * _ROW + 4, "Tensors and their axes", parts)


def weights(grid: Grid, top: float, title: str) -> str:
    """Return a grid of cells: queries down, keys across, more ink for more weight.

    Parameters
    ----------
    grid : (T_dec, T_enc)
        Weights; what is no finite number is crossed out.
    top : float
        The weight of a full cell, so that two figures compare.
    title : str
        What a screen reader says.
    """
    across = max(len(row) for row in grid)
    cell = min(18, 400 // across)  # two grids fit side by side on a page
    parts = []
    for t, row in enumerate(grid):
        for i, value in enumerate(row):
            x, y = 26 + i * cell, 20 + t * cell
            finite = math.isfinite(value)
            ink = min(1.0, max(0.0, value / top)) if finite and top > 0 else 0.0
            parts.append(
                f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="currentColor" '
                f'fill-opacity="{ink:.3f}" stroke="currentColor" stroke-opacity="0.35">'
                f"<title>query {t}, key {i}: {value:.3f}</title></rect>"
            )
            if not finite:
                parts.append(_text(x + 5, y + 13, "x"))
    parts.append(_text(26, 13, "keys"))
    parts.append(
        f'<text x="-20" y="16" transform="rotate(-90)" text-anchor="end" {_FONT}>queries</text>'
    )
    high = max(20 + len(grid) * cell, 20 + 8 * _LETTER)
    return _svg(max(26 + across * cell, 70) + 2, high + 2, title, parts)


def _box(x: float, y: float, axis: str, wrong: bool) -> tuple[str, float]:
    label = f"{axis} wrong" if wrong else axis
    wide = len(plain(label)) * _LETTER + 12
    dash = 'stroke-width="2.5"' if wrong else 'stroke-width="1" stroke-opacity="0.6"'
    box = (
        f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{_BOX}" rx="3" fill="none" '
        f'stroke="currentColor" {dash}/>'
    )
    return box + _text(x + 6, y + 15, label, bold=wrong), wide


def _text(x: float, y: float, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y}" {_FONT}{weight}>{escape(plain(text))}</text>'


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
