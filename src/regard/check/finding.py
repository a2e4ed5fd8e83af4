"""What a check says: frozen records that every renderer reads and no renderer changes.

A :class:`Report` is the whole answer about one target. :meth:`Report.as_json` is the machine
form; ``schema.json`` beside this module describes it. Lines and columns start at 1, columns
count characters, and a span ends before ``end_column``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = [
    "Edit",
    "Evidence",
    "Finding",
    "Fix",
    "Level",
    "Location",
    "Measurement",
    "Proof",
    "Report",
    "Step",
    "Tensor",
]

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Location:
    """A span of the user's file."""

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0


@dataclass(frozen=True)
class Tensor:
    """A tensor by the name it has in the user's code, its named axes and its shape."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    expected: tuple[str, ...] = ()  # the right axes, where they are not these


@dataclass(frozen=True)
class Step:
    """A tensor on the way to the finding: where it was made and what its axes are."""

    line: int
    name: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Measurement:
    """One measured row: ``sum over T_enc   0.740 to 5.764   must be 1``."""

    what: str
    value: str
    required: str = ""


@dataclass(frozen=True)
class Evidence:
    """The counterexample: which relation fails, by how much, at which sizes and seed."""

    relation: str
    equation: str
    measured: tuple[Measurement, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    relations_failed: int = 0
    relations_run: int = 0
    quote: str = ""  # the library's own words, for a crash


@dataclass(frozen=True)
class Edit:
    """Replace a span of the file by a text."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Proof:
    """What re-running the edited file showed: relations that hold before and after."""

    before: int
    after: int
    of: int
    sizes: int
    broadcasts: int = 0


@dataclass(frozen=True)
class Fix:
    """A way to mend the cause.

    ``proven``: the edited file was run again, every relation holds and no other candidate
    that behaves differently passed as well. ``proven-if``: it holds under ``condition``,
    which only the author can confirm. ``sketch``: not run; never applied.
    """

    status: Literal["proven", "proven-if", "sketch"]
    edits: tuple[Edit, ...]
    description: str = ""
    condition: str = ""
    proof: Proof | None = None


@dataclass(frozen=True)
class Finding:
    """One cause: the rule, what is wrong in named axes, where, the evidence, the fix."""

    code: str
    name: str
    level: Level
    target: str
    message: str
    location: Location
    evidence: Evidence
    tensor: Tensor | None = None
    trace: tuple[Step, ...] = ()
    hidden: str = ""  # what let the bug run silently
    also: str = ""  # what else fails from this line
    depends_on: str = ""  # the guess that this finding stands on; empty when declared
    fixes: tuple[Fix, ...] = ()
    fingerprint: str = ""
    suppressed: str = ""  # the reason in the user's `# regard: ignore[...]` comment

    @property
    def fix(self) -> Fix | None:
        """The first fix: the proven one if there is one."""
        return self.fixes[0] if self.fixes else None


@dataclass(frozen=True)
class Report:
    """The answer about one target.

    ``checked`` names the relations that ran, ``not_checked`` says what did not and why,
    ``assumptions`` what was guessed, each with the flag that would change it. ``source`` is
    the text that was checked, so that a renderer needs no file.
    """

    target: str
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    signature: str = ""
    sizes: tuple[Mapping[str, int], ...] = ()
    seed: int = 0
    source: str = ""
    path: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    # Tensors in the order they were made, for pages that draw the path.
    tensors: tuple[Step, ...] = ()
    # Weights before and after the first proven fix, one example (rows: queries).
    weights_before: tuple[tuple[float, ...], ...] = ()
    weights_after: tuple[tuple[float, ...], ...] = ()
    relations: tuple[Mapping[str, str], ...] = ()  # name, before, after
    test: str = ""  # the regression test, when one was written

    @property
    def worst(self) -> Level | None:
        """The worst level among the findings that are not suppressed, or None."""
        levels: Sequence[Level] = ("error", "warning", "note")
        here = {f.level for f in self.findings if not f.suppressed}
        return next((level for level in levels if level in here), None)

    def __repr__(self) -> str:
        from regard.check.render import render  # noqa: PLC0415 - records know no renderer

        return render("full", [self]).rstrip("\n")

    def _repr_html_(self) -> str:
        from regard.check.render import render  # noqa: PLC0415

        return render("notebook", [self])

    def as_json(self) -> dict[str, Any]:
        """Return the machine form: plain lists, dicts, texts and numbers."""
        return {
            "target": self.target,
            "path": self.path,
            "findings": [_finding(f) for f in self.findings],
            "checked": list(self.checked),
            "not_checked": list(self.not_checked),
            "assumptions": list(self.assumptions),
            "signature": self.signature,
            "sizes": [dict(s) for s in self.sizes],
            "seed": self.seed,
            "versions": dict(self.versions),
            "relations": [dict(r) for r in self.relations],
        }


def _finding(finding: Finding) -> dict[str, Any]:
    data = asdict(finding)
    fixes = data.pop("fixes")
    data["evidence"]["sizes"] = dict(finding.evidence.sizes)
    data["fix"] = fixes[0] if fixes else None
    data["fixes"] = fixes
    return data
