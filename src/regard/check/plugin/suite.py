"""One target as a suite of tests, one a rule; the check itself runs once, when first needed."""

import atexit
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.check.declared import validated
from regard.check.failure import could_not_check
from regard.check.finding import Finding, Level, Report
from regard.check.process import WorkerProcess
from regard.check.rules import Selection, every
from regard.check.run import settle
from regard.check.settings import Limits
from regard.check.target import Target, find_targets, read_source
from regard.errors import ConventionError, InputError, explain

__all__ = ["RuleTest", "Suite"]

_LEVELS: tuple[Level, ...] = ("error", "warning", "note")
_workers: dict[Limits, WorkerProcess] = {}


@dataclass(eq=False)
class Suite:
    """A target, what is declared of it, and which findings count.

    Parameters
    ----------
    target : Target
    contract : mapping, optional
        What is declared, in the contract's form.
    flags : mapping, optional
        Single statements, as on the command line.
    selection : Selection
        Rules that are tested.
    fail_on : "error" | "warning" | "note"
        The mildest finding that fails a test; milder ones are printed.
    seed : int
    repair : bool
        Whether a failure shows a proven fix, which takes longer.
    limits : Limits
        What the check may take.
    """

    target: Target
    contract: Mapping[str, Any] | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection.of)
    fail_on: Level = "error"
    seed: int = 0
    repair: bool = True
    limits: Limits = field(default_factory=Limits)
    _report: Report | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(
        cls,
        target: Any,
        *,
        contract: Mapping[str, Any] | None = None,
        axes: Mapping[str, str] | None = None,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        statements: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> "Suite":
        """Make the suite of a function, a class, a module object, or ``"file.py:name"``.

        Raises
        ------
        InputError
            The target or its file is not to be found, or something declared is unknown.
        ConventionError
            A contract and single statements are both given.
        """
        flags = dict(statements or {})
        if axes:
            flags["inputs"] = dict(axes)
        if contract is not None and flags:
            raise ConventionError(
                explain(
                    "checks(): both a contract and single statements",
                    expected="`contract`, or statements such as score='additive'",
                    got=", ".join(["contract", *flags]),
                )
            )
        if contract is not None:
            contract = validated(contract, "the contract")
        if flags.get("mask") not in (None, "keep", "drop"):
            said = "checks(): `mask` is no polarity"
            raise InputError(
                explain(said, expected="'keep' or 'drop'", got=repr(flags["mask"]))
            )
        validated({k: v for k, v in flags.items() if k not in ("mask", "roles")}, "checks()")
        fail_on = rest.get("fail_on", "error")
        if fail_on not in _LEVELS:
            said = "checks(): `fail_on` is no level"
            raise InputError(explain(said, expected=", ".join(_LEVELS), got=repr(fail_on)))
        selection = Selection.of(select, ignore)
        return cls(_target(target), contract, flags, selection, **rest)

    @property
    def tests(self) -> tuple["RuleTest", ...]:
        """One test a selected rule, after one that fails if nothing could be checked."""
        rules = [
            rule for rule in every() if rule.group != "run" and rule.code in self.selection
        ]
        return (
            RuleTest(self, "RG9", "could-be-checked"),
            *(RuleTest(self, rule.code, rule.name) for rule in rules),
        )

    @property
    def report(self) -> Report:
        """The report; the check runs in a process of its own when this is first asked for."""
        if self._report is None:
            worker = _workers.setdefault(self.limits, WorkerProcess(self.limits))
            options = {
                "seed": self.seed,
                "repair": self.repair,
                "flags": dict(self.flags) or None,
            }
            report = worker.check(self.target, self.contract, options)
            self._report = settle(report, self.selection)
        return self._report


@dataclass(frozen=True, eq=False)
class RuleTest:
    """One rule asked of one target; call it in a test."""

    suite: Suite
    code: str
    name: str

    def __str__(self) -> str:
        return f"{self.code}-{self.name}"

    def __call__(self) -> None:
        """Fail with the finding as a terminal shows it, skip if nothing could be checked."""
        import pytest  # noqa: PLC0415 - whoever runs a test has it

        report = self.suite.report
        is_limit = self.code == "RG9"
        if could_not_check(report) and not is_limit:
            pytest.skip(f"{report.target} could not be checked")
        found = [f for f in report.findings if self._is_mine(f)]
        counted = _LEVELS[: _LEVELS.index(self.suite.fail_on) + 1]
        failing = [f for f in found if f.level in counted]
        text = self._text(failing or found, report)
        if failing or (is_limit and could_not_check(report)):
            pytest.fail(text, pytrace=False)
        elif found:
            print(text)

    def _is_mine(self, finding: Finding) -> bool:
        if finding.suppressed:
            return False
        return (
            finding.code.startswith("RG9") if self.code == "RG9" else finding.code == self.code
        )

    def _text(self, findings: Iterable[Finding], report: Report) -> str:
        from regard.check.render.text import finding_text  # noqa: PLC0415 - on failure only

        parts = [finding_text(finding, report) for finding in findings]
        if report.assumptions:
            parts.append(f"Assumed: {'; '.join(report.assumptions)}.")
        return "\n\n".join(parts or [f"{report.target}: nothing was checked"])


def _target(given: Any) -> Target:
    if isinstance(given, str):
        found, _ = find_targets([given])
        if len(found) != 1:
            raise InputError(
                explain(
                    "checks(): the target is no single function or class",
                    expected="file.py:name, or the object itself",
                    got=", ".join(target.name for target in found[:4]),
                )
            )
        return found[0]
    inner = inspect.unwrap(given) if callable(given) else given
    if not (inspect.isfunction(inner) or inspect.ismethod(inner) or isinstance(inner, type)):
        inner = type(inner)
    name = str(getattr(inner, "__qualname__", ""))
    try:
        path = inspect.getsourcefile(inner)
    except TypeError:  # built in
        path = None
    if not path or not name or "<locals>" in name:
        raise InputError(
            explain(
                "checks(): the target cannot be found in a file",
                expected="a function or class at the top of a file, or 'file.py:name'",
                got=repr(given)[:80],
            )
        )
    return Target(path, name, read_source(path))


@atexit.register
def _close() -> None:
    for worker in _workers.values():
        worker.close()
