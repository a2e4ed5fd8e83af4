"""``regard align extract``: links from weights that any program wrote."""

from typing import TYPE_CHECKING, Any

import click

from regard.cli.align_options import (
    link_options,
    links_of,
    require_directions,
    write_or_say,
)
from regard.cli.example import ExampleCommand
from regard.cli.options import Number, Where
from regard.cli.streams import refuse_existing
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.alignment.links import Links
    from regard.alignment.matrix import Alignment
    from regard.alignment.record import Record

__all__ = ["extract"]

_EXAMPLE = """
regard align extract looked.npz --out links.txt
regard align extract en-de.npz de-en.npz --rule itermax --out links.txt
regard align extract transformer.npz --layer 4 --shift 1 --pieces sentencepiece
"""
_MOST = 10_000_000  # sentences
_MARKERS = click.Choice(["sentencepiece", "bpe", "wordpiece", "gpt2"])


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("weights", type=Where(no_dash=True))
@click.argument("backward", type=Where(no_dash=True), required=False)
@link_options
@click.option("--layer", type=Number(int, 0, 10_000), help="Default: the only one.")
@click.option("--head", type=Number(int, 0, 10_000), help="Default: the mean of all.")
@click.option(
    "--shift",
    type=Number(int, -1000, 1000),
    default=0,
    show_default=True,
    help="Read each target token's row so many rows later (Transformers: 1).",
)
@click.option("--pieces", type=_MARKERS, help="How both sides mark pieces of words to merge.")
@click.option("--target-pieces", type=_MARKERS, help="The same for the target alone.")
@click.option("--source-pieces", type=_MARKERS, help="The same for the source alone.")
def extract(
    *,
    weights: str,
    backward: str | None,
    rule: str,
    least: float | None,
    method: str,
    form: str,
    out: str | None,
    force: bool,
    layer: int | None,
    head: int | None,
    shift: int,
    pieces: str | None,
    target_pieces: str | None,
    source_pieces: str | None,
) -> int:
    """Make links of the WEIGHTS in a file: .json, .jsonl, .npz, or one array as .npy.

    Rows are target tokens and columns source tokens. BACKWARD holds the same sentences read the
    other way round, its rows source tokens: links then come from both directions. A line of
    links comes out for each record, and an empty one for each sentence that
    `regard align words` had to leave out.
    """
    from regard.alignment.collection_files import read_collection
    from regard.alignment.links import NO_WORD

    require_directions(
        rule, least, both=backward is not None, help="a second file is the other one"
    )
    if out is not None:
        refuse_existing(out, force, *filter(None, (weights, backward)))
    one = list(read_collection(weights))
    other = one if backward is None else list(read_collection(backward))
    if len(other) != len(one):
        raise InputError(
            explain(
                f"{backward}: another number of sentences",
                expected=f"{len(one)} records, as in {weights}",
                got=str(len(other)),
            )
        )
    target, source = target_pieces or pieces, source_pieces or pieces
    links: list[Links] = []
    for number, (record, turned) in enumerate(zip(one, other, strict=True), 1):
        where = f"{weights}, record {number}"
        read = _alignment(record, where, layer, head, shift, target, source)
        back = None
        if backward is not None:
            at = f"{backward}, record {number}"
            back = _alignment(turned, at, layer, head, shift, source, target)
        found = links_of(read, back, where, rule=rule, least=least, method=method)
        # The aligner's last column is for words that have no counterpart.
        none = len(read.source) - 1 if read.source[-1] == NO_WORD else -1
        links.append(frozenset((at, to) for at, to in found if at != none))
    write_or_say(out, _placed(links, one), form)
    return 0


def _placed(links: "list[Links]", records: "Sequence[Record]") -> "list[Links]":
    """Add empty links where `regard align words` had a sentence without a matrix."""
    numbers = [_whole(record.made_by.get("sentence")) for record in records]
    counts = {_whole(record.made_by.get("of")) for record in records}
    count = counts.pop()
    if counts or min(numbers) < 1 or not max(numbers) <= count <= _MOST:
        return links
    found = dict(zip(numbers, links, strict=True))
    if len(found) < len(links):
        return links
    return [found.get(number, frozenset()) for number in range(1, count + 1)]


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _alignment(
    record: "Record",
    where: str,
    layer: int | None,
    head: int | None,
    shift: int,
    target: str | None,
    source: str | None,
) -> "Alignment":
    from regard.alignment.rules import shifted
    from regard.alignment.words import merge
    from regard.errors import RegardError

    if layer is None and len(record.layers) > 1:
        known = ", ".join(map(str, record.layers))
        raise InputError(
            explain(
                f"{where}: there are several layers",
                expected=f"--layer with one of {known}",
                got="no --layer",
                because="layers look at different things: their mean is no alignment",
            )
        )
    try:
        chosen: Any = "mean" if head is None else head
        chosen = record.heads[0] if len(record.heads) == 1 and head is None else chosen
        layer = record.layers[0] if layer is None else layer
        alignment = record.alignment(layer=layer, head=chosen)
    except RegardError as error:
        raise type(error)(f"{where}: {error}") from error
    return merge(shifted(alignment, shift), target=target, source=source)
