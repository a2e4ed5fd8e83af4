"""Options that say what a file of pairs looks like, the same for every verb that reads one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from regard.seq2seq.pairs import Columns

__all__ = ["COLUMN_OPTIONS", "chosen_columns", "column_options"]

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
