"""``regard skill``: the procedure for coding assistants, printed or put where they look."""

from pathlib import Path

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import Where
from regard.cli.streams import say
from regard.errors import InputError, explain

__all__ = ["skill"]

_EXAMPLE = """
regard skill --output .claude/skills
regard skill
"""


@click.command("skill", cls=ExampleCommand, example=_EXAMPLE)
@click.option(
    "-o",
    "--output",
    type=Where(),
    metavar="DIR",
    help="Make the folder attention-shapes in DIR.",
)
@click.option("--force", is_flag=True, help="Write over files that differ.")
def skill(*, output: str | None, force: bool) -> int:
    """Print the skill for coding assistants, or copy its folder into DIR.

    The skill tells an assistant how to find and mend bugs of attention with `regard check`:
    what to run, what each answer means, and what never to do.
    """
    from regard.check.skill import NAME, files
    from regard.files import unwritable, write_atomically

    texts = files()
    if output is None:
        say(texts["SKILL.md"].rstrip("\n"))
        return 0
    folder = Path(output) / NAME
    paths = {folder / name: text.encode("utf-8") for name, text in texts.items()}
    for path, data in paths.items():
        if path.exists() and not force and (not path.is_file() or path.read_bytes() != data):
            raise InputError(
                explain(
                    f"skill: `{path}` exists",
                    expected="no such file, or --force",
                    got="another text",
                    help="name another DIR, or --force to write over it",
                )
            )
    for path, data in paths.items():
        if path.is_file() and path.read_bytes() == data:
            click.echo(f"{path} is as it should be", err=True)
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(unwritable(path.parent, error)) from None
        write_atomically(path, data)
        click.echo(f"wrote {path}", err=True)
    return 0
