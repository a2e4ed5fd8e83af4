"""``regard learn quiz``: questions in the terminal."""

import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import Number, Where
from regard.cli.streams import say
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.learn.quiz.progress import Progress

__all__ = ["quiz"]

_EXAMPLE = """
regard learn quiz                         # ten questions, those first that you do not know
regard learn quiz masks --when after
regard learn quiz --export my-quiz.json   # to go on in the browser
"""
_LETTERS = "abcd"


@click.command("quiz", cls=ExampleCommand, example=_EXAMPLE)
@click.argument("lesson", required=False)
@click.option(
    "--when",
    type=click.Choice(["before", "check", "after"]),
    help="Questions to ask before, in or after the lesson; default: all.",
)
@click.option(
    "--count", type=Number(int, 1, 1000), default=10, show_default=True, help="How many."
)
@click.option("--seed", type=Number(int, 0), help="The same seed asks the same.")
@click.option("--list", "listed", is_flag=True, help="Print questions and answers; ask none.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Of --list.",
)
@click.option(
    "--export", "export", type=Where(), metavar="FILE", help="Write what was answered."
)
@click.option(
    "--import", "read", type=Where(), metavar="FILE", help="Add what another answered."
)
@click.option("--progress", is_flag=True, help="Print how many of each lesson are known.")
@click.option("--forget", is_flag=True, help="Forget all that was answered.")
def quiz(
    *,
    lesson: str | None,
    when: str | None,
    count: int,
    seed: int | None,
    listed: bool,
    form: str,
    export: str | None,
    read: str | None,
    progress: bool,
    forget: bool,
) -> int:
    """Ask questions on the lessons, with the reason of every answer.

    Many are made anew each time, with sizes and numbers of their own, and answered by the
    library itself; they never run out. What you answer is kept on this machine, in
    $XDG_STATE_HOME/regard or ~/.local/state/regard, and nowhere else.
    """
    from regard.learn.catalog import find
    from regard.learn.quiz.bank import names, questions
    from regard.learn.quiz.progress import Progress, place

    home = find(lesson).name if lesson else None
    if listed:
        found = questions(home, when, seed=seed or 0)
        if form == "json":
            say(json.dumps([vars(each) for each in found], indent=2, ensure_ascii=False))
            return 0
        for each in found:
            say(f"{each.name} ({each.lesson}, {each.when})\n  {each.text}")
            say(f"  {each.options[each.right]}\n  {each.because}\n")
        return 0
    if forget:
        Progress().save(place())
        click.echo("nothing is kept any more", err=True)
        return 0
    kept = Progress.load(place())
    if read is not None:
        if not Path(read).exists():
            raise InputError(
                explain(
                    f"quiz: --import {read} is not there",
                    expected="a file that --export or the page wrote",
                    got="no such file",
                )
            )
        kept = kept.joined(Progress.load(Path(read)))
        kept.save(place())
    if export is not None:
        Progress.load(Path(export))  # refuses to write over anything else
        kept.save(Path(export))
    if progress:
        _tell(kept)
    if read is not None or export is not None or progress:
        return 0
    return _ask(names(home, when), kept, count, seed)


def _ask(found: list[str], kept: "Progress", count: int, seed: int | None) -> int:
    from regard.learn.quiz.bank import question
    from regard.learn.quiz.progress import place

    draw = random.Random(seed)
    # Of what is known least first; among alike, by chance.
    order = sorted(found, key=lambda name: (kept.known(name), draw.random()))
    asked = right = 0
    for name in order[:count]:
        each = question(name, draw.randrange(2**32))
        click.echo(f"\n{asked + 1}. {each.text}")
        for letter, option in zip(_LETTERS, each.options, strict=False):
            click.echo(f"   {letter}) {option}")
        chosen = _answer(_LETTERS[: len(each.options)])
        if chosen is None:
            break
        good = _LETTERS[each.right] == chosen
        kept.note(name, good)
        kept.save(place())  # now, so that Ctrl-C loses nothing
        asked += 1
        right += good
        verdict = "Right." if good else f"No: {_LETTERS[each.right]}."
        click.echo(f"   {verdict} {each.because}")
    say(f"\n{right} of {asked} right")
    return 0


def _answer(letters: str) -> str | None:
    """Read a letter from stdin; None at its end, or for q."""
    while True:
        click.echo(f"   [{'/'.join(letters)}, q to stop] ", nl=False)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        given = line.strip().lower()
        if not line or given in ("q", "quit"):
            click.echo()
            return None
        if len(given) == 1 and given in letters:
            return given
        click.echo(f"   {given[:20]!r} is none of {', '.join(letters)}.")


def _tell(kept: "Progress") -> None:
    from regard.learn.catalog import lessons
    from regard.learn.quiz.bank import names

    width = max(len(each.name) for each in lessons())
    for each in lessons():
        found = names(each.name)
        known = sum(map(kept.known, found))
        say(f"{each.number:>2}  {each.name:<{width}}  {known:>2} of {len(found)}")
