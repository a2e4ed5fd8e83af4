"""The pictures of the main job: accuracy against length, and what the models looked at.

Every figure is 8 inches wide, so that its 10-point text has about 14 pixels where the picture
is shown 800 pixels wide. Models differ in colour, marker and line style, so that they can be
told apart in grey and with any colour blindness.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from regard.alignment import Alignment
from regard.alignment.colors import BAND, GRID, INK, PAPER, QUIET
from regard.alignment.heatmap import heatmap, name_scale, new_figure
from regard.demo.copy_results import CopyResults, model_name
from regard.demo.looks import Look, looks

__all__ = ["accuracy_plot", "alignment_plot", "demo_figures"]

Axes: TypeAlias = Any  # matplotlib's, which only regard.alignment.heatmap imports
Figure: TypeAlias = Any

_WIDTH = 8.0  # inches
_SIZE = 10.5  # points


def accuracy_plot(copy: Mapping[str, Any]) -> Figure:
    """Draw the share of tokens right against the length of the sequence.

    Parameters
    ----------
    copy : mapping
        The ``copy`` part of the demo's results.

    Returns
    -------
    figure : matplotlib Figure
        8 by 4.9 inches. A line is the mean over seeds and its band runs from the lowest to the
        highest seed; lengths are spaced by their logarithm, or evenly where that would let
        their labels collide. Lengths that were not trained on are shaded and labelled.

    Raises
    ------
    InputError
        As :meth:`CopyResults.read <regard.demo.copy_results.CopyResults.read>` does.
    """
    results = CopyResults.read(copy)
    figure = new_figure(_WIDTH, 4.9)
    # Fixed margins, not a layout engine: the labels at the lines' ends need a known room.
    ax = figure.add_axes((0.07, 0.17, 0.735, 0.66))
    places = _places(results.lengths)
    _frame(ax, places)
    _shade(ax, results, places)
    _chance(ax, results)
    ends = []
    for model, look in looks(tuple(results.models)).items():
        end = _line(ax, results, model, look, places)
        if end is not None:
            ends.append((model, look, *end))
    _name_ends(ax, ends)
    figure.text(0.012, 0.945, "Copying a sequence: tokens right, %", **_text(13, INK))
    figure.text(0.012, 0.022, _caption(results), **_text(9.5, QUIET))
    return figure


def alignment_plot(alignments: Mapping[str, Any]) -> Figure:
    """Draw alignments side by side, on one scale from 0 to 1.

    Parameters
    ----------
    alignments : mapping of str to Alignment or dict
        Titles, or models' names, and what each looked at: an
        :class:`~regard.alignment.Alignment`, or a dict with source, target and weights.

    Returns
    -------
    figure : matplotlib Figure
        One picture: sized by its tokens. More: 8 inches wide, at most three in a row.

    Raises
    ------
    RegardError
        As :class:`~regard.alignment.Alignment` does.
    """
    read = {
        model_name(name): data if isinstance(data, Alignment) else Alignment.from_dict(data)
        for name, data in alignments.items()
    }
    if len(read) == 1:
        title, alignment = next(iter(read.items()))
        figure: Figure = heatmap(alignment, title=title, font_size=_SIZE).figure
        return figure
    columns = min(3, len(read))
    rows = max(1, math.ceil(len(read) / columns))
    height = 0.15 + rows * (0.95 + 6.3 / max(columns, 2))
    figure = new_figure(_WIDTH, height, layout="compressed")
    grid = figure.subplots(rows, max(columns, 1), squeeze=False)
    drawn = None
    for place, ax in enumerate(grid.flat):
        if place >= len(read):
            ax.remove()
            continue
        title, alignment = list(read.items())[place]
        heatmap(alignment, ax, title=title, colorbar=False, font_size=9)
        drawn = ax.images[0]
        if place % columns:
            ax.set_ylabel("")
    if drawn is not None:
        kept = [ax for ax in grid.flat if ax.figure is not None]
        name_scale(
            figure.colorbar(drawn, ax=kept, aspect=22 * rows, pad=0.02, fraction=0.03), 9
        )
    return figure


def demo_figures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Draw every picture that the results allow.

    Parameters
    ----------
    results : mapping
        The content of ``demo.json``; parts may be missing.

    Returns
    -------
    figures : dict of str to matplotlib Figure
        ``accuracy``, ``alignments`` (the copy models) and ``word_1``, ``word_2`` ... (letters
        to sounds, in the order of the examples). What has no decoder step has no picture.
    """
    figures = {}
    if results.get("copy", {}).get("models"):
        figures["accuracy"] = accuracy_plot(results["copy"])
    copied = {
        model: data
        for model, data in results.get("alignments", {}).get("copy", {}).items()
        if data and data.get("weights")
    }
    if copied:
        figures["alignments"] = alignment_plot(copied)
    for number, example in enumerate(results.get("g2p", {}).get("examples", ()), start=1):
        if example.get("weights"):
            word = "".join(example["source"]).lower()
            figures[f"word_{number}"] = alignment_plot({f"“{word}”": example})
    return figures


def _text(size: float, color: str) -> dict[str, Any]:
    return {"fontsize": size, "color": color}


def _places(lengths: Sequence[int]) -> dict[int, float]:
    """Return where each length stands: by its logarithm if the labels then keep apart."""
    if len(lengths) < 2:
        return dict.fromkeys(lengths, 0.0)
    logs = [math.log2(max(length, 1)) for length in lengths]
    closest = min(later - earlier for earlier, later in itertools.pairwise(logs))
    if closest >= 0.055 * (logs[-1] - logs[0]):
        return dict(zip(lengths, logs, strict=True))
    return {length: float(place) for place, length in enumerate(lengths)}


