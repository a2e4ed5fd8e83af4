"""Options that say what a file of pairs looks like, the same for every verb that reads one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.pairs import Columns, Pairs
    from regard.seq2seq.vocab import Vocab

__all__ = ["COLUMN_OPTIONS", "chosen_columns", "column_options", "pairs_for"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

COLUMN_OPTIONS = (
    "source_column",
    "target_column",
    "features_column",
    "header",
    "file_format",
)
"""Names of the parameters that :func:`column_options` adds."""

_FORMATS = click.Choice(["tsv", "tsv-quoted", "csv", "csv-semicolon", "jsonl"])


def column_options(command: _Command) -> _Command:
    """Add the options to a command, which gets them as the :data:`COLUMN_OPTIONS`."""
    for option in reversed(
        (
            click.option(
                "--source-column",
                metavar="COLUMN",
                help="A number from 1, a name in the header or a key of JSON; default 1.",
            ),
            click.option(
                "--target-column",
                metavar="COLUMN",
                multiple=True,
                help="The same for the target; default 2. Given twice: several references.",
            ),
            click.option(
                "--features-column",
                metavar="COLUMN",
                multiple=True,
                help="The same for features, as N;PL; they stand behind the source.",
            ),
            click.option(
                "--header/--no-header",
                default=None,
                help="Whether line 1 names the columns; default: only if one is named.",
            ),
            click.option(
                "--file-format",
                type=_FORMATS,
                help="Default from the name: .csv, .jsonl, also with .gz; else tsv.",
            ),
        )
    ):
        command = option(command)
    return command


def chosen_columns(
    *,
    source_column: str | None,
    target_column: tuple[str, ...],
    features_column: tuple[str, ...],
    header: bool | None,
) -> "Columns":
    """Return what the options say.

    Raises
    ------
    InputError
        They contradict each other.
    """
    from regard.seq2seq.pairs import Columns
    from regard.seq2seq.reading.columns import column

    def several(given: tuple[str, ...]) -> Any:
        read = tuple(column(text) for text in given)
        return read if len(read) > 1 else (read[0] if read else None)

    return Columns(
        source=None if source_column is None else column(source_column),
        target=several(target_column),
        features=several(features_column),
        header=header,
    )


def pairs_for(vocab: "Vocab", data: str, *, file_format: str | None, **columns: Any) -> "Pairs":
    """Read pairs that a model is scored on.

    Parameters
    ----------
    vocab : Vocab
        Of the model's sources.
    data : str
        The file.
    file_format, **columns
        As the options gave them.

    Raises
    ------
    InputError
        The file is refused, or has features and the model reads none, or the other way round.
    """
    from regard.seq2seq.pairs import read_pairs

    pairs = read_pairs(
        data,
        normal_form=vocab.normal_form,
        columns=chosen_columns(**columns),
        file_format=file_format,
    )
    if pairs.features is not vocab.features:
        reads = "sources with features" if vocab.features else "sources without features"
        raise InputError(
            explain(
                f"{data}: the model reads {reads}",
                expected="--features-column, the column that has them"
                if vocab.features
                else "no --features-column",
                got="--features-column" if pairs.features else "no --features-column",
                because="a model is scored on what it was trained to read",
            )
        )
    return pairs
