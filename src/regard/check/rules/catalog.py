"""Every rule there is, and how to find one."""

import difflib
import functools
import importlib
import re

from regard.check.rules.base import GROUPS, Rule
from regard.errors import InputError, explain

__all__ = ["every", "find"]


@functools.cache
def every() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    modules = (
        importlib.import_module(f"regard.check.rules.{name}") for name in GROUPS.values()
    )
    return tuple(sorted((rule for m in modules for rule in m.RULES), key=lambda r: r.code))


def find(name: str) -> Rule:
    """Return the rule of a code or a name; capitals and underscores do not matter.

    >>> find("rg301").name, find("softmax-axis").code
    ('softmax-axis', 'RG301')

    Raises
    ------
    InputError
        There is none; the text names the nearest.
    """
    wanted = name.strip().lower().replace("_", "-")
    for rule in every():
        if wanted in (rule.code.lower(), rule.name):
            return rule
    raise InputError(
        explain(
            f"no rule is called {name!r}",
            expected="a rule's code or name, as RG301 or softmax-axis",
            got=repr(name),
            help=nearest(name) or "`regard rules` lists them all",
        )
    )


def nearest(name: str) -> str:
    """Return the rules that may have been meant, as a question; empty if none is near.

    >>> nearest("softmax-axes")
    'did you mean softmax-axis (RG301) or softmax-twice (RG302)?'
    >>> nearest("RG399")
    'did you mean RG301 (softmax-axis), RG302 (softmax-twice), RG303 (not-normalised)?'
    """
    wanted = name.strip().lower().replace("_", "-")
    if re.match(r"rg\d", wanted):
        # All codes look alike, so the group says more than the digits that differ.
        group = [f"{r.code} ({r.name})" for r in every() if r.code[:3].lower() == wanted[:3]]
        return f"did you mean {', '.join(group[:3])}?" if group else ""
    known = {rule.name: f"{rule.name} ({rule.code})" for rule in every()}
    hits = [known[hit] for hit in difflib.get_close_matches(wanted, sorted(known), 3, 0.7)]
    return f"did you mean {' or '.join(hits)}?" if hits else ""
