"""What the evidence permits: frozen records, which are also the JSON schema.

An :class:`Audit` holds everything a report shows. Its JSON is ``dataclasses.asdict`` of it, and
:meth:`Audit.from_dict` reads it back.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from regard.audit.interval import Estimate
from regard.errors import InputError, RegardError, explain

__all__ = [
    "LEVELS",
    "Audit",
    "Claim",
    "ClaimError",
    "Gate",
    "Row",
    "Table",
    "Token",
    "Verdict",
    "WorstInput",
]

Level = Literal["L1", "L2", "L3"]
LEVELS: dict[Level, str] = {
    "L1": "where the model put weight",
    "L2": "removing what it attends to changes the output more than chance",
    "L3": "ranks tokens about as well as the best method we tried",
}
Outcome = Literal["passed", "failed", "undecided", "not tested"]
Granted = Literal["granted", "refused", "undecided"]
SCHEMA = 1


class ClaimError(RegardError, AssertionError):
    """A claim that a test asked for is not granted."""


@dataclass(frozen=True)
class Gate:
    """One rule that decides, and how it came out.

    Attributes
    ----------
    name : str
        G0 to G4, with the part after a dot: ``G2.top1.delete``.
    rule : str
        What is asked, with its numbers.
    outcome : {"passed", "failed", "undecided", "not tested"}
    said : str
        One sentence with the figures found.
    estimate : Estimate or None
        The figure that was compared.
    threshold : float or None
    more : int or None
        Where undecided: further inputs that would decide it, if the figure stays what it is;
        None if no affordable number would.
    """

    name: str
    rule: str
    outcome: Outcome
    said: str
    estimate: Estimate | None = None
    threshold: float | None = None
    more: int | None = None


@dataclass(frozen=True)
class Claim:
    """One level and whether it may be claimed."""

    level: Level
    text: str
    outcome: Granted
    gates: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Which claims the evidence permits.

    Attributes
    ----------
    status : {"supported", "refused", "undecided", "stopped"}
        "supported" if L2 or more is granted; "stopped" where G0 or G1 failed, so that nothing
        was measured that could be believed.
    headline : str
        As ``SUPPORTED AT L2, NOT L3``.
    text : str
        The whole verdict in words.
    claims : tuple of Claim
    gates : tuple of Gate
    downgrades : tuple of str
        What weakens the reading without failing it.
    not_tested : tuple of (str, str)
        Tests that did not run, and why.
    """

    status: Literal["supported", "refused", "undecided", "stopped"]
    headline: str
    text: str
    claims: tuple[Claim, ...]
    gates: tuple[Gate, ...]
    downgrades: tuple[str, ...] = ()
    not_tested: tuple[tuple[str, str], ...] = ()

    def outcome(self, level: str) -> Granted:
        """Return how a level came out."""
        return next(claim.outcome for claim in self.claims if claim.level == level)


@dataclass(frozen=True)
class Row:
    """One figure of a test.

    Attributes
    ----------
    name : str
    estimate : Estimate
    random, best : float or None
        The same figure of a random ranking, and of the best method tried.
    published : str or None
        A published value to compare with, and whose.
    """

    name: str
    estimate: Estimate
    random: float | None = None
    best: float | None = None
    published: str | None = None


@dataclass(frozen=True)
class Table:
    """What one test found.

    Attributes
    ----------
    test : str
    title : str
    shows, hides : str
        What it can and what it cannot show, a sentence each.
    rows : tuple of Row
    gates : bool
        Whether a gate reads it; all others are descriptive.
    """

    test: str
    title: str
    shows: str
    hides: str
    rows: tuple[Row, ...]
    gates: bool = False


@dataclass(frozen=True)
class Token:
    """A token of an input in the list of the worst."""

    text: str
    weight: float
    effect: float | None
    """Drop of the predicted class's probability without it; None where it was not left out."""
    gold: bool = False


@dataclass(frozen=True)
class WorstInput:
    """An input whose weights say least of what moves the answer."""

    place: int
    """Its line among the inputs as given, from 0."""
    tokens: tuple[Token, ...]
    before: tuple[str, ...] | None
    predicted: str
    probability: float
    top_weight_effect: float
    largest_effect: float


