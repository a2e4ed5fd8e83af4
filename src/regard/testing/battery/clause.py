"""What all clauses share: how one is stated, asked and answered."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from regard.testing.rehearsal import rehearse
from regard.testing.subject import Subject
from regard.testing.tolerances import near
from regard.testing.verdict import Counterexample, Verdict

__all__ = ["Broken", "Clause", "NotApplicable", "close", "require", "same", "zero"]

Check = Callable[[Subject, np.random.Generator], str]
"""Asks a subject; returns a note, "" for none; raises Broken or NotApplicable."""


class Broken(Exception):  # noqa: N818 - ends a check, never leaves this package
    """A counterexample was found."""

    def __init__(self, where: str, got: str, expected: str) -> None:
        super().__init__(where)
        self.counterexample = Counterexample(where, got, expected)


class NotApplicable(Exception):  # noqa: N818 - ends a check, never leaves this package
    """The clause says nothing about this subject; the text is the reason."""


@dataclass(frozen=True)
class Clause:
    """One clause of the contract: a promise, and the way to hold an attention to it."""

    number: int
    """1 to 11."""

    title: str
    """A few words, as a report prints them."""

    ask: Check

    @property
    def statement(self) -> str:
        """The promise in full."""
        return inspect.getdoc(self.ask) or ""

    def __call__(self, subject: Subject, *, seed: int = 0) -> Verdict:
        """Return the verdict on a subject.

        Raises
        ------
        ConventionError, ShapeError
            The subject cannot be called as it is described, or returns other shapes.
        """
        rehearse(subject)
        rng = np.random.default_rng([seed, self.number])
        try:
            note = self.ask(subject, rng)
        except NotApplicable as reason:
            return Verdict(self.number, self.title, "not applicable", str(reason))
        except Broken as broken:
            found = broken.counterexample
        except Exception as error:  # whatever a subject raises is a finding
            lines = str(error).strip().splitlines() or [""]
            got = f"{type(error).__name__}: {lines[0]}"
            found = Counterexample("the call itself", got, "a result")
        else:
            return Verdict(self.number, self.title, "held", note)
        return Verdict(self.number, self.title, "broken", counterexample=found)

    def check(self, subject: Subject, *, seed: int = 0) -> Verdict:
        """Return the verdict, which is held or not applicable.

        Raises
        ------
        ContractBroken
            The clause does not hold.
        """
        return self(subject, seed=seed).raise_if_broken()

    def __str__(self) -> str:
        return f"{self.number:02}-{self.title.replace(' ', '-')}"


def require(good: bool, where: str, got: str, expected: str) -> None:
    """Break the clause unless `good`."""
    if not good:
        raise Broken(where, got, expected)


def close(
    what: str, got: np.ndarray, expected: np.ndarray, tolerance: float, when: str
) -> None:
    """Require equal numbers within a tolerance of the table."""
    _require_shape(what, got, expected, when)
    allowed = near(expected, tolerance)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(got - expected)
    far = ~(distance <= allowed)  # NaN is far from everything
    if far.any():
        at = _worst(np.where(far, np.nan_to_num(distance, nan=np.inf), -1.0))
        raise Broken(
            f"{what}{_spot(at)}, {when}",
            _number(got[at]),
            f"{_number(expected[at])} within {allowed:.1e}",
        )


def same(what: str, got: np.ndarray, expected: np.ndarray, when: str) -> None:
    """Require equal numbers to the last bit."""
    _require_shape(what, got, expected, when)
    differ = ~(got == expected)
    if differ.any():
        at = _worst(differ)
        raise Broken(
            f"{what}{_spot(at)}, {when}", _number(got[at]), f"{_number(expected[at])} exactly"
        )


def zero(what: str, got: np.ndarray, where: np.ndarray, when: str) -> None:
    """Require exact zeros at `where`, a mask that broadcasts to the leading axes."""
    spread = where.reshape(where.shape + (1,) * (got.ndim - where.ndim))
    found = np.broadcast_to(spread, got.shape) & ~(got == 0)
    if found.any():
        at = _worst(found)
        raise Broken(f"{what}{_spot(at)}, {when}", _number(got[at]), "0 exactly")


def _require_shape(what: str, got: np.ndarray, expected: np.ndarray, when: str) -> None:
    if got.shape != expected.shape:
        raise Broken(f"{what}, {when}", f"shape {got.shape}", f"shape {expected.shape}")


def _worst(sizes: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(sizes)), sizes.shape))


def _spot(at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}]" if at else ""


def _number(value: float) -> str:
    return (
        f"{float(value):.6g}"
        if float(value) == 0 or not np.isfinite(value)
        else repr(float(value))
    )
