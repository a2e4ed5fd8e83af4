"""The figures of one target over its seeds: a table, and JSON.

The JSON is what ``docs/results`` keeps and ``docs/audit_page.py`` makes a page of::

    {"target", "command", "machine", "seeds", "seconds", "passed", "statements",
     "figures": [{"name", "published", "low", "high", "found", "mean", "inside", "notes"}]}

``found``, ``notes`` and ``seconds`` have one entry a seed; an open end of a band, and a figure
that a seed does not have, are null.
"""

import math
from dataclasses import dataclass
from typing import Any

from regard.audit.reproduce.result import Check, Reproduction
from regard.seq2seq.bench.machine import machine

__all__ = ["Report", "band"]


@dataclass(frozen=True)
class Report:
    """Reproductions of one target, a seed each.

    Attributes
    ----------
    runs : tuple of Reproduction
        Not empty.
    command : str
        What made it, or will have when every seed is there.
    """

    runs: tuple[Reproduction, ...]
    command: str = ""

    @property
    def passed(self) -> bool:
        """Whether every figure of every seed lies in its band."""
        return all(run.passed for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "target": self.runs[0].target,
            "command": self.command,
            "machine": machine(),
            "seeds": [run.seed for run in self.runs],
            "seconds": [_finite(run.seconds, 1) for run in self.runs],
            "passed": self.passed,
            "figures": [_figure(checks) for checks in self._by_name().values()],
            "statements": self._statements(),
        }

    def text(self) -> str:
        """Return a table, and how many figures lie in their bands."""
        named = self._by_name()
        width = max(map(len, named))
        seeds = "".join(f"{f'seed {run.seed}':>11}" for run in self.runs)
        lines = [f"{'':<{width}}{seeds}   {'band':<18}  published"]
        for name, checks in named.items():
            first = next(check for check in checks if check is not None)
            cells = "".join(_cell(check) for check in checks)
            note = f"  {first.note}" if first.note else ""
            shown = band(first.low, first.high)
            lines.append(f"{name:<{width}}{cells}   {shown:<18}  {first.published}{note}")
        lines += ["", *self._statements()]
        for run in self.runs:
            inside = sum(check.ok for check in run.checks)
            known = math.isfinite(run.seconds)
            time = f", {run.seconds:.0f} s of processor time" if known else ""
            lines.append(
                f"{run.target}, seed {run.seed}: {inside} of {len(run.checks)} figures in "
                f"their bands{time}"
            )
        return "\n".join(lines)

    def _by_name(self) -> dict[str, list[Check | None]]:
        """Return the checks of each figure, one a seed."""
        each = [{check.name: check for check in run.checks} for run in self.runs]
        names = dict.fromkeys(name for checks in each for name in checks)
        return {name: [checks.get(name) for checks in each] for name in names}

    def _statements(self) -> list[str]:
        return list(dict.fromkeys(said for run in self.runs for said in run.statements))


def band(low: float | None, high: float | None) -> str:
    """Return a band in words; an end that is None or infinite is open.

    >>> band(0.43, 0.53), band(99.0, None), band(None, None)
    ('0.43 to 0.53', 'at least 99', 'shown only')
    """
    below = low is None or math.isinf(low)
    above = high is None or math.isinf(high)
    if below and above:
        return "shown only"
    if below:
        return f"at most {high:g}"
    if above:
        return f"at least {low:g}"
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _figure(checks: list[Check | None]) -> dict[str, Any]:
    there = [check for check in checks if check is not None]
    return {
        "name": there[0].name,
        "published": there[0].published,
        "low": _finite(there[0].low),
        "high": _finite(there[0].high),
        "found": [None if check is None else _finite(check.found) for check in checks],
        "mean": _finite(sum(check.found for check in there) / len(there)),
        "inside": sum(check.ok for check in there),
        "notes": [None if check is None else check.note for check in checks],
    }


def _finite(value: float, places: int = 6) -> float | None:
    return round(value, places) if math.isfinite(value) else None


def _cell(check: Check | None) -> str:
    if check is None:
        return f"{'none':>11}"
    return f"{'' if check.ok else 'NO ':>3}{check.found:8.3f}"