def _frame(ax: Axes, places: Mapping[int, float]) -> None:
    ax.set_ylim(0, 1.03)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], labels=["0", "25", "50", "75", "100"])
    if places:
        edges = list(places.values())
        room = 0.03 * (edges[-1] - edges[0]) or 0.5
        ax.set_xlim(edges[0] - room, edges[-1] + room)
    every = math.ceil(len(places) / 19)  # more labels than that would touch
    labelled = list(places.items())[:: every or 1]
    ax.set_xticks([place for _, place in labelled], labels=[str(n) for n, _ in labelled])
    ax.set_xlabel("length of the sequence, tokens", **_text(_SIZE, INK))
    ax.tick_params(labelsize=_SIZE, colors=INK, length=0)
    ax.grid(axis="y", color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(QUIET)


def _shade(ax: Axes, results: CopyResults, places: Mapping[int, float]) -> None:
    left, right = ax.get_xlim()
    known = [n for n in results.lengths if not results.extrapolates(n)]
    for beyond, words in (
        ([n for n in results.lengths if n > results.trained[1]], "longer than trained:"),
        ([n for n in results.lengths if n < results.trained[0]], "shorter than trained:"),
    ):
        if not beyond:
            continue
        longer = beyond[0] > results.trained[1]
        # From halfway to the nearest trained length, so that no point is on the edge.
        near = beyond[0] if longer else beyond[-1]
        inner = (known[-1] if longer else known[0]) if known else None
        edge = left if longer else right
        if inner is not None:
            edge = (places[near] + places[inner]) / 2
        start, stop = (edge, right) if longer else (left, edge)
        ax.axvspan(start, stop, color=BAND, linewidth=0, zorder=0)
        ax.text(
            *((stop, 1.055) if longer else (start, 1.055)),
            f"{words}\nextrapolation",
            ha="right" if longer else "left",
            va="bottom",
            linespacing=1.15,
            **_text(_SIZE, QUIET),
        )


def _chance(ax: Axes, results: CopyResults) -> None:
    if results.chance is None:
        return
    ax.axhline(results.chance, color=QUIET, linestyle=(0, (1, 2)), linewidth=1.6, zorder=1)
    ax.annotate(
        f"chance {100 * results.chance:.3g} %",
        (0, results.chance),
        xycoords=("axes fraction", "data"),
        xytext=(6, 4),
        textcoords="offset points",
        **_text(_SIZE, QUIET),
    )


def _line(
    ax: Axes, results: CopyResults, model: str, look: Look, places: Mapping[int, float]
) -> tuple[float, float] | None:
    """Draw one model and return where its line ends."""
    cells = {n: cell for n in results.lengths if (cell := results.cell(model, n)) is not None}
    if not cells:
        return None
    x = [places[length] for length in cells]
    ax.fill_between(
        x,
        [cell.low for cell in cells.values()],
        [cell.high for cell in cells.values()],
        color=look.color,
        alpha=0.18,
        linewidth=0,
        zorder=2,
    )
    means = [cell.mean for cell in cells.values()]
    ax.plot(
        x,
        means,
        color=look.color,
        linestyle=look.dash,
        linewidth=2,
        marker=look.marker,
        markersize=7,
        markeredgecolor=PAPER,
        markeredgewidth=0.8,
        clip_on=False,
        zorder=3,
    )
    return x[-1], means[-1]


def _name_ends(ax: Axes, ends: Sequence[tuple[str, Look, float, float]]) -> None:
    """Write each model's name at its line's end, moved apart where two would overlap."""
    heights = _apart([y for *_, y in ends], gap=0.066, top=1.0)
    for (model, look, x, y), height in zip(ends, heights, strict=True):
        ax.annotate(
            model_name(model),
            (x, y),
            xytext=(1.015, height),
            xycoords="data",
            textcoords=ax.get_yaxis_transform(),
            va="center",
            ha="left",
            fontweight="bold",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": look.color, "linewidth": 0.8, "shrinkB": 5},
            **_text(_SIZE, look.color),
        )


def _apart(wanted: Sequence[float], *, gap: float, top: float) -> list[float]:
    """Return heights at least `gap` apart, in the order of the wanted ones and near them."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    blocks: list[list[int]] = []
    for place in order:
        blocks.append([place])
        # Blocks that touch become one, centred on what its members want.
        while len(blocks) > 1 and _bottom(blocks[-1], wanted, gap) < (
            _bottom(blocks[-2], wanted, gap) + gap * len(blocks[-2])
        ):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    heights = [0.0] * len(wanted)
    for block in blocks:
        for number, place in enumerate(block):
            heights[place] = _bottom(block, wanted, gap) + gap * number
    over = max(heights, default=0.0) - top
    return [height - over for height in heights] if over > 0 else heights


def _bottom(block: Sequence[int], wanted: Sequence[float], gap: float) -> float:
    middle = sum(wanted[place] for place in block) / len(block)
    return middle - gap * (len(block) - 1) / 2


def _caption(results: CopyResults) -> str:
    first, last = results.trained
    seeds = results.most_seeds
    if seeds > 1:
        spread = f"Mean of {seeds} seeds; band: lowest to highest seed."
    else:
        spread = "One seed, so no spread is shown." if seeds else "Nothing was measured."
    return f"{spread} Trained on lengths {first} to {last}."
