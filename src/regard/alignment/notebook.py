"""What a notebook shows of alignments: static HTML without scripts, classes or requests."""

from html import escape
from typing import TYPE_CHECKING, Literal

from regard.alignment.svg_map import svg_map

if TYPE_CHECKING:
    from regard.alignment.collection import Collection
    from regard.alignment.matrix import Alignment
    from regard.alignment.record import Record

__all__ = ["alignment_html", "collection_html", "record_html"]

_STYLE = "font-family: system-ui, sans-serif; font-size: 14px; overflow-x: auto;"
_ROWS = 20


def alignment_html(alignment: "Alignment") -> str:
    """Return a fragment for ``_repr_html_``: the heat map, and what is measured of it."""
    return _framed(_told(alignment), svg_map(alignment, width=480))


def record_html(record: "Record") -> str:
    """Return a fragment: the mean of the first layer's heads, and what else there is."""
    single = record.weights.shape[:2] == (1, 1)
    head: int | Literal["mean"] = record.heads[0] if single else "mean"
    alignment = record.alignment(layer=record.layers[0], head=head)
    said = [f"layer {record.layers[0]}, " + ("head " if single else "heads: ") + f"{head}"]
    if not single:
        layers, heads = record.weights.shape[:2]
        said.append(f"of {layers} layers of {heads} heads")
    name = ", ".join(filter(None, (record.name, record.model, *said)))
    return _framed(f"{name}; {_told(alignment)}", svg_map(alignment, width=480))


def collection_html(collection: "Collection") -> str:
    """Return a fragment: the first record, and a table of all."""
    cells = ("name", "model", "layers", "heads", "target", "source")
    rows = [
        (record.name, record.model, *(str(size) for size in record.weights.shape))
        for record in collection.records[:_ROWS]
    ]
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    top = "".join(f"<th>{cell}</th>" for cell in cells)
    more = len(collection) - len(rows)
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{rest}"
    return record_html(collection[0]) + f'<div style="{_STYLE}">{table}</div>'


def _told(alignment: "Alignment") -> str:
    steps, states = alignment.weights.shape
    monotonicity = alignment.monotonicity()
    measured = "" if monotonicity is None else f", monotonicity {monotonicity:.2f}"
    return f"{steps} target tokens, {states} source tokens{measured}"


def _framed(told: str, picture: str) -> str:
    return f'<div style="{_STYLE}"><p>{escape(told)}</p>{picture}</div>'
