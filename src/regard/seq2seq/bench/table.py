"""A bench's results as text for a terminal and as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.seq2seq.bench.summary import Row, Spread, rows

__all__ = ["markdown", "text"]


def text(results: Sequence[Mapping[str, Any]]) -> str:
    """Return a line for each task and, below it, one for each published result."""
    lines = []
    for row in rows(results):
        lines.append(f"{row.task}: {row.title}; test {row.measure}, percent{_warned(row)}")
        ours = [("regard", _spread(row.ours), _how(row))]
        if row.members > 1 or row.beam > 1:
            ours.append(("regard, one model, greedy", _spread(row.one), "the same runs"))
        ours += [
            (p.system, f"{p.values[row.measure]:.2f}", _source(p.source, p.note))
            for p in row.published
            if row.measure in p.values
        ]
        lines += [f"  {name:34} {value:>22}   {said}".rstrip() for name, value, said in ours]
        lines.append(f"  {'one test example':34} {row.grid:>22.2f}")
        if len(ours) == 1 + (row.members > 1 or row.beam > 1):
            lines.append("  no published result on this data is known")
    return "\n".join(lines)


def markdown(results: Sequence[Mapping[str, Any]]) -> str:
    """Return a table with a row for each task."""
    lines = [
        "| task | measure | regard: mean (lowest to highest), seeds | one model, greedy "
        "| published, source | one example | time, cores | models, beam |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows(results):
        published = [
            f"{p.values[row.measure]:.2f} {p.system} ({_source(p.source, p.note)})"
            for p in row.published
            if row.measure in p.values
        ]
        cells = [
            f"{row.title}{_warned(row)}",
            row.measure,
            f"**{row.ours.mean:.2f}** {_ends(row.ours)}".rstrip() + f", {row.ours.seeds}",
            f"{row.one.mean:.2f} {_ends(row.one)}".rstrip(),
            "<br>".join(published) or "none known on this data",
            f"{row.grid:.2f}",
            f"{_time(row)}, {row.cores}",
            f"{row.members}, {row.beam}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _spread(spread: Spread) -> str:
    return f"{spread.mean:.2f} {_ends(spread)}"


def _ends(spread: Spread) -> str:
    return f"({spread.low:.2f} to {spread.high:.2f})" if spread.seeds > 1 else ""


def _how(row: Row) -> str:
    models = f"{row.members} models" if row.members > 1 else "one model"
    search = f"beam {row.beam}" if row.beam > 1 else "greedy"
    seeds = f"{row.ours.seeds} seeds" if row.ours.seeds > 1 else "one seed"
    cores = f"{row.cores} cores" if row.cores > 1 else "one core"
    return f"{seeds}, {_time(row)} on {cores}, {models}, {search}"


def _time(row: Row) -> str:
    minutes = row.seconds / 60
    said = f"{minutes:.3g} min" if minutes >= 1 else f"{row.seconds:g} s"
    return said + (" of CPU time a core" if row.clock == "cpu" else "")


def _source(source: str, note: str) -> str:
    return f"{source}; {note}" if note else source


def _warned(row: Row) -> str:
    return "" if row.complete else ", NOT ALL LANGUAGES: not comparable"
