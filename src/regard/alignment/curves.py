"""How attention goes along a sentence: where each step looks, and how widely."""

import numpy as np
from matplotlib.figure import Figure

from regard.alignment.colors import GRID, INK, QUIET
from regard.alignment.heatmap import new_figure
from regard.alignment.record import Record
from regard.errors import InputError, explain

__all__ = ["curves"]

# Okabe and Ito's colours, which any colour blindness keeps apart; dashes do as well in grey.
_LOOKS = (
    ("#0072b2", "-"),
    ("#d55e00", "--"),
    ("#009e73", "-."),
    ("#cc79a7", ":"),
    ("#56b4e9", (0, (5, 1))),
    ("#e69f00", (0, (3, 1, 1, 1))),
    ("#000000", (0, (1, 1))),
    ("#7a5c00", (0, (7, 3))),
)


def curves(record: Record, *, layer: int | None = None, title: str | None = None) -> Figure:
    """Draw, head by head, the place that each step looks at most and its entropy.

    Parameters
    ----------
    record : Record
    layer : int, optional
        By its number in the model; the first if left out.
    title : str, optional

    Returns
    -------
    figure : matplotlib Figure
        Above, the source place of the largest weight; below, the entropy in bits, from 0 (one
        source token has it all) to log2(T_enc), dotted. The legend has each head's
        monotonicity. A step that looked at nothing leaves a gap.

    Raises
    ------
    InputError
        There is no such layer, or it has more than eight heads, which no eye keeps apart.
    """
    number = record.layers[0] if layer is None else layer
    part = record.slice(layers=[number])
    if len(part.heads) > len(_LOOKS):
        raise InputError(
            explain(
                "curves(): there are too many heads for one picture",
                expected=f"at most {len(_LOOKS)} heads",
                got=f"{len(part.heads)} heads",
                help="record.slice(heads=...) takes some of them",
            )
        )
    figure = new_figure(7.2, 5.2)
    figure.set_layout_engine("constrained")
    places, bits = figure.subplots(2, 1, sharex=True)
    steps = np.arange(1, len(record.target) + 1)
    entropy = part.entropy()[0]
    for at, head in enumerate(part.heads):
        color, dashes = _LOOKS[at]
        alignment = part.alignment(layer=number, head=head)
        looked = alignment.weights.any(axis=1)
        where = np.where(looked, alignment.weights.argmax(axis=1) + 1.0, np.nan)
        measure = alignment.monotonicity()
        told = "" if measure is None else f", monotonicity {measure:.2f}"
        style = {"color": color, "linestyle": dashes, "linewidth": 1.6}
        # A sentence of one word has no line to draw.
        mark = "o" if len(steps) < 30 else ""
        places.plot(
            steps, where, marker=mark, markersize=3, label=f"head {head}{told}", **style
        )
        bits.plot(steps, entropy[at], marker=mark, markersize=3, **style)
    most = np.log2(max(len(record.source), 2))
    bits.axhline(most, color=QUIET, linestyle=":", linewidth=1)
    bits.set_ylim(-0.03 * most, 1.08 * most)
    places.set_ylim(len(record.source) + 0.5, 0.5)
    bits.set_xlim(0.5, len(record.target) + 0.5)
    bits.set_xlabel("target token", color=INK)
    bits.set_ylabel("entropy, bits", color=INK)
    places.set_ylabel("source token looked at most", color=INK)
    for ax in (places, bits):
        ax.grid(visible=True, color=GRID, linewidth=0.6)
        ax.set_axisbelow(True)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        # Tokens are counted: half of one would be no place.
        ax.xaxis.get_major_locator().set_params(integer=True)
    places.yaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    said = f"layer {number}" if title is None else f"{title}, layer {number}"
    places.set_title(said.replace("$", r"\$"), loc="left", fontsize=11, color=INK)
    return figure
