"""``regard explain RG301``: what a rule means, its smallest example, and how to mend it."""

import json

import click

from regard.cli.example import ExampleCommand
from regard.cli.streams import say

__all__ = ["explain_rules"]

_EXAMPLE = """
regard explain RG301
regard explain padding-leak --format json
"""


@click.command("explain", cls=ExampleCommand, example=_EXAMPLE)
@click.argument("names", metavar="RULE...", nargs=-1, required=True)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def explain_rules(*, names: tuple[str, ...], form: str) -> int:
    """Explain a finding's RULE, given by its code or its name.

    The answer has the relation that right code keeps, the smallest code that breaks it and what
    that prints, why nobody notices, the fix, and when it is not a bug.
    """
    from regard.check.rules import find
    from regard.check.rules.page import as_mapping, text

    rules = [find(name) for name in names]
    if form == "json":
        told = [as_mapping(rule) for rule in rules]
        say(json.dumps(told[0] if len(told) == 1 else told, indent=2, ensure_ascii=False))
    else:
        say("\n\n\n".join(text(rule) for rule in rules))
    return 0
