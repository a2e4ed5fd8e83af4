"""What ``regard check`` writes besides its report: fixes, regression tests, lines of JSON."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.errors import InputError, explain
from regard.files import write_atomically

if TYPE_CHECKING:
    from regard.check.finding import Report

__all__ = ["apply_fixes", "json_line", "write_tests"]


def apply_fixes(reports: "Sequence[Report]") -> bool:
    """Apply the proven fixes, show and save the diff; return whether a file changed.

    Raises
    ------
    InputError
        A file changed since it was checked, or cannot be written.
    """
    from regard.check.apply import plan_fixes, save_patch, write_changes

    changes = plan_fixes(reports)
    if not changes:
        _say("nothing to fix: no finding has a proven fix")
        return False
    for change in changes:
        _say(change.diff().rstrip("\n"))
    patch, base = save_patch(changes, write_atomically)
    write_changes(changes, write_atomically)
    for change in changes:
        codes = ", ".join(dict.fromkeys(finding.code for finding in change.applied))
        _say(f"fixed {codes} in {change.path}")
        for finding in change.left:
            _say(f"not fixed: {finding.code} overlaps another fix; run the command again")
    where = [] if base == "." else ["-C", base]
    path = str(patch if base == "." else patch.absolute())
    _say(f"undo: {shlex.join(['git', *where, 'apply', '-R', path])}")
    return True


def write_tests(reports: "Sequence[Report]", name: str, *, force: bool) -> None:
    """Write the regression tests that the reports hold, and show them as a diff.

    Parameters
    ----------
    reports : sequence of Report
    name : str
        The file; empty for ``test_FILE_NAME.py`` beside each file.
    force : bool
        Replace a file that exists.

    Raises
    ------
    InputError
        The file exists, or one file is named for several tests.
    """
    from regard.check.apply import unified
    from regard.check.tools import home_of_test

    tests = [report for report in reports if report.test]
    if not tests:
        _say("no test is written: no finding that a test could hold")
    if name and len(tests) > 1:
        raise InputError(
            explain(
                f"--write-test: one file is named for {len(tests)} tests",
                expected="one target, or no FILE",
                got=", ".join(report.target for report in tests[:4]),
            )
        )
    for report in tests:
        path = Path(name) if name else home_of_test(report)
        old = path.read_text(encoding="utf-8") if path.is_file() else ""
        if old == report.test:
            _say(f"{path} holds this test already")
            continue
        if path.exists() and not force:
            raise InputError(
                explain(
                    f"--write-test: `{path}` exists",
                    expected="a new file, or --force",
                    got="a file with another text",
                    help="name another, as --write-test test_more.py",
                )
            )
        before = str(path) if old else "/dev/null"
        _say(unified(old, report.test, before, str(path)).rstrip("\n"))
        write_atomically(path, report.test.encode("utf-8"))
        _say(f"keep it fixed: pytest {path}")


def json_line(answer: Mapping[str, Any]) -> str:
    """Return an object as a line that every JSON reader takes."""
    from regard.check.render.json_ import dumped

    return dumped(answer, indent=None) + "\n"


def _say(text: str) -> None:
    click.echo(text, err=True)
