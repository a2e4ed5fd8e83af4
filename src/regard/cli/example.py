"""Commands and groups whose help begins with a working example, and what they were given."""

from typing import Any

import click

__all__ = ["ExampleCommand", "RecordedCommand", "as_given", "write_example"]

_GIVEN = "regard.arguments"


class ExampleCommand(click.Command):
    """A click command that prints ``example`` before its usage.

    Parameters
    ----------
    example : str
        Lines for a shell.
    """

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, then what click writes."""
        write_example(self.example, formatter)
        super().format_help(ctx, formatter)


class RecordedCommand(ExampleCommand):
    """Keeps its arguments as they were given, for the line that repeats the run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, then read them as click does."""
        ctx.meta[_GIVEN] = list(args)
        return super().parse_args(ctx, args)


def as_given() -> list[str]:
    """Return the arguments of the :class:`RecordedCommand` that is running."""
    return list(click.get_current_context().meta[_GIVEN])


def write_example(example: str, formatter: click.HelpFormatter) -> None:
    """Write the lines of an example as they are, and a blank line."""
    with formatter.section("Example"):
        for line in example.strip().splitlines():
            formatter.write(f"  {line}\n")
    formatter.write_paragraph()
