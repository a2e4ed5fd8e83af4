"""What a clause found, and what all clauses found together."""

import dataclasses
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.errors import RegardError

__all__ = ["ContractBroken", "Counterexample", "Report", "Verdict"]

_SIGNS = {"held": "held", "broken": "BROKEN", "not applicable": "n/a"}


class ContractBroken(RegardError, AssertionError):  # noqa: N818 - says what happened
    """A clause does not hold; the text is its counterexample. Test runners see a failure."""


@dataclass(frozen=True)
class Counterexample:
    """One case where a clause does not hold, in numbers."""

    where: str
    """Which call and which row: ``weights[0, 1, :] with 5 real keys``."""

    got: str
    """What came."""

    expected: str
    """What should have come."""

    def __str__(self) -> str:
        return f"{self.where}\n  expected  {self.expected}\n  got       {self.got}"


@dataclass(frozen=True)
class Verdict:
    """What one clause says about one subject."""

    clause: int
    """1 to 11."""

    title: str
    """The clause in a few words."""

    outcome: str
    """``held``, ``broken`` or ``not applicable``."""

    note: str = ""
    """Why it is not applicable, or which part of it could not be asked."""

    counterexample: Counterexample | None = None
    """Of a broken clause."""

    @property
    def evidence(self) -> str:
        """One line: the counterexample, or the note."""
        if self.counterexample is None:
            return self.note
        found = self.counterexample
        return f"{found.where}: {found.got}; expected {found.expected}"

    def raise_if_broken(self) -> "Verdict":
        """Return the verdict itself.

        Raises
        ------
        ContractBroken
            The clause does not hold.
        """
        if self.outcome == "broken":
            raise ContractBroken(
                f"clause {self.clause}, {self.title}, does not hold\n{self.counterexample}"
            )
        return self

    def __str__(self) -> str:
        head = f"{self.clause:>2}  {_SIGNS[self.outcome]:<6}  {self.title}"
        if self.outcome == "broken":
            return (
                head
                + "\n            "
                + str(self.counterexample).replace("\n", "\n" + " " * 12)
            )
        return head + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class Report:
    """The verdicts of all clauses about one subject; ``print`` shows them as text."""

    subject: str
    """What was judged."""

    library: str
    """Of which arrays."""

    seed: int
    """Repeats the report, on the same versions, number by number."""

    verdicts: tuple[Verdict, ...]
    """In the order of the clauses."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """Of regard, NumPy and the subject's library."""

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """The clauses that do not hold."""
        return tuple(each for each in self.verdicts if each.outcome == "broken")

    @property
    def ok(self) -> bool:
        """Whether no clause is broken."""
        return not self.broken

    def raise_if_broken(self) -> "Report":
        """Return the report itself.

        Raises
        ------
        ContractBroken
            A clause does not hold; the text lists all that do not.
        """
        if self.broken:
            raise ContractBroken(str(self))
        return self

    def to_json(self) -> str:
        """Return the whole report as JSON text, keys in a fixed order."""
        content: dict[str, Any] = dataclasses.asdict(self)
        content["ok"] = self.ok
        return json.dumps(content, indent=2, sort_keys=True)

    def __str__(self) -> str:
        counts = {
            outcome: sum(each.outcome == outcome for each in self.verdicts)
            for outcome in _SIGNS
        }
        summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        head = f"{self.subject} ({self.library}, seed {self.seed}): {summary}"
        return "\n".join([head, *map(str, self.verdicts)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{each.clause}</td><td>{html.escape(each.title)}</td>"
            f"<td>{each.outcome}</td><td>{html.escape(each.evidence)}</td></tr>"
            for each in self.verdicts
        )
        return f"<table><caption>{html.escape(self.subject)}</caption>{rows}</table>"
