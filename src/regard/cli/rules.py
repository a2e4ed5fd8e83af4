"""``regard rules``: the kinds of findings there are."""

import json

import click

from regard.cli.example import ExampleCommand
from regard.cli.streams import say

__all__ = ["list_rules"]

_EXAMPLE = """
regard rules
regard rules mask RG301
"""


@click.command("rules", cls=ExampleCommand, example=_EXAMPLE)
@click.argument("names", metavar="[RULE]...", nargs=-1)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def list_rules(*, names: tuple[str, ...], form: str) -> int:
    """List the rules: their codes, names and levels, and what is wrong.

    RULE is a code, a name, a group (RG2 or mask); without any, all are listed.
    """
    from regard.check.rules import GROUPS, chosen
    from regard.check.rules.page import as_mapping

    listed = chosen(names)
    if form == "json":
        say(json.dumps([as_mapping(rule) for rule in listed], indent=2, ensure_ascii=False))
        return 0
    wide = max(len(rule.name) for rule in listed)
    for prefix, group in GROUPS.items():
        rules = [rule for rule in listed if rule.code.startswith(prefix)]
        if rules:
            say(f"{prefix} {group}")
        for rule in rules:
            say(f"  {rule.code}  {rule.name:<{wide}}  {rule.level:<7}  {rule.title}")
    return 0
