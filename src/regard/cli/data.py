"""``regard data``: look at pairs before a model is trained on them."""

import json
from typing import Any

import click

from regard.cli.column_options import chosen_columns, column_options
from regard.cli.example import ExampleCommand
from regard.cli.options import Number, Where
from regard.cli.streams import say

__all__ = ["data"]

_KINDS = click.Choice(["chars", "graphemes", "spaces", "subwords"])
_FORMS = click.Choice(["NFC", "NFD", "NFKC", "none"])

_EXAMPLE = """
regard data check pairs.tsv
regard data check train.tsv --dev dev.tsv --test test.tsv --target-symbols spaces
regard data check lexicon.csv --source-column word --target-column ipa --format json
"""


@click.group()
def data() -> None:
    """Look at pairs before a model is trained on them."""


@data.command(
    "check",
    cls=ExampleCommand,
    example=_EXAMPLE,
    short_help="Report what is odd in files of pairs.",
)
@click.argument("train", metavar="FILE", type=Where(no_dash=True))
@click.option("--dev", type=Where(no_dash=True), help="Held-out pairs: new to the model?")
@click.option("--test", type=Where(no_dash=True), help="Pairs for the final score: new?")
@click.option("--symbols", type=_KINDS, help="How both sides are cut into symbols.")
@click.option("--source-symbols", type=_KINDS, help="The same for the source; default chars.")
@click.option("--target-symbols", type=_KINDS, help="The same for the target; default chars.")
@click.option("--normal-form", type=_FORMS, default="NFC", show_default=True)
@column_options
@click.option(
    "--limit",
    type=Number(int, 0, 10**6),
    default=10,
    show_default=True,
    help="Lines to name of each finding.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def check(
    *,
    train: str,
    dev: str | None,
    test: str | None,
    symbols: str | None,
    source_symbols: str | None,
    target_symbols: str | None,
    normal_form: str,
    file_format: str | None,
    limit: int,
    form: str,
    **columns: Any,
) -> int:
    """Report what is odd in FILE, a file of source<TAB>target lines, CSV or JSONL.

    Lines that cannot be read, with the reason; repeated pairs; sources with several targets;
    what FILE, --dev and --test have in common; lengths that stand out; symbols that FILE does
    not have; mixed Unicode forms, invisible characters, mixed scripts, stray spaces. Each with
    its count, the first line numbers, and what to do. Of subwords the characters are looked
    at. Nothing is changed. Exit code 0: at most notes; 1: errors or warnings; 2: a file cannot
    be read at all.
    """
    from regard.seq2seq.inspection.inspect import inspect
    from regard.seq2seq.inspection.render import as_text
    from regard.seq2seq.inspection.survey import Layout

    layout = Layout(
        columns=chosen_columns(**columns),
        file_format=file_format,
        source_symbols=source_symbols or symbols or "chars",
        target_symbols=target_symbols or symbols or "chars",
        normal_form=normal_form,
        limit=limit,
    )
    report = inspect(train, dev=dev, test=test, layout=layout)
    say(json.dumps(report.to_json(), ensure_ascii=False) if form == "json" else as_text(report))
    return 0 if report.clean else 1
