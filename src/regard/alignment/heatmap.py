"""An alignment as a picture: the target down, the source across, darker for more weight.

The functions draw on a matplotlib Axes and return it, so that a picture composes with others.
:func:`save` writes the same bytes for the same picture, and files that make no request.
"""

import io
import math
import os
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from regard.alignment.colors import FRAME, INK, PAPER, RULE
from regard.alignment.labels import label, label_width
from regard.alignment.matrix import Alignment
from regard.errors import BackendError, InputError, explain

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise BackendError(
        explain(
            "pictures need matplotlib",
            expected="matplotlib 3.8 or later",
            got=str(error),
            help="python -m pip install 'regard[plot]'",
        )
    ) from error

__all__ = ["COLORMAP", "heatmap", "name_scale", "new_figure", "save", "steady", "svg"]

Axes: TypeAlias = Any  # matplotlib has had types of its own since 3.8 only

COLORMAP = "Blues"
"""One hue whose lightness falls all the way: it also reads in grey and with any colour
blindness, and an empty cell costs no ink."""

_INCH = 72.0  # points
_FIXED: dict[Any, Any] = {
    # Without a salt of its own matplotlib draws the ids in a file at random.
    "svg.hashsalt": "regard",
    # Text stays text: it can be searched, read aloud, and needs no glyph of ours.
    "svg.fonttype": "none",
}


def heatmap(
    alignment: Alignment,
    ax: Axes | None = None,
    *,
    title: str | None = None,
    colorbar: bool = True,
    font_size: float = 10.0,
) -> Axes:
    """Draw the weights as a grid of cells.

    Parameters
    ----------
    alignment : Alignment
        Weights (T_dec, T_enc): T_dec rows from top to bottom, T_enc columns from left to right.
    ax : matplotlib Axes, optional
        Where to draw. Left out, a new figure is made whose size follows the token counts:
        cells of at most 0.42 inch, the grid at most 6.4 inches either way. Cells are square
        unless the grid is long and thin.
    title : str, optional
        Stands above the picture, at the left.
    colorbar : bool
        Whether to add the scale. It always runs from 0 to 1, so that pictures compare.
    font_size : float
        Of the labels, in points; more than 0.

    Returns
    -------
    ax : matplotlib Axes
        Its figure is ``ax.figure``.

    Raises
    ------
    InputError
        `font_size` is not positive.

    Notes
    -----
    Where a cell is smaller than a label, only every n-th token is named and the axis says so.
    Tokens of more than 16 characters are shortened with an ellipsis.
    """
    if not font_size > 0:
        raise InputError(
            explain(
                "heatmap(): `font_size` is no size",
                expected="a number of points above 0",
                got=str(font_size),
            )
        )
    across = [_label(token) for token in alignment.source]
    down = [_label(token) for token in alignment.target]
    if ax is None:
        width, height = _cell_inches(len(across)), _cell_inches(len(down))
        width, height = min(width, 2 * height), min(height, 2 * width)
        size = _figure_inches(across, down, width, height, font_size)
        # `compressed` is the constrained layout for axes that keep their proportions.
        ax = new_figure(*size, layout="compressed").add_subplot()
        cell = (width * _INCH, height * _INCH)
    else:
        cell = _cell_points(ax, alignment.weights.shape)
    # `none` puts one pixel a cell into an SVG; anything else resamples it to a blur.
    drawn = ax.imshow(
        alignment.weights,
        cmap=COLORMAP,
        vmin=0,
        vmax=1,
        aspect=cell[1] / cell[0],
        interpolation="none",
    )
    upright = all(label_width(text, font_size) <= cell[0] * 0.95 for text in across)
    _name_tokens(ax.xaxis, "source", across, cell[0], font_size)
    _name_tokens(ax.yaxis, "target", down, cell[1], font_size)
    ax.tick_params(axis="x", rotation=0 if upright else 90)
    ax.tick_params(labelsize=font_size, length=2, color=FRAME, labelcolor=INK)
    if min(cell) > 6:
        _rule(ax, alignment.weights.shape)
    for spine in ax.spines.values():
        spine.set_color(FRAME)
    if title is not None:
        room = max(len(across) * cell[0] + 60, 150) / (0.6 * (font_size + 1.5))
        wrapped = "\n".join(textwrap.wrap(_plain(title), max(12, int(room))))
        ax.set_title(wrapped, loc="left", pad=font_size, fontsize=font_size + 1.5, color=INK)
    if colorbar:
        # Inside the Axes' own coordinates, so that the bar is as high as the grid.
        points = 10 / (len(across) * cell[0])
        scale = ax.inset_axes((1 + points, 0, points, 1))
        name_scale(ax.figure.colorbar(drawn, cax=scale), font_size)
        if len(down) * cell[1] < 5 * font_size:
            scale.set_yticks([0, 1], labels=["0", "1"])
            scale.set_ylabel("")
    return ax


