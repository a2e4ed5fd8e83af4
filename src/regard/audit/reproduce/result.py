"""What a reproduction found with one seed, against the bands that count as reproduced."""

import math
from dataclasses import dataclass

from regard.audit.interval import Estimate
from regard.audit.verdict import Audit

__all__ = ["Check", "Reproduction", "gain_of_top"]


@dataclass(frozen=True)
class Check:
    """One figure.

    Attributes
    ----------
    name : str
    found : float
    low, high : float
        The band; infinite where it is open.
    published : str
        The published value, or a word where there is none.
    note : str
    """

    name: str
    found: float
    low: float = -math.inf
    high: float = math.inf
    published: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the figure lies in its band."""
        return bool(self.low <= self.found <= self.high)  # NumPy's is no JSON value


@dataclass(frozen=True)
class Reproduction:
    """All figures of one target with one seed.

    Attributes
    ----------
    target : str
    seed : int
    checks : tuple of Check
        Their names are unique.
    statements : tuple of str
        What did not reproduce or could not be compared, in words.
    seconds : float
        Of processor time, that of training kept models included; NaN where it is not known.
    """

    target: str
    seed: int
    checks: tuple[Check, ...]
    statements: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every figure lies in its band."""
        return all(check.ok for check in self.checks)


def gain_of_top(found: Audit) -> Estimate:
    """Return F of the most attended token alone, left out."""
    for table in found.tables:
        for row in table.rows:
            if table.test == "erase_input" and row.name.startswith("delete, F of the top"):
                return row.estimate
    return Estimate(math.nan, math.nan, math.nan, 0)  # of an audit that was stopped
