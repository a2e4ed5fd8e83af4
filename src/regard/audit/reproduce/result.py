"""What a reproduction found, against the bands in which it counts as reproduced."""

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Check", "Reproduction"]


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
        return self.low <= self.found <= self.high


@dataclass(frozen=True)
class Reproduction:
    """All figures of one target.

    Attributes
    ----------
    target : str
    seed : int
    checks : tuple of Check
    statements : tuple of str
        What did not reproduce or could not be compared, in words.
    seconds : float
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

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; an open end of a band is null."""
        checks = [
            {
                **{
                    name: None
                    if isinstance(value, float) and not math.isfinite(value)
                    else value
                    for name, value in asdict(check).items()
                },
                "ok": check.ok,
            }
            for check in self.checks
        ]
        return {
            "target": self.target,
            "seed": self.seed,
            "passed": self.passed,
            "checks": checks,
            "statements": list(self.statements),
            "seconds": round(self.seconds, 1),
        }

    def text(self) -> str:
        """Return a table."""
        width = max(len(check.name) for check in self.checks)
        lines = [f"{'':<{width}}      found  band                published"]
        for check in self.checks:
            mark = "  ok" if check.ok else "  NO"
            lines.append(
                f"{check.name:<{width}}{mark} {check.found:8.3f}  {_band(check):<18}  "
                f"{check.published}{'  ' + check.note if check.note else ''}"
            )
        lines += ["", *self.statements]
        inside = sum(check.ok for check in self.checks)
        lines.append(
            f"{self.target}, seed {self.seed}: {inside} of {len(self.checks)} figures in their "
            f"bands, {self.seconds:.0f} s"
        )
        return "\n".join(lines)


def _band(check: Check) -> str:
    if math.isinf(check.low) and math.isinf(check.high):
        return "shown only"
    if math.isinf(check.low):
        return f"at most {check.high:g}"
    if math.isinf(check.high):
        return f"at least {check.low:g}"
    return f"{check.low:.3g} to {check.high:.3g}"
