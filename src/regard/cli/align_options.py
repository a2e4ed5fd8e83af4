"""Options that say which weights become links, the same for every verb that makes some."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from regard.alignment.symmetrize import METHODS
from regard.cli.options import Number, Where
from regard.cli.streams import say
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.alignment.links import Links
    from regard.alignment.matrix import Alignment

__all__ = [
    "METHODS",
    "link_options",
    "links_of",
    "require_directions",
    "write_or_say",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_RULES = ("argmax", "threshold", "mutual", "agreeing", "itermax", "entropic")


def link_options(command: _Command) -> _Command:
    """Add ``rule``, ``least``, ``method``, ``form``, ``out`` and ``force`` to a command."""
    for option in reversed(
        (
            click.option(
                "--rule",
                type=click.Choice(_RULES),
                default="argmax",
                show_default=True,
                help="Which weights are links; all but the first two need both directions.",
            ),
            click.option(
                "--least",
                type=Number(float, 0, 1, open_low=True),
                help="Of threshold and agreeing (default 0.3) and entropic (0.1).",
            ),
            click.option(
                "--method",
                type=click.Choice(METHODS),
                default="grow-diag-final",
                show_default=True,
                help="How argmax and threshold combine two directions.",
            ),
            click.option(
                "--format",
                "form",
                type=click.Choice(["pharaoh", "naacl"]),
                default="pharaoh",
                show_default=True,
                help="Pharaoh's counts from 0, NAACL's from 1.",
            ),
            click.option("-o", "--out", type=Where(no_dash=True), help="File of links."),
            click.option("--force", is_flag=True, help="Write over files that exist."),
        )
    ):
        command = option(command)
    return command


def require_directions(rule: str, least: float | None, *, both: bool, help: str) -> None:  # noqa: A002 - the row's printed name
    """Refuse a rule that the directions at hand, or the other options, do not go with.

    Raises
    ------
    InputError
        It is so; `help` says how to give the other direction.
    """
    if rule not in ("argmax", "threshold") and not both:
        raise InputError(
            explain(
                f"--rule {rule} compares two directions",
                expected="argmax or threshold, or a second direction",
                got="one direction",
                help=help,
            )
        )
    if least is not None and rule in ("argmax", "mutual", "itermax"):
        raise InputError(
            explain(
                f"--least does not go with --rule {rule}",
                expected="--rule threshold, agreeing or entropic",
                got=f"--least {least:g}",
            )
        )


def links_of(
    alignment: "Alignment",
    backward: "Alignment | None",
    where: str,
    *,
    rule: Any,
    least: float | None,
    method: Any,
) -> "Links":
    """Return the links that the options ask for; an error names the place.

    Raises
    ------
    InputError, ShapeError
        As :func:`regard.alignment.rules.links_by` does.
    """
    from regard.alignment.rules import links_by
    from regard.errors import RegardError

    try:
        return links_by(rule, alignment, backward, least=least, method=method)
    except RegardError as error:
        raise type(error)(f"{where}: {error}") from error


def write_or_say(out: str | None, links: "Sequence[Links]", form: Any) -> None:
    """Write links to a file, or to stdout where there is none."""
    from regard.alignment.link_files import link_lines, write_links

    if out is not None:
        write_links(out, links, format=form)
        return
    for line in link_lines(links, format=form):
        say(line)
