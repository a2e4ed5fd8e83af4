"""Which rules are wanted: codes, names and groups, some of them left out."""

from collections.abc import Iterable
from dataclasses import dataclass

from regard.check.rules.base import GROUPS, Rule
from regard.check.rules.catalog import every, find

__all__ = ["Selection", "chosen"]


@dataclass(frozen=True)
class Selection:
    """Rules to report: the selected ones less the ignored ones.

    Make one with :meth:`of`. The rules of the group ``run`` are never left out: they say that
    nothing was checked, which is no matter of taste.
    """

    codes: frozenset[str]

    @classmethod
    def of(cls, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> "Selection":
        """Read what a user wrote.

        Parameters
        ----------
        select, ignore : iterable of str
            Each a code (``RG301``), a name (``softmax-axis``), a group (``RG3``, ``softmax``)
            or ``RG`` for all; commas separate several. No `select` is all rules.

        Raises
        ------
        InputError
            One of them is unknown; the text names the nearest.

        Examples
        --------
        >>> chosen = Selection.of(["RG3", "padding-leak"], ["softmax-twice"])
        >>> [code for code in ("RG202", "RG301", "RG302", "RG401") if code in chosen]
        ['RG202', 'RG301']
        """
        wanted = _codes(select) or {rule.code for rule in every()}
        run = {rule.code for rule in every() if rule.group == "run"}
        return cls(frozenset((wanted - _codes(ignore)) | run))

    def __contains__(self, code: object) -> bool:
        return code in self.codes


def chosen(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules that codes, names and groups stand for; all rules for none.

    Raises
    ------
    InputError
        One of them is unknown; the text names the nearest.
    """
    codes = _codes(texts) or {rule.code for rule in every()}
    return tuple(rule for rule in every() if rule.code in codes)


def _codes(texts: Iterable[str]) -> set[str]:
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    return {code for part in parts for code in _read(part)}


def _read(text: str) -> set[str]:
    prefixes = {name: prefix for prefix, name in GROUPS.items()}
    prefix = prefixes.get(text.lower(), text.upper())
    if prefix == "RG" or prefix in GROUPS:
        return {rule.code for rule in every() if rule.code.startswith(prefix)}
    return {find(text).code}
