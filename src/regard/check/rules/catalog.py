"""Every rule there is, and how to find one."""

import difflib
import functools
import importlib

from regard.check.rules.base import GROUPS, Rule
from regard.errors import InputError, explain

__all__ = ["every", "find"]


@functools.cache
def every() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    modules = (importlib.import_module(f"regard.check.rules.{name}") for name in GROUPS.values())
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
    """Return ``did you mean RG301 (softmax-axis)?``, or an empty text if nothing is near.

    >>> nearest("softmax-axes")
    'did you mean softmax-axis (RG301) or softmax-twice (RG302)?'
    >>> nearest("RG399")
    'did you mean RG301 (softmax-axis), RG302 (softmax-twice) or RG303 (not-normalised)?'
    """
    wanted = name.strip().lower().replace("_", "-")
    by_code = {rule.code.lower(): f"{rule.code} ({rule.name})" for rule in every()}
    by_name = {rule.name: f"{rule.name} ({rule.code})" for rule in every()}
    known = by_code if wanted.startswith("rg") and wanted[2:3].isdigit() else by_name
    hits = difflib.get_close_matches(wanted, sorted(known), n=3, cutoff=0.6)
    if known is by_code:  # all codes look alike: of the same likeness, the first
        hits = sorted(hits) if hits else []
        same = [code for code in sorted(known) if code[:3] == wanted[:3]]
        hits = hits if len(hits) < 3 else same[:3] or hits
    said = [known[hit] for hit in hits]
    if not said:
        return ""
    *first, last = said
    return f"did you mean {', '.join(first)}{' or ' if first else ''}{last}?"
