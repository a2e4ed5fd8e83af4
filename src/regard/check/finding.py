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
"""A broken definition, a doubtful practice, or a convention."""


@dataclass(frozen=True)
class Location:
    """A span of the user's file.

    Attributes
    ----------
    path : str
        Of the file, as it was named.
    line, column : int
        Where it begins.
    end_line, end_column : int
        Where it ends; 0 where that is not known.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0


@dataclass(frozen=True)
class Tensor:
    """A tensor by the name it has in the user's code, its named axes and its shape.

    Attributes
    ----------
    name : str
        A variable, or the operation that made it.
    axes : tuple of str
        One name an axis.
    shape : tuple of int
        One size an axis, in the run that failed.
    expected : tuple of str
        The right axes, where they are not these; else empty.
    """

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    expected: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A tensor on the way to the finding: where it was made and what its axes are.

    Attributes
    ----------
    line : int
        Of the user's file; 0 for an argument.
    name : str
        As of :class:`Tensor`.
    axes : tuple of str
        One name an axis.
    """

    line: int
    name: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Measurement:
    """One measured row: ``sum over T_enc   0.740 to 5.764   must be 1``.

    Attributes
    ----------
    what : str
        What was measured.
    value : str
        What came out, as it is shown.
    required : str
        What it must be; "" where the row only informs.
    """

    what: str
    value: str
    required: str = ""


@dataclass(frozen=True)
class Evidence:
    """The counterexample: which relation fails, by how much, at which sizes and seed.

    Attributes
    ----------
    relation : str
        Its name.
    equation : str
        What right code keeps.
    measured : tuple of Measurement
        By how much it fails.
    sizes : mapping of str to int
        Of every axis, in the run that failed.
    seed : int
        Of the inputs.
    relations_failed, relations_run : int
        Of all relations of this target.
    quote : str
        The library's own words, for a crash.
    """

    relation: str
    equation: str
    measured: tuple[Measurement, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    relations_failed: int = 0
    relations_run: int = 0
    quote: str = ""


@dataclass(frozen=True)
class Edit:
    """Replace a span of the file by a text.

    Attributes
    ----------
    line, column : int
        Where the span begins.
    end_line, end_column : int
        Where it ends; the character there stays.
    text : str
        What comes in its place.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Proof:
    """What re-running the edited file showed: relations that hold before and after.

    Attributes
    ----------
    before, after : int
        Relations that hold without and with the edit.
    of : int
        Relations that ran.
    sizes : int
        Sets of sizes that they ran at.
    broadcasts : int
        Axes that were stretched unasked.
    """

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

    Attributes
    ----------
    status : {"proven", "proven-if", "sketch"}
    edits : tuple of Edit
        From the end of the file to its beginning; none for a sketch.
    description : str
        What it does, where the edit does not show it.
    condition : str
        What must be true for a ``proven-if``.
    proof : Proof or None
        None for a sketch.
    """

    status: Literal["proven", "proven-if", "sketch"]
    edits: tuple[Edit, ...]
    description: str = ""
    condition: str = ""
    proof: Proof | None = None


@dataclass(frozen=True)
class Finding:
    """One cause: the rule, what is wrong in named axes, where, the evidence, the fix.

    Attributes
    ----------
    code, name : str
        The rule's; ``regard explain`` takes either.
    level : {"error", "warning", "note"}
        How bad it is.
    target : str
        What was checked, as ``file.py:name``.
    message : str
        What is wrong, in named axes; never the fix.
    location : Location
        The line that is blamed.
    evidence : Evidence
        The counterexample.
    tensor : Tensor or None
        The one at fault, where there is one.
    trace : tuple of Step
        Tensors on the way to it.
    hidden : str
        What let the bug run silently.
    also : str
        What else fails from this line.
    depends_on : str
        The guess that this finding stands on; "" where it was declared.
    fixes : tuple of Fix
        Proven ones first.
    fingerprint : str
        The same while the code around it changes.
    suppressed : str
        The reason in the user's ``# regard: ignore[...]`` comment; "" without one.
    """

    code: str
    name: str
    level: Level
    target: str
    message: str
    location: Location
    evidence: Evidence
    tensor: Tensor | None = None
    trace: tuple[Step, ...] = ()
    hidden: str = ""
    also: str = ""
    depends_on: str = ""
    fixes: tuple[Fix, ...] = ()
    fingerprint: str = ""
    suppressed: str = ""

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

    Attributes
    ----------
    target, path, signature, source : str
        What was checked: as it was named, its file, its call, its text.
    findings : tuple of Finding
        The worst first.
    checked, not_checked, assumptions : tuple of str
    sizes : tuple of mappings
        Of every axis, one a run.
    seed : int
        Of the inputs.
    seconds : float
        That it took; no machine form has it.
    versions : mapping of str
        Of regard, Python and the libraries that ran.
    tensors : tuple of Step
        In the order they were made, for pages that draw the path.
    weights_before, weights_after : tuple of rows
        Of one example (rows: queries), before and after the first proven fix.
    relations : tuple of mappings
        Each relation's name, and whether it held before and after.
    test : str
        The regression test, when one was written.
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
    tensors: tuple[Step, ...] = ()
    weights_before: tuple[tuple[float, ...], ...] = ()
    weights_after: tuple[tuple[float, ...], ...] = ()
    relations: tuple[Mapping[str, str], ...] = ()
    test: str = ""

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
