"""All heads of a record side by side: which of them align, which only look about."""

from typing import Any

from matplotlib.figure import Figure

from regard.alignment.colors import FRAME, INK, QUIET
from regard.alignment.heatmap import COLORMAP, name_scale, new_figure
from regard.alignment.record import Record
from regard.errors import InputError, explain

__all__ = ["head_grid"]

_MOST = 256  # heads; smaller pictures would show nothing
_INCH = 1.5  # of one head's picture


def head_grid(record: Record, *, title: str | None = None) -> Figure:
    """Draw every head small: layers from top to bottom, heads from left to right.

    Parameters
    ----------
    record : Record
        Weights (layers, heads, T_dec, T_enc); each picture has the target down and the source
        across, on one scale from 0 to 1.
    title : str, optional

    Returns
    -------
    figure : matplotlib Figure

    Raises
    ------
    InputError
        There are more than 256 heads.
    """
    layers, heads, steps, states = record.weights.shape
    if layers * heads > _MOST:
        raise InputError(
            explain(
                "head_grid(): there are too many heads for a picture",
                expected=f"at most {_MOST} heads",
                got=f"{layers} layers of {heads} heads",
                help="record.slice(layers=...) takes some of them",
            )
        )
    tall = min(max(steps / states, 0.5), 2.0)
    figure = new_figure(
        max(_INCH * heads + 1.2, 3.2), (_INCH * tall + 0.45) * layers + 0.7, layout="compressed"
    )
    grid = figure.subplots(layers, heads, squeeze=False)
    drawn: Any = None
    for row, layer in enumerate(record.layers):
        for column, head in enumerate(record.heads):
            ax = grid[row, column]
            drawn = ax.imshow(
                record.weights[row, column],
                cmap=COLORMAP,
                vmin=0,
                vmax=1,
                aspect="auto",
                interpolation="none",
            )
            ax.set_box_aspect(tall)
            ax.set_xticks([])
            ax.set_yticks([])
            measure = record.alignment(layer=layer, head=head).monotonicity()
            told = "" if measure is None else f"  {measure:.2f}"
            ax.set_title(f"{layer}.{head}{told}", loc="left", fontsize=8, color=INK, pad=3)
            for spine in ax.spines.values():
                spine.set_color(FRAME)
    figure.supylabel("layer: target down", fontsize=9, color=QUIET)
    figure.supxlabel(
        "head: source across; layer.head, then its monotonicity", fontsize=9, color=QUIET
    )
    if title:
        figure.suptitle(title.replace("$", r"\$"), fontsize=11, color=INK, x=0.01, ha="left")
    name_scale(figure.colorbar(drawn, ax=grid, shrink=0.8, pad=0.01), 8)
    return figure
