"""The copy experiment as a table, for a terminal and for Markdown.

Rows are models, columns are lengths; a star marks lengths that were not trained on. Figures are
per cent, means over seeds; the spread runs from the lowest to the highest seed.
"""

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from regard.demo.copy_results import MEASURES, Cell, CopyResults, model_name, percent
from regard.errors import InputError, explain

__all__ = ["accuracy_markdown", "accuracy_table"]

_MISSING = "-"


def accuracy_table(copy: Mapping[str, Any], *, measure: str = "token_accuracy") -> Table:
    """Lay the results out for a terminal of 80 columns.

    Parameters
    ----------
    copy : mapping
        The ``copy`` part of the demo's results.
    measure : "token_accuracy" or "exact_match"

    Returns
    -------
    table : rich Table
        Under each mean stands its spread, rounded outwards to whole per cent from ten per cent
        on; it is left out where there is one seed. The last row is the best attention minus
        none, in points.

    Raises
    ------
    InputError
        `measure` is unknown, or the results are not sound.
    """
    results = _read(copy, measure)
    table = Table(
        title=f"Copying a sequence: {MEASURES[measure]}, %",
        caption=_notes(results, measure),
        box=None,
        padding=(0, 1, 0, 0),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("length", no_wrap=True)
    for length in results.lengths:
        table.add_column(_head(results, length), justify="right", no_wrap=True)
    for model in results.models:
        cells = [results.cell(model, length, measure) for length in results.lengths]
        table.add_row(model_name(model), *(_stacked(cell) for cell in cells))
    gaps = _gaps(results, measure)
    if any(gap != _MISSING for gap in gaps):
        table.add_row("gap", *gaps, style="bold")
    return table


def accuracy_markdown(copy: Mapping[str, Any], *, measure: str = "token_accuracy") -> str:
    """Write the results as a Markdown table, which also reads as plain text.

    Parameters
    ----------
    copy : mapping
        The ``copy`` part of the demo's results.
    measure : "token_accuracy" or "exact_match"

    Returns
    -------
    text : str
        A mean and, in brackets, its spread; then a note of what the marks mean.

    Raises
    ------
    InputError
        `measure` is unknown, or the results are not sound.
    """
    results = _read(copy, measure)
    rows = [
        [f"{MEASURES[measure]}, %", *(_head(results, length) for length in results.lengths)],
        *(
            [
                model_name(model),
                *(_bracketed(results.cell(model, n, measure)) for n in results.lengths),
            ]
            for model in results.models
        ),
    ]
    gaps = _gaps(results, measure)
    if any(gap != _MISSING for gap in gaps):
        rows.append(["gap", *gaps])
    # A model's name may hold the column mark; the figures never do.
    safe = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in safe) for column in range(len(safe[0]))]
    lines = [
        "| "
        + " | ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in safe
    ]
    ruler = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines.insert(1, "| " + " | ".join(ruler) + " |")
    return "\n".join([*lines, "", _notes(results, measure).replace("*", r"\*"), ""])


def _read(copy: Mapping[str, Any], measure: str) -> CopyResults:
    if measure not in MEASURES:
        raise InputError(
            explain(
                "accuracy table: `measure` is unknown",
                expected=" or ".join(MEASURES),
                got=repr(measure),
            )
        )
    return CopyResults.read(copy)


def _head(results: CopyResults, length: int) -> str:
    return f"{length}*" if results.extrapolates(length) else str(length)


def _stacked(cell: Cell | None) -> Text:
    if cell is None:
        return Text(_MISSING)
    shown = Text(percent(cell.mean))
    if cell.seeds > 1:
        shown.append(f"\n{_outwards(cell)}", style="dim")
    return shown


def _bracketed(cell: Cell | None) -> str:
    if cell is None:
        return _MISSING
    spread = f" ({percent(cell.low)}-{percent(cell.high)})" if cell.seeds > 1 else ""
    return percent(cell.mean) + spread


def _outwards(cell: Cell) -> str:
    """Return a short spread that is never narrower than the true one."""
    # Enough digits to tell a share from its last bit: 0.07 * 100 must not round up to 8.
    low, high = round(100 * cell.low, 9), round(100 * cell.high, 9)
    if low >= 10:
        return f"{math.floor(low)}-{math.ceil(high)}"
    return f"{math.floor(10 * low) / 10:.1f}-{math.ceil(10 * high) / 10:.1f}"


def _gaps(results: CopyResults, measure: str) -> list[str]:
    gaps = [results.gap(length, measure) for length in results.lengths]
    return [_MISSING if gap is None else f"{100 * gap:+.1f}" for gap in gaps]


def _notes(results: CopyResults, measure: str) -> str:
    first, last = results.trained
    seeds = results.most_seeds
    notes = [
        f"mean of {seeds} seeds, with the lowest and highest seed"
        if seeds > 1
        else "one seed, no spread"
    ]
    if any(results.extrapolates(length) for length in results.lengths):
        notes.append(f"* extrapolation: not trained on (trained: {first} to {last})")
    if any(results.gap(length, measure) is not None for length in results.lengths):
        notes.append("gap: best attention minus none, in points")
    if measure == "token_accuracy" and results.chance is not None:
        notes.append(f"chance: {100 * results.chance:.3g} %")
    return "; ".join(notes)
