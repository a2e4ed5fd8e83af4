"""Commands and groups whose help begins with a working example."""

from typing import Any

import click

__all__ = ["ExampleCommand", "write_example"]


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


def write_example(example: str, formatter: click.HelpFormatter) -> None:
    """Write the lines of an example as they are, and a blank line."""
    with formatter.section("Example"):
        for line in example.strip().splitlines():
            formatter.write(f"  {line}\n")
    formatter.write_paragraph()