def new_figure(
    width: float, height: float, *, layout: Literal["compressed"] | None = None
) -> Figure:
    """Return an empty figure, in inches; it belongs to no window and needs no closing.

    Its ground is white whatever style the user has set: the colours are chosen for it.
    """
    return Figure(figsize=(width, height), layout=layout, facecolor=PAPER)


def name_scale(bar: Any, font_size: float) -> None:
    """Label a colour bar of weights; the scale runs from 0 to 1."""
    bar.set_label("weight", fontsize=font_size, color=INK)
    bar.set_ticks([0, 0.5, 1], labels=["0", "0.5", "1"])
    bar.ax.tick_params(labelsize=font_size, length=2, color=FRAME, labelcolor=INK)
    bar.outline.set_edgecolor(FRAME)


def save(
    figure: Figure, path: str | os.PathLike[str], *, dpi: float = 200
) -> tuple[Path, Path]:
    """Write a figure as PNG and as SVG, the same bytes each time.

    Parameters
    ----------
    figure : matplotlib Figure
    path : path without suffix
        ``path.png`` and ``path.svg`` are written; existing ones are replaced. A name with a
        dot in it keeps all of it.
    dpi : float
        Of the PNG, in pixels an inch: a figure of 8 inches is 1600 pixels wide by default.

    Returns
    -------
    png, svg : Path

    Raises
    ------
    InputError
        The files cannot be written.

    Notes
    -----
    A glyph that no installed font has is a box in the PNG. matplotlib's warning about each is
    suppressed here, because the SVG keeps the text and the viewer's own fonts can show it.
    """
    base = Path(path)
    png, vector = base.with_name(base.name + ".png"), base.with_name(base.name + ".svg")
    try:
        with steady():
            figure.savefig(png, dpi=dpi, metadata={"Software": None})
        vector.write_text(svg(figure), encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(
            explain(
                "save(): the picture cannot be written",
                expected=f"{png.name} and {vector.name} in a directory that can be written to",
                got=str(error),
            )
        ) from error
    return png, vector


def svg(figure: Figure) -> str:
    """Return a figure as SVG text: no date, no document type, nothing fetched to show it."""
    text = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with steady():
        figure.savefig(text, format="svg", metadata=nothing)
    # The document type names a DTD at another host, which some readers do fetch.
    return re.sub(r"<!DOCTYPE[^>]*>\s*", "", text.getvalue(), count=1)


@contextmanager
def steady() -> Iterator[None]:
    """Draw the same bytes each time, and without matplotlib's word on every missing glyph."""
    with mpl.rc_context(_FIXED), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from font")
        yield


def _label(token: str) -> str:
    """Return a token as matplotlib shows it."""
    return _plain(label(token))


def _plain(text: str) -> str:
    """Return text that matplotlib does not read as mathematics, as a pair of dollars is."""
    return text.replace("$", r"\$")


def _cell_inches(count: int) -> float:
    return min(0.42, 6.4 / count)


def _figure_inches(
    across: Sequence[str], down: Sequence[str], width: float, height: float, font_size: float
) -> tuple[float, float]:
    left = max(label_width(text, font_size) for text in down) / _INCH
    below = max(label_width(text, font_size) for text in across) / _INCH
    # Room for the axis labels, the title and the scale; a small grid still has its axis named.
    return max(width * len(across) + left + 1.3, 3.6), height * len(down) + below + 1.0


def _cell_points(ax: Axes, shape: tuple[int, ...]) -> tuple[float, float]:
    """Return the width and height of a square cell in an Axes that is already placed."""
    box = ax.get_window_extent()
    side = min(box.width / shape[1], box.height / shape[0]) * _INCH / ax.figure.dpi
    return float(side), float(side)


def _name_tokens(axis: Any, side: str, labels: Sequence[str], cell: float, size: float) -> None:
    every = max(1, math.ceil(size * 1.2 / cell))
    places = range(0, len(labels), every)
    axis.set_ticks(list(places), labels=[labels[place] for place in places])
    thinned = f" (one in {every} named)" if every > 1 else ""
    axis.set_label_text(side + thinned, fontsize=size, color=INK)


def _rule(ax: Axes, shape: tuple[int, ...]) -> None:
    """Part the cells with thin lines, so that a light one can be followed to its label."""
    style: Mapping[str, Any] = {"color": RULE, "linewidth": 0.5}
    for place in range(1, shape[0]):
        ax.axhline(place - 0.5, **style)
    for place in range(1, shape[1]):
        ax.axvline(place - 0.5, **style)
