"""A heat map as SVG text, written cell by cell so that each tells its weight when pointed at.

It needs no matplotlib. Text stays text: the viewer's own fonts show every script, right to left
where it runs so.
"""

import math
from html import escape

import numpy as np
from numpy.typing import NDArray

from regard.alignment.colors import FRAME, INK, PAPER, QUIET, RULE
from regard.alignment.labels import label, label_width
from regard.alignment.matrix import Alignment

__all__ = ["svg_map"]

_STOPS = ((255, 255, 255), (210, 227, 243), (127, 184, 218), (40, 120, 184), (8, 48, 107))
_FONT = 12
_MOST = 12_000  # cells in a picture; above, a viewer becomes slow
_LEAST = 1 / 510  # lighter cells have the colour of the paper


def svg_map(alignment: Alignment, *, title: str | None = None, width: int = 640) -> str:
    """Return a picture of the weights, the target down and the source across.

    Parameters
    ----------
    alignment : Alignment
        Weights (T_dec, T_enc).
    title : str, optional
        Stands above it; plain text.
    width : int
        About how wide and high the grid becomes, in pixels; cells have 4 to 30 of them.

    Returns
    -------
    svg : str
        A whole element that refers to nothing outside itself. Pointing at a cell shows the two
        tokens and the weight.

    Notes
    -----
    Cells below 1/510 are left out, and of more than 12,000 the largest stay; the description
    in the file says so. Where cells are smaller than labels, one in n tokens is named.
    """
    steps, states = alignment.weights.shape
    side = max(4.0, min(30.0, width / states, width / steps))
    down, across = map(label, alignment.target), map(label, alignment.source)
    rows, columns = list(down), list(across)
    upright = all(label_width(text, _FONT) <= side for text in columns)
    left = max(label_width(text, _FONT) for text in rows) + 10
    above = 18.0 if upright else max(label_width(text, _FONT) for text in columns) + 10
    head = 24 if title else 4
    top = head + 18 + above
    # Room for the words of the axes and the scale beside a small grid.
    total = max(left + side * states + 8, left + 190.0)
    height = top + side * steps + 34
    every = max(1, math.ceil((_FONT + 2) / side))
    cells, left_out = _cells(alignment, side, left, top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height:.0f}"'
        f' width="{total:.0f}" height="{height:.0f}" role="img"'
        f' font-family="system-ui, sans-serif" font-size="{_FONT}" fill="{INK}">',
        f"<title>{_clean(title or 'Attention weights')}</title>",
        f"<desc>{steps} target tokens down, {states} source tokens across. {left_out}</desc>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
    ]
    if title:
        parts.append(_text(4, 16, title, extra=' font-weight="600" font-size="14"'))
    named = f" (one in {every} named)" if every > 1 else ""
    parts.append(_text(left, head + 12, f"source across, target down{named}", color=QUIET))
    for place in range(0, steps, every):
        parts.append(_text(left - 6, top + side * (place + 0.5) + 4, rows[place], "end"))
    for place in range(0, states, every):
        x = left + side * (place + 0.5)
        if upright:
            parts.append(_text(x, top - 6, columns[place], "middle"))
        else:
            turned = f' transform="rotate(-90 {x + 4:.1f} {top - 6:.1f})"'
            parts.append(_text(x + 4, top - 6, columns[place], extra=turned))
    parts += cells
    if side >= 8:
        parts.append(_rules(side, left, top, steps, states))
    parts.append(
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{side * states:.1f}"'
        f' height="{side * steps:.1f}" fill="none" stroke="{FRAME}"/>'
    )
    parts += [*_scale(left, top + side * steps + 12), "</svg>\n"]
    return "\n".join(parts)


def _cells(alignment: Alignment, side: float, left: float, top: float) -> tuple[list[str], str]:
    weights = alignment.weights
    least = _LEAST
    if (weights >= least).sum() > _MOST:
        least = float(np.partition(weights.ravel(), -_MOST)[-_MOST])
    colors = _colors(weights)
    parts = []
    for step, state in np.argwhere(weights >= least)[:_MOST].tolist():
        tokens = f"{alignment.target[step]} \u2190 {alignment.source[state]}"
        parts.append(
            f'<rect x="{left + side * state:.1f}" y="{top + side * step:.1f}"'
            f' width="{side:.2f}" height="{side:.2f}" fill="{colors[step, state]}">'
            f"<title>{_clean(tokens)}: {weights[step, state]:.3f}</title></rect>"
        )
    return parts, f"Cells below {least:.3g} are not drawn."


def _colors(weights: NDArray[np.float64]) -> NDArray[np.str_]:
    at = np.clip(weights, 0, 1) * (len(_STOPS) - 1)
    stops = np.array(_STOPS, dtype=float)
    rgb = [
        np.rint(np.interp(at, range(len(_STOPS)), stops[:, channel])).astype(int)
        for channel in range(3)
    ]
    code = (rgb[0] << 16) | (rgb[1] << 8) | rgb[2]
    return np.array([f"#{value:06x}" for value in code.ravel().tolist()]).reshape(code.shape)


def _rules(side: float, left: float, top: float, steps: int, states: int) -> str:
    across = side * states
    down = side * steps
    lines = [f"M{left:.1f} {top + side * n:.1f}h{across:.1f}" for n in range(1, steps)]
    lines += [f"M{left + side * n:.1f} {top:.1f}v{down:.1f}" for n in range(1, states)]
    # Lines must not stand between the pointer and a cell.
    return (
        f'<path d="{"".join(lines)}" stroke="{RULE}" stroke-width="0.7"'
        ' fill="none" pointer-events="none"/>'
    )


def _scale(left: float, y: float) -> list[str]:
    ramp = _colors(np.linspace(0, 1, 41)[None])[0]
    parts = [_text(left, y + 10, "0", color=QUIET)]
    parts += [
        f'<rect x="{left + 12 + 2.5 * place:.1f}" y="{y:.1f}" width="2.6" height="10"'
        f' fill="{color}" shape-rendering="crispEdges"/>'
        for place, color in enumerate(ramp)
    ]
    return [*parts, _text(left + 120, y + 10, "1  weight", color=QUIET)]


def _text(
    x: float, y: float, text: str, anchor: str = "start", *, color: str = INK, extra: str = ""
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"{extra}>'
        f"{_clean(text)}</text>"
    )


def _clean(text: str) -> str:
    """Return text that may stand in XML, where some characters may not, even escaped."""
    return escape("".join(c if c.isprintable() else "\ufffd" for c in text))