@dataclass(frozen=True)
class Audit:
    """Everything that an audit found; the report and the JSON show the same numbers.

    Attributes
    ----------
    subject : str
        The case's own name.
    n : int
        Inputs that were looked at.
    left_out : tuple of (str, int)
        Why inputs were left out, and how many.
    seed : int
    version : str
        Of regard.
    verdict : Verdict
    tables : tuple of Table
        A table a test.
    worst : tuple of WorstInput
        Where the weights say least, the worst first; ten at most.
    command : str
        What repeats it, or "".
    seconds : float
        That it took, over all its sittings.
    schema : int
        Of the JSON.
    notes : tuple of str
        What else a reader should know.
    """

    subject: str
    n: int
    left_out: tuple[tuple[str, int], ...]
    seed: int
    data: str
    """A short name of the inputs, which changes with them."""
    version: str
    verdict: Verdict
    tables: tuple[Table, ...]
    worst: tuple[WorstInput, ...]
    command: str = ""
    seconds: float = 0.0
    asked: int = 0
    """How many inputs, altered ones included, the model answered."""
    schema: int = SCHEMA
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; a figure that does not exist is null."""
        form = _plain(asdict(self))
        assert isinstance(form, dict)
        return form

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> "Audit":
        """Return the audit that :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            It is no such object.
        """
        try:
            return _audit(form)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                explain(
                    "Audit.from_dict(): this is no audit",
                    expected="the JSON that `regard audit --json` writes",
                    got=f"{type(error).__name__}: {error}",
                )
            ) from error

    def assert_claim(self, level: str) -> None:
        """Pass where a claim is granted: for a test suite.

        Raises
        ------
        ClaimError
            It is refused or undecided.
        """
        if level not in LEVELS:
            raise InputError(
                explain(
                    "assert_claim(): `level` is unknown",
                    expected=" or ".join(LEVELS),
                    got=repr(level),
                )
            )
        outcome = self.verdict.outcome(level)
        if outcome != "granted":
            raise ClaimError(
                explain(
                    f"{level} ({LEVELS[level]}) is {outcome}",
                    expected=f"{level} granted",
                    got=self.verdict.headline,
                    because=self.verdict.text,
                )
            )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _audit(form: Mapping[str, Any]) -> Audit:
    verdict = form["verdict"]
    return Audit(
        **{
            **form,
            "left_out": _tuples(form["left_out"]),
            "notes": tuple(form["notes"]),
            "verdict": Verdict(
                **{
                    **verdict,
                    "claims": tuple(
                        Claim(**{**claim, "gates": tuple(claim["gates"])})
                        for claim in verdict["claims"]
                    ),
                    "gates": tuple(
                        Gate(**{**gate, "estimate": _estimate(gate["estimate"])})
                        for gate in verdict["gates"]
                    ),
                    "downgrades": tuple(verdict["downgrades"]),
                    "not_tested": _tuples(verdict["not_tested"]),
                }
            ),
            "tables": tuple(
                Table(
                    **{
                        **table,
                        "rows": tuple(
                            Row(**{**row, "estimate": _estimate(row["estimate"])})
                            for row in table["rows"]
                        ),
                    }
                )
                for table in form["tables"]
            ),
            "worst": tuple(
                WorstInput(
                    **{
                        **one,
                        "tokens": tuple(Token(**token) for token in one["tokens"]),
                        "before": None if one["before"] is None else tuple(one["before"]),
                    }
                )
                for one in form["worst"]
            ),
        }
    )


def _estimate(form: Mapping[str, Any] | None) -> Any:
    if form is None:
        return None
    value, low, high = (
        math.nan if form[name] is None else float(form[name]) for name in _FIGURES
    )
    return Estimate(value, low, high, int(form["n"]))


_FIGURES = ("value", "low", "high")


def _tuples(rows: Any) -> tuple[Any, ...]:
    return tuple(tuple(row) for row in rows)
