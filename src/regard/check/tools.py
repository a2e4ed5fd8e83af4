"""What an assistant may ask of ``regard check``: the four tools, on plain JSON.

``check`` and ``explain`` only read. ``apply_fix`` and ``write_test`` name a finding of an
earlier ``check`` by its fingerprint, and check the file again before they write.
"""

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.check.apply import Write, plan_fixes, unified, write_changes
from regard.check.declared import validated
from regard.check.finding import Finding, Report
from regard.check.render import render
from regard.check.rules import Selection, find
from regard.check.rules.page import as_mapping, text
from regard.check.run import check_targets, exit_code, settle
from regard.check.settings import Limits, read_settings
from regard.check.target import Target, find_targets, reread
from regard.check.tool import TOOLS, Answer
from regard.errors import ConventionError, InputError, explain

__all__ = ["Tools", "home_of_test"]

_NEXT = {
    0: "Nothing was found by what ran; say what was not checked.",
    1: "Confirm assumptions that a finding depends on. Apply a fix only if it is proven.",
    2: "Nothing was checked: do not guess what is wrong. Declare what is missing, check again.",
}


@dataclass(frozen=True)
class _Asked:
    """A check that found something, to be run again."""

    target: Target
    contract: Mapping[str, Any] | None
    options: Mapping[str, Any]


