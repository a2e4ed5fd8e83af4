"""``regard export``: make of a trained model what runs without PyTorch."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.column_options import column_options, pairs_for
from regard.cli.example import ExampleCommand
from regard.cli.options import LONGEST, Where
from regard.cli.streams import say
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.export.export import Export
    from regard.seq2seq.pairs import Pairs
    from regard.seq2seq.transducer import Transducer

__all__ = ["export"]

_CARD = "MODEL_CARD.md"

_EXAMPLE = """
regard export my-model --to numpy --int8 --out my-export --check held-out.tsv
regard predict my-export ATTENTION
regard export my-model --to onnx --out my-onnx --licence CC-BY-4.0
"""


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("model", type=Where(no_dash=True))
@click.option(
    "--to",
    type=click.Choice(["numpy", "onnx"]),
    default="numpy",
    show_default=True,
    help="numpy: one file that regard reads without PyTorch; onnx: for any program.",
)
@click.option(
    "--out",
    type=Where(no_dash=True),
    required=True,
    help="A directory to write to; of numpy also a file, NAME.npz.",
)
@click.option("--int8", is_flag=True, help="Store weights in 8 bits: a quarter of the size.")
@click.option("--float16", is_flag=True, help="Store weights in 16 bits: half of the size.")
@click.option(
    "--check",
    type=Where(no_dash=True),
    metavar="FILE",
    help="Pairs to compare both forms on, and to score them; else made-up sources.",
)
@column_options
@click.option("--licence", metavar="TEXT", help="What the model card states.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def export(
    *,
    model: str,
    to: str,
    out: str,
    int8: bool,
    float16: bool,
    check: str | None,
    licence: str | None,
    force: bool,
    file_format: str | None,
    **given: Any,
) -> int:
    """Write MODEL in a form that runs without PyTorch, and a model card beside it.

    What is written is read back and compared with MODEL first: the greedy answers to all
    sources and every step of some. If weights are stored in full and anything differs by more
    than 0.0001, nothing is written.
    """
    if int8 and float16:
        raise _refused("--int8 and --float16 contradict each other", "one of them", "both")
    if to == "onnx" and (int8 or float16):
        raise _refused(
            f"--to onnx has no {'--int8' if int8 else '--float16'}",
            "weights as they are, or --to numpy",
            "both",
        )
    path = Path(out)
    alone = to == "numpy" and path.suffix == ".npz"
    if to == "onnx" and path.suffix in (".onnx", ".npz"):
        raise _refused(
            f"{out}: --to onnx writes three files", "the name of a directory", "that of a file"
        )
    from regard.seq2seq.export.card import card_of
    from regard.seq2seq.export.export import FORMS, export_model, shipped
    from regard.seq2seq.transducer import Transducer

    directory = path.parent if alone else path
    card = directory / (f"{path.stem}.{_CARD}" if alone else _CARD)
    places = {name: path if alone else directory / name for name in FORMS[to]}
    _require_room(directory, [*places.values(), card], force=force)
    transducer = Transducer.load(model)
    pairs = None
    if check is not None:
        pairs = _checked_on(transducer, check, file_format=file_format, **given)
    numbers = "int8" if int8 else "float16" if float16 else "float32"
    found = export_model(transducer, model, to=to, numbers=numbers, pairs=pairs)
    text = card_of(shipped(transducer.description), found, name=path.name, licence=licence)
    _write({places[name]: data for name, data in found.files.items()}, card, text)
    for line in _lines(found, places, card):
        say(line)
    return 0


def _checked_on(transducer: "Transducer", check: str, **how: Any) -> "Pairs":
    """Read the pairs of --check, without sources whose attention would fill the memory."""
    vocab = transducer.description.source
    pairs = pairs_for(vocab, check, **how)
    kept = tuple(item for item in pairs.items if len(vocab.split(item[0])) <= LONGEST)
    left_out = len(pairs.items) - len(kept)
    if not kept:
        raise _refused(
            f"{check}: every source is longer than {LONGEST:,} symbols",
            "some that are shorter",
            f"{left_out:,} longer ones",
        )
    if left_out:
        click.echo(
            f"warning: {check}: {left_out:,} pairs whose source is longer than {LONGEST:,} "
            "symbols are not compared, nor scored",
            err=True,
        )
    return replace(pairs, items=kept)


def _require_room(directory: Path, places: list[Path], *, force: bool) -> None:
    """Refuse to write over anything before the work is done."""
    if directory.exists() and not directory.is_dir():
        raise _refused(f"{directory}: this is a file, not a directory", "a directory", "a file")
    if any((directory / name).exists() for name in ("config.json", "ensemble.json")):
        # After the next training, two different models would lie there.
        raise _refused(
            f"{directory}: this is a trained model's own directory",
            "another place for what is exported",
            "the directory that `regard train` writes",
        )
    there = [str(place) for place in places if place.exists()]
    if there and not force:
        raise InputError(
            explain(
                f"{there[0]}: the file is there already",
                expected="a new place",
                got=", ".join(there),
                help="choose another --out, or --force to write over it",
            )
        )


def _write(files: dict[Path, bytes], card: Path, text: str) -> None:
    from regard.files import unwritable, write_atomically

    try:
        card.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(unwritable(card.parent, error)) from error
    for place, data in files.items():
        write_atomically(place, data)
    write_atomically(card, text.encode("utf-8"))


def _lines(found: "Export", places: dict[str, Path], card: Path) -> list[str]:
    lines = [f"{places[name]}  {len(data):,} bytes" for name, data in found.files.items()]
    lines.append(f"{card}")
    lines.append(f"weights    {found.weights:,} stored as {found.numbers}")
    agreed = found.agreement
    lines.append(
        f"agreement  {agreed.same:,} of {agreed.sources:,} greedy answers are the same "
        f"({found.compared}); {agreed.steps:,} steps differ by at most "
        f"{agreed.probability_difference:.1e} in a probability, {agreed.difference:.1e} in "
        "its logarithm"
    )
    if found.rates is not None and found.trained_rates is not None:
        mine, before = found.rates, found.trained_rates
        lost = 100 * (mine.exact_match_error - before.exact_match_error)
        lines.append(
            f"errors     exact match {100 * mine.exact_match_error:.2f} %, before "
            f"{100 * before.exact_match_error:.2f} % ({lost:+.2f} points); symbols "
            f"{100 * mine.symbol_error_rate:.2f} %, before "
            f"{100 * before.symbol_error_rate:.2f} %"
        )
    lines.append(
        f"speed      {found.speed.greedy:,.0f} sources a second in batches, "
        f"{found.speed.alone:,.0f} one by one; PyTorch {found.trained_speed.greedy:,.0f} and "
        f"{found.trained_speed.alone:,.0f} (one thread)"
    )
    return lines


def _refused(what: str, expected: str, got: str) -> InputError:
    return InputError(explain(what, expected=expected, got=got))
