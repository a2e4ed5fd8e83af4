"""Options that say how to search for answers, the same for every verb that asks a model."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from regard.cli.options import Number, Where
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.description import Description
    from regard.seq2seq.search import Constraint, SearchSettings

__all__ = [
    "SEARCH_OPTIONS",
    "chosen_constraint",
    "chosen_search",
    "search_options",
    "unknown_option",
    "with_option",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])

SEARCH_OPTIONS = (
    "beam",
    "nbest",
    "length_penalty",
    "coverage_penalty",
    "min_length",
    "max_length",
    "temperature",
    "seed",
)
"""Names of the parameters that :func:`search_options` adds, but ``allow`` and ``lexicon``."""

with_option = click.option(
    "--with",
    "more",
    type=Where(),
    multiple=True,
    help="A model to answer together with MODEL; may be given several times.",
)
"""Models that answer together."""

unknown_option = click.option(
    "--unknown",
    type=click.Choice(["keep", "copy", "drop", "fail"]),
    default="keep",
    show_default=True,
    help="What to do with symbols that the model never saw.",
)
"""What becomes of symbols without an id."""

_LENGTH = Number(int, 0, 100_000)


class _Penalty(click.ParamType):  # type: ignore[type-arg]  # generic in newer clicks only
    """``none``, ``average``, or a number."""

    name = "none|average|ALPHA"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | float:
        if value in ("none", "average"):
            return str(value)
        return Number(float, 0, 100).convert(value, param, ctx)


def search_options(command: _Command) -> _Command:
    """Add the options to a command."""
    for option in reversed(
        (
            click.option(
                "--beam",
                type=Number(int, 1, 1000),
                help="Beginnings followed together; default 1, greedy, or as --nbest says.",
            ),
            click.option(
                "--nbest",
                type=Number(int, 1, 1000),
                default=1,
                show_default=True,
                help="Answers a text, the best first.",
            ),
            click.option(
                "--length-penalty",
                type=_Penalty(),
                default="none",
                show_default=True,
                help="Divide log-probabilities by the length, or as GNMT with ALPHA (0.6).",
            ),
            click.option(
                "--coverage-penalty",
                type=Number(float, 0, 100),
                default=0.0,
                show_default=True,
                help="GNMT's beta (0.2): what it costs to leave parts of the source unread.",
            ),
            click.option(
                "--allow",
                metavar="SYMBOLS|@FILE",
                help="The only symbols to answer; @FILE reads them from a file.",
            ),
            click.option(
                "--lexicon",
                type=Where(no_dash=True),
                help="The only answers to give: a file, one a line.",
            ),
            click.option(
                "--min-length",
                type=_LENGTH,
                default=0,
                show_default=True,
                help="Symbols that an answer has at least.",
            ),
            click.option(
                "--max-length",
                type=_LENGTH,
                help="And at most; default: more than training ever showed.",
            ),
            click.option(
                "--temperature",
                type=Number(float, 0, 1000, open_low=True),
                help="Draw answers at random; 1 as likely as the model says, less is tamer.",
            ),
            click.option(
                "--seed",
                type=Number(int, 0, 2**63 - 1),
                default=0,
                show_default=True,
                help="Of drawing.",
            ),
        )
    ):
        command = option(command)
    return command


def chosen_search(
    *,
    beam: int | None,
    nbest: int,
    length_penalty: str | float,
    coverage_penalty: float,
    min_length: int,
    max_length: int | None,
    temperature: float | None,
    seed: int,
) -> "SearchSettings":
    """Return what the options say.

    Raises
    ------
    InputError
        They contradict each other.
    """
    from regard.seq2seq.search import Ranking, SearchSettings

    if temperature is not None and beam is not None and beam > 1:
        raise _together("--temperature and --beam", "answers are drawn or searched, not both")
    if beam is not None and nbest > beam and temperature is None:
        raise InputError(
            explain(
                f"--nbest {nbest} asks for more answers than --beam {beam} has",
                expected=f"--nbest up to {beam}",
                got=str(nbest),
                help="leave --beam out, or raise it",
            )
        )
    if max_length is not None and max_length < min_length:
        raise _together(
            f"--min-length {min_length} and --max-length {max_length}", "no length is both"
        )
    if beam is None:
        beam = 1 if temperature is not None else nbest
    return SearchSettings(
        beam=beam,
        nbest=nbest,
        ranking=Ranking(length_penalty, coverage_penalty),
        temperature=temperature,
        seed=seed,
        min_length=min_length,
        max_length=max_length,
    )


def chosen_constraint(
    description: "Description",
    *,
    allow: str | None,
    lexicon: str | None,
    min_length: int,
    max_length: int | None,
) -> "Constraint | None":
    """Return the constraint that the options make; what cannot be part of it goes to stderr.

    Raises
    ------
    InputError
        A file cannot be read, nothing is left to answer, or answers would have to be longer
        than any that the model was trained on.
    """
    from regard.seq2seq.search import wanted

    longest = description.longest_answer(description.longest_source)
    if min_length > longest and max_length is None:
        raise InputError(
            explain(
                f"--min-length: {min_length:,} is more than this model's answers have",
                expected=f"up to {longest:,}, a little more than training had",
                got=f"{min_length:,}",
                help="--max-length beside it says that longer ones are wanted",
            )
        )
    texts = None
    if allow is not None:
        # A lone @ is the symbol itself.
        from_file = allow.startswith("@") and len(allow) > 1
        texts = _lines(allow[1:]) if from_file else [allow]
    listed = None if lexicon is None else _lines(lexicon)
    found = wanted(
        description.target,
        allow=texts,
        lexicon=listed,
        min_length=min_length,
        max_length=max_length,
    )
    if found.unknown:
        shown = " ".join(map(repr, found.unknown[:20]))
        more = " and more" * (len(found.unknown) > 20)
        click.echo(
            f"warning: --allow has what the model cannot answer: {shown}{more}", err=True
        )
    if found.left_out:
        click.echo(
            f"warning: {found.left_out} lines of {lexicon} are left out: too short, too long, "
            "or of symbols that the model cannot answer or that are not allowed",
            err=True,
        )
    return found.constraint


def _lines(path: str) -> list[str]:
    from regard.files import unreadable
    from regard.seq2seq.lines import read_lines

    try:
        with Path(path).open("rb") as stream:
            return [line for lines in read_lines(stream, path) for line in lines]
    except OSError as error:
        raise InputError(
            unreadable(
                path,
                error,
                expected="a readable file, one text a line",
                missing="check the path",
            )
        ) from error


def _together(what: str, because: str) -> InputError:
    return InputError(
        explain(
            f"{what} contradict each other",
            expected="options that go together",
            got="both",
            because=because,
            help="leave one out",
        )
    )