class Tools:
    """The tools over one folder; findings are remembered by their fingerprint.

    Parameters
    ----------
    write : callable
        Replaces a file's content as a whole, or leaves it as it was.
    folder : path
        Files outside it are not written.
    limits : Limits, optional
        What a target may take.
    """

    def __init__(
        self, write: Write, folder: str | Path = ".", *, limits: Limits | None = None
    ) -> None:
        self._write = write
        self._folder = Path(os.path.realpath(folder))
        self._limits = limits or Limits()
        self._asked: dict[str, _Asked] = {}

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool by its name.

        Raises
        ------
        RegardError
            The tool or an argument is unknown, or it cannot do what is asked.
        """
        tool = TOOLS.get(name)
        if tool is None:
            known = ", ".join(TOOLS)
            raise InputError(explain(f"there is no tool {name!r}", expected=known, got=name))
        missing = [key for key in tool.required if key not in arguments]
        unknown = [key for key in arguments if key not in tool.arguments]
        if missing or unknown:
            raise InputError(
                explain(
                    f"{name}: wrong arguments",
                    expected=", ".join(tool.required) or "none",
                    got=", ".join(arguments) or "none",
                )
            )
        for key, value in arguments.items():
            _fits(name, key, value, tool.arguments[key])
        act: Callable[..., Answer] = getattr(self, name)
        return act(**arguments)

    def check(
        self,
        target: str,
        contract: Mapping[str, Any] | None = None,
        statements: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> Answer:
        """Check a target, or every one in a file or folder."""
        if contract is not None and statements:
            raise ConventionError(
                explain(
                    "check: both a contract and statements",
                    expected="one of the two",
                    got=", ".join(["contract", *statements]),
                )
            )
        if contract is not None:
            contract = validated(contract, "the contract")
        settings = read_settings(".")
        found, notes = find_targets([target])
        flags = settings.flags(contract, statements)
        options = {"seed": seed, "flags": flags or None}
        reports = check_targets(found, contract=contract, options=options, limits=self._limits)
        selection = Selection.of(settings.select, settings.ignore)
        reports = [settle(report, selection) for report in reports]
        for one, report in zip(found, reports, strict=True):
            self._remember(_Asked(one, contract, options), report)
        return _reported(reports, notes)

    def explain(self, code: str) -> Answer:
        """Explain a rule."""
        rule = find(code)
        return Answer({"rule": as_mapping(rule)}, text(rule))

    def apply_fix(self, fingerprint: str) -> Answer:
        """Check again, put the proven fix of a finding into the file, and check once more."""
        asked, report, finding = self._again(fingerprint)
        fix = finding.fix
        if fix is None or fix.status != "proven":
            got = "no fix" if fix is None else f"a fix that is {fix.status}"
            if fix is not None and fix.condition:
                got += f": {fix.condition}"
            raise InputError(
                explain(
                    f"apply_fix: {finding.code} has no proven fix",
                    expected="a fix with status proven",
                    got=got,
                    help="show it to the user; only they can decide",
                )
            )
        (change,) = plan_fixes([dataclasses.replace(report, findings=(finding,))])
        self._inside(change.path)
        write_changes([change], self._write)
        after = self._checked(dataclasses.replace(asked, target=reread(asked.target)))
        diff = change.diff()
        data = {"diff": diff, **_reported([after], []).data}
        return Answer(data, f"{diff}\nChecked again:\n{_reported([after], []).text}")

    def write_test(self, fingerprint: str, path: str | None = None) -> Answer:
        """Check again, and write the regression test of a finding."""
        _, report, finding = self._again(fingerprint, write_test=fingerprint)
        if not report.test:
            raise InputError(
                explain(
                    f"write_test: there is no test for {finding.code}",
                    expected="a claim that fails on the code as it is",
                    got="no such claim",
                )
            )
        place = Path(path) if path else home_of_test(report)
        if not path and place.exists():  # of another finding of this target
            place = place.with_stem(f"{place.stem}_{finding.code.lower()}")
        self._inside(str(place))
        old = place.read_text(encoding="utf-8") if place.is_file() else ""
        if not re.fullmatch(r"test_\w+\.py|\w+_test\.py", place.name) or (
            place.exists() and old != report.test
        ):
            raise InputError(
                explain(
                    f"write_test: `{place}` is refused",
                    expected="a new file called test_*.py or *_test.py",
                    got="a file that exists" if place.exists() else place.name,
                    help="give another `path`",
                )
            )
        self._write(place, report.test.encode("utf-8"))
        data = {"path": str(place), "test": report.test, "run": f"pytest {place}"}
        shown = unified("", report.test, "/dev/null", str(place))
        return Answer(data, f"{shown}\nkeep it fixed: pytest {place}")

    def _again(self, fingerprint: str, **more: Any) -> tuple[_Asked, Report, Finding]:
        if fingerprint not in self._asked:
            raise InputError(
                explain(
                    "no finding has this fingerprint",
                    expected="that of a finding which `check` reported here",
                    got=repr(fingerprint)[:120],
                    help="call `check` first",
                )
            )
        asked = self._asked[fingerprint]
        asked = dataclasses.replace(asked, target=reread(asked.target))
        report = self._checked(asked, **more)
        for finding in report.findings:
            if finding.fingerprint == fingerprint:
                return asked, report, finding
        raise InputError(
            explain(
                "the finding is not there any more",
                expected=fingerprint,
                got=", ".join(f.fingerprint for f in report.findings) or "no findings",
                help="the file changed; call `check` again",
            )
        )

    def _checked(self, asked: _Asked, **more: Any) -> Report:
        (report,) = check_targets(
            [asked.target],
            contract=asked.contract,
            options={**asked.options, **more},
            limits=self._limits,
        )
        report = settle(report, Selection.of())
        self._remember(asked, report)
        return report

    def _remember(self, asked: _Asked, report: Report) -> None:
        for finding in report.findings:
            self._asked[finding.fingerprint] = asked

    def _inside(self, path: str) -> None:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self._folder):
            raise InputError(
                explain(
                    f"`{path}` may not be written",
                    expected=f"a file below {self._folder}",
                    got=str(real),
                )
            )


def home_of_test(report: Report) -> Path:
    """Return where a report's regression test goes: beside the file, named after the target."""
    stem = os.path.splitext(os.path.basename(report.path))[0]
    entry = report.target.rpartition(":")[2]
    words = re.sub(r"\W+|(?<=[a-z0-9])(?=[A-Z])", "_", f"{stem}_{entry}").lower()
    return Path(report.path).parent / f"test_{words}.py"


def _reported(reports: list[Report], notes: list[str]) -> Answer:
    code = exit_code(reports)
    data = {"results": [report.as_json() for report in reports], "exit_code": code}
    parts = [render("concise", reports).rstrip("\n"), *notes]
    for report in reports:
        parts += [f"assumed: {text}" for text in report.assumptions]
        parts += [f"not checked: {text}" for text in report.not_checked]
    return Answer(data, "\n".join([*parts, _NEXT[code]]))


def _fits(tool: str, key: str, value: Any, schema: Mapping[str, Any]) -> None:
    kinds = {"string": str, "object": Mapping, "integer": int}
    kind = kinds[schema["type"]]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(
            explain(
                f"{tool}: `{key}` is refused", expected=schema["type"], got=repr(value)[:80]
            )
        )
