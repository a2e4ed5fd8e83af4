"""``regard align words``: links and matrices of a parallel text, by trained models."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from regard.cli.align_options import (
    link_options,
    links_of,
    require_directions,
    write_or_say,
)
from regard.cli.column_options import COLUMN_OPTIONS, chosen_columns, column_options
from regard.cli.example import ExampleCommand
from regard.cli.options import LONGEST, THREADS, Number, Where
from regard.cli.search_options import with_option
from regard.cli.streams import refuse_existing
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.alignment.links import Links
    from regard.seq2seq.aligning import AlignedPair

__all__ = ["words"]

_EXAMPLE = """
regard align words my-model pairs.tsv --out links.txt
regard align words en-de pairs.tsv --backward de-en --out both.txt --matrices looked.npz
regard show looked.npz
"""

_SHOWN = 20  # lines or symbols in a warning


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("model", type=Where(no_dash=True))
@click.argument("pairs", type=Where(no_dash=True))
@with_option
@click.option(
    "--backward",
    type=Where(no_dash=True),
    help="A model from target to source: links then come from both directions.",
)
@link_options
@click.option(
    "--matrices",
    type=Where(no_dash=True),
    help="Also write the weights: .npz, .json or .jsonl, for `regard show`.",
)
@click.option(
    "--counterfactuals",
    is_flag=True,
    help="Add what each step would have written with other weights to --matrices.",
)
@click.option("--pieces", is_flag=True, help="Keep subwords apart; else links join words.")
@click.option("--no-features", is_flag=True, help="Leave features out of the source.")
@click.option("--end", is_flag=True, help="Add the row of the end to --matrices.")
@click.option(
    "--unknown",
    type=click.Choice(["keep", "fail"]),
    default="keep",
    show_default=True,
    help="What to do with source symbols that the model never saw.",
)
@column_options
@click.option("--longest", type=Number(int, 1, 100_000), default=LONGEST, show_default=True)
@click.option("--threads", type=THREADS, default=1, show_default=True)
def words(
    *,
    model: str,
    pairs: str,
    more: tuple[str, ...],
    backward: str | None,
    rule: str,
    least: float | None,
    method: str,
    form: str,
    out: str | None,
    force: bool,
    matrices: str | None,
    counterfactuals: bool,
    pieces: bool,
    no_features: bool,
    end: bool,
    unknown: str,
    longest: int,
    threads: int,
    **given: Any,
) -> int:
    """Align the pairs of a text: where MODEL looks while it is made to write each target.

    PAIRS has lines source<TAB>target, or source ||| target. Each target is read to the model
    symbol by symbol; row t of the weights is the one that symbol t was answered with, which
    Bahdanau's attention asks for with the state before the step and Luong's with the state
    after it.

    A line of links comes out for every line in, an empty one where a side is empty. Positions
    count words where a side is cut into subwords, else the model's symbols, with features
    first. Sides that are longer than --longest are left out: exit code 1.

    MODEL is a model directory, an ensemble, or what `regard export` wrote.
    """
    from regard.alignment.collection_files import check_suffix, write_collection
    from regard.seq2seq.aligning import align_sentences, recorded_pairs
    from regard.seq2seq.reading.parallel import read_parallel
    from regard.seq2seq.runtimes import load, runtime_of, set_threads

    require_directions(
        rule, least, both=backward is not None, help="--backward MODEL is the other one"
    )
    for path in filter(None, (out, matrices)):
        refuse_existing(path, force, pairs)
    if matrices is not None:
        check_suffix(matrices)
    elif counterfactuals or end:
        raise InputError(
            explain(
                f"{'--end' if end else '--counterfactuals'} goes into --matrices",
                expected="--matrices FILE",
                got="links alone",
            )
        )
    set_threads(threads, runtime_of(model))
    columns = {name: given[name] for name in COLUMN_OPTIONS}
    file_format = columns.pop("file_format")
    sentences = read_parallel(pairs, columns=chosen_columns(**columns), file_format=file_format)
    forward = load(model, *more)
    found = align_sentences(
        forward,
        sentences,
        backward=None if backward is None else load(backward),
        unknown=unknown,
        longest=longest,
        pieces=pieces,
        features=not no_features,
    )
    refused = _warn(found, longest)
    links: list[Links] = []
    for pair in found:
        if pair.forward is None:
            links.append(frozenset())
            continue
        where = f"{pairs}, line {pair.line}"
        links.append(
            links_of(pair.forward, pair.backward, where, rule=rule, least=least, method=method)
        )
    if matrices is not None:
        kept = {"pieces": pieces, "features": not no_features}
        records = recorded_pairs(
            forward, found, name=model, end=end, changed=counterfactuals, **kept
        )
        write_collection(matrices, records, force=force)
    if out is not None or matrices is None:
        write_or_say(out, links, form)
    return 1 if refused else 0


def _warn(pairs: "Sequence[AlignedPair]", longest: int) -> int:
    """Say which lines have no alignment, and what no model knew; count those too long."""
    empty = [pair.line for pair in pairs if pair.left_out == "empty"]
    long = [pair.line for pair in pairs if pair.left_out == "too long"]
    for lines, why in (
        (empty, "a side is empty: no links"),
        (long, f"a side has more than {longest:,} symbols (--longest): no links"),
    ):
        if lines:
            shown = ", ".join(map(str, lines[:_SHOWN])) + " ..." * (len(lines) > _SHOWN)
            several = "s" * (len(lines) > 1)
            click.echo(f"warning: line{several} {shown}: {why}", err=True)
    read = [pair.forced for pair in pairs if pair.forced is not None]
    for side, unknown in (
        ("source", [symbol for one in read for symbol in one.unknown]),
        ("target", [symbol for one in read for symbol in one.unknown_target]),
    ):
        new = list(dict.fromkeys(unknown))
        if new:
            shown = " ".join(map(repr, new[:_SHOWN])) + " ..." * (len(new) > _SHOWN)
            click.echo(
                f"warning: {side} symbols that the model never saw, read as something "
                f"unknown: {shown}",
                err=True,
            )
    return len(long)
