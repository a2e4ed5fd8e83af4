"""What an inspection finds, and the report of it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["LEVELS", "FileSummary", "Finding", "Place", "Report", "Tally"]

LEVELS = ("error", "warning", "note")
"""A line that cannot be read; what is likely a defect of the data; what is good to know."""


@dataclass(frozen=True)
class Place:
    """Where something was found.

    Parameters
    ----------
    line : int
        Counted from 1.
    text : str
        What stands there, or what is wrong with it.
    other : int, optional
        The line that it repeats or contradicts.
    other_file : str, optional
        Where that line is, if it is in another file.
    """

    line: int
    text: str = ""
    other: int | None = None
    other_file: str | None = None


@dataclass
class Tally:
    """Counts lines and remembers the first few.

    Parameters
    ----------
    limit : int
        How many to remember.
    """

    limit: int
    count: int = 0
    places: list[Place] = field(default_factory=list)

    def add(self, line: int, text: str = "") -> None:
        """Count a line."""
        self.count += 1
        if len(self.places) < self.limit:
            self.places.append(Place(line, text))


@dataclass(frozen=True)
class Finding:
    """One kind of oddity in one file.

    Parameters
    ----------
    code : str
        Names the kind.
    level : {"error", "warning", "note"}
    file : str
    what : str
        What was counted, for people.
    count : int
        Lines, or symbols where the kind is about symbols.
    places : tuple of Place
        The first of them.
    help : str
        What to do.
    """

    code: str
    level: str
    file: str
    what: str
    count: int
    places: tuple[Place, ...]
    help: str


@dataclass(frozen=True)
class FileSummary:
    """What was read of a file.

    Parameters
    ----------
    role : {"train", "dev", "test"}
    file : str
    pairs, sources : int
        Pairs, and different sources.
    refused : int
        Lines that are no pair.
    source_symbols, target_symbols : int
        Different symbols.
    longest_source, longest_target : int
        In symbols.
    """

    role: str
    file: str
    pairs: int
    sources: int
    refused: int
    source_symbols: int
    target_symbols: int
    longest_source: int
    longest_target: int


@dataclass(frozen=True)
class Report:
    """All that an inspection found.

    Parameters
    ----------
    files : tuple of FileSummary
    findings : tuple of Finding
        The gravest first.
    """

    files: tuple[FileSummary, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, files: Iterable[FileSummary], findings: Iterable[Finding]) -> "Report":
        """Put findings into their order: by level, the rest as they come."""
        return cls(tuple(files), tuple(sorted(findings, key=lambda f: LEVELS.index(f.level))))

    @property
    def clean(self) -> bool:
        """Whether there is nothing worse than a note."""
        return all(finding.level == "note" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        findings = [asdict(finding) for finding in self.findings]
        for finding in findings:
            finding["places"] = [
                {name: value for name, value in place.items() if value not in (None, "")}
                for place in finding["places"]
            ]
        return {
            "clean": self.clean,
            "files": [asdict(summary) for summary in self.files],
            "findings": findings,
        }
