"""Writing one picture of alignments: SVG, PNG or PDF, as the file's name says.

A heat map's SVG tells each cell's weight when it is pointed at. What stands in a PNG or PDF are
glyphs, so that a script needs a font that has it; an SVG keeps text for the viewer's fonts.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from regard.alignment.record import Record
from regard.alignment.svg_map import svg_map
from regard.errors import InputError, explain
from regard.files import write_atomically

__all__ = ["PICTURES", "Picture", "picture"]

Picture = Literal["map", "heads", "curves"]
"""A heat map, all heads small, or where each step looks and how widely."""

PICTURES: tuple[Picture, ...] = get_args(Picture)
"""All kinds of pictures."""

SUFFIXES = (".svg", ".png", ".pdf")


def picture(
    path: Path | str,
    record: Record,
    *,
    kind: Picture = "map",
    layer: int | None = None,
    head: int | Literal["mean"] | None = None,
    title: str | None = None,
    dpi: float = 200,
) -> tuple[Path, str]:
    """Write a picture of a record; an existing file is replaced.

    Parameters
    ----------
    path : path
        Ends in .svg, .png or .pdf.
    record : Record
    kind : {"map", "heads", "curves"}
        One head's heat map, all heads small, or where they look and how widely.
    layer : int, optional
        By its number in the model; the first if left out. For ``heads``, all.
    head : int or "mean", optional
        For ``map``: the mean of all heads if left out and there are several. For ``curves``:
        this head alone.
    title : str, optional
    dpi : float
        Of a PNG.

    Returns
    -------
    path : Path
    missing : str
        Characters that no installed font has, which are boxes in a PNG or PDF. "" for an SVG.

    Raises
    ------
    InputError
        There is no such layer or head, the suffix is another, or the file cannot be written.
    BackendError
        matplotlib is missing; heat maps as SVG do not need it.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES or kind not in PICTURES:
        raise InputError(
            explain(
                f"{path}: this picture is not known",
                expected=f"a name that ends in {', '.join(SUFFIXES)}; "
                f"kind {', '.join(PICTURES)}",
                got=f"{suffix or 'no suffix'}, kind {kind!r}",
            )
        )
    number = record.layers[0] if layer is None else layer
    if kind == "map":
        which = head if head is not None else "mean" if len(record.heads) > 1 else None
        alignment = record.alignment(
            layer=number, head=record.heads[0] if which is None else which
        )
        if suffix == ".svg":
            write_atomically(path, svg_map(alignment, title=title).encode("utf-8"))
            return path, ""
        from regard.alignment.heatmap import heatmap  # noqa: PLC0415 - matplotlib is optional

        return _written(path, record, lambda: heatmap(alignment, title=title).figure, dpi)
    part = record.slice(heads=[head]) if isinstance(head, int) else record
    if kind == "heads":
        from regard.alignment.head_grid import head_grid  # noqa: PLC0415 - as above

        part = part if layer is None else part.slice(layers=[layer])
        return _written(path, record, lambda: head_grid(part, title=title), dpi)
    from regard.alignment.curves import curves  # noqa: PLC0415 - as above

    return _written(path, record, lambda: curves(part, layer=number, title=title), dpi)


def _written(
    path: Path, record: Record, draw: Callable[[], Any], dpi: float
) -> tuple[Path, str]:
    import matplotlib as mpl  # noqa: PLC0415 - as above

    from regard.alignment.fonts import families  # noqa: PLC0415 - as above
    from regard.alignment.heatmap import steady, svg  # noqa: PLC0415 - as above

    suffix = path.suffix.lower()
    names, missing = families((*record.target, *record.source))
    with mpl.rc_context({"font.family": names}), steady():
        figure = draw()
        if suffix == ".svg":
            data, missing = svg(figure).encode("utf-8"), ""
        else:
            stream = io.BytesIO()
            # Neither a date nor a version: the same picture has the same bytes.
            nothing = {"Software": None} if suffix == ".png" else {"CreationDate": None}
            figure.savefig(stream, format=suffix[1:], dpi=dpi, metadata=nothing)
            data = stream.getvalue()
    write_atomically(path, data)
    return path, missing
