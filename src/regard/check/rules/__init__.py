"""The rules of `regard check`: one module a group, one record a rule."""

from regard.check.rules.base import GROUPS, Example, Rule
from regard.check.rules.catalog import every, find
from regard.check.rules.selection import Selection, chosen

__all__ = ["GROUPS", "Example", "Rule", "Selection", "chosen", "every", "find"]
