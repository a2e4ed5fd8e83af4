"""``regard check``: find the attention bug that does not crash."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from regard.cli.check_options import contract_options, statements
from regard.cli.example import RecordedCommand, as_given
from regard.cli.options import Number, Where
from regard.cli.streams import Sink, opened, written
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.check.finding import Level, Report
    from regard.check.settings import Settings
    from regard.check.target import Target

__all__ = ["check"]

_ENGINE = "regard.check.check:check_source"
_TEST = re.compile(r"test_[^:]*|[^:]*_test\.py")  # what pytest takes for one
_FORMATS = ("full", "concise", "json", "sarif", "github", "junit", "html")
# Statements about the arguments and results of one target.
_OF_ONE = {"inputs", "returns", "weights", "kinds", "init", "values"}
_ENDINGS = {"json": "json", "sarif": "sarif", "junit": "xml", "html": "html"}
_EXAMPLE = """
regard check decoder.py:attend
regard check decoder.py:Attention --contract decoder.json --format json
regard check src/ --fix
"""


@click.command(cls=RecordedCommand, example=_EXAMPLE)
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--contract", type=Where(no_dash=True), help="What you declare: JSON or TOML.")
@contract_options
@click.option("--fix", is_flag=True, help="Apply proven fixes, show the diff, check again.")
@click.option(
    "--write-test",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Write a pytest file that keeps it fixed: test_*.py or *_test.py.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), help="Default full.")
@click.option("-o", "--output", type=Where(), help="Where the report goes; default stdout.")
@click.option("--force", is_flag=True, help="Write over the file of --output, --write-test.")
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True
)
@click.option("--select", multiple=True, metavar="RULES", help="Only these: RG301, RG2, ...")
@click.option("--ignore", multiple=True, metavar="RULES", help="All but these.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    default="error",
    show_default=True,
    help="The mildest finding that gives exit code 1.",
)
@click.option("--exit-zero", is_flag=True, help="Exit code 0 whatever was found.")
@click.option("--repair/--no-repair", default=True, help="Search for fixes; without is faster.")
@click.option("--seed", type=Number(int, 0, 2**31 - 1), default=0, show_default=True)
@click.option(
    "--time",
    "seconds",
    type=Number(float, 0.1, 86_400),
    default=30.0,
    show_default=True,
    help="Seconds that a target may take.",
)
@click.option(
    "--memory",
    type=Number(int, 64, 2**20),
    default=4096,
    show_default=True,
    help="MiB that a target may take.",
)
@click.option("--jobs", type=Number(int, 1, 256), help="Processes; default 1, for many 2.")
@click.option(
    "--batch",
    type=Where(),
    help='Answer lines {"id", "target", "contract"} of a file with a line of JSON each.',
)
def check(**given: Any) -> int:
    """Check attention code by running it: find the bug, blame the line, prove the fix.

    A TARGET is file.py:name, file.py:Class.method, package.module:name, or a file or folder
    to search for attention; without one, the targets of [tool.regard] in pyproject.toml.
    What no contract declares is guessed, and the report says what was.

    The code runs in a process of its own with limits of time and memory. It may read files;
    it may not write any outside a temporary folder, use the network or start processes. These
    limits stop accidents, not malice: check no code that you would not run.

    Exit code 0: checked, nothing found. 1: something was found. 2: could not check. Of several
    targets the highest counts: 2 if one could not be checked, whatever was found in others.
    Accept a finding with a comment on its line: # regard: ignore[RG205] reason
    """
    _repeat(given["seed"])
    if given["batch"] is not None:
        return _batch(given)
    return _Run(given).run()


class _Run:
    """One run over the targets of a command line."""

    def __init__(self, given: dict[str, Any]) -> None:
        from regard.check.rules import Selection
        from regard.check.settings import Limits

        self._given = given
        self._targets_to_tests()
        self._contract = self._read_contract()
        self._flags = statements(given)
        self._settings = _settings(given["targets"])
        self._selection = Selection.of(
            given["select"] or self._settings.select,
            (*self._settings.ignore, *given["ignore"]),
        )
        self._options = _options(given, self._flags, self._settings, self._contract)
        self._limits = Limits(given["seconds"], given["memory"])

    def run(self) -> int:
        """Check, report, and return the exit code."""
        from regard.check.run import exit_code

        targets = self._targets()
        with written(
            self._given["output"],
            source=None,
            force=self._given["force"],
            example=f"report.{_ENDINGS.get(self._given['form'], 'txt')}",
        ) as out:
            reports = self._check(targets)
            if self._given["write_test"] is not None:
                self._write_tests(reports)
            if self._given["fix"]:
                reports = self._fix(targets, reports)
            out.write(self._rendered(reports, out))
            out.flush()
        code = exit_code(reports, self._given["fail_on"])
        return 0 if code == 1 and self._given["exit_zero"] else code

    def _targets(self) -> "list[Target]":
        from regard.check.target import find_targets

        given = self._given["targets"] or self._settings.targets
        if not given and self._contract is not None and self._contract.get("target"):
            given = (self._contract["target"],)
        if not given:
            raise InputError(
                explain(
                    "check: there is nothing to check",
                    expected="a target, as decoder.py:attend",
                    got="none, nor any in [tool.regard] of a pyproject.toml",
                    help="`regard check .` searches this folder",
                )
            )
        # A project's list may be wrong in one place; what is typed is looked at again.
        found, notes = find_targets(given, each=not self._given["targets"])
        for note in notes:
            _say(note)
        declared = sorted(_OF_ONE & set(self._flags))
        if len(found) > 1 and (self._contract is not None or declared):
            what = "a contract" if self._contract is not None else f"`{declared[0]}`"
            raise InputError(
                explain(
                    f"check: {what} is given for several targets",
                    expected="one target, whose arguments it is about",
                    got=", ".join(target.name for target in found[:4]),
                    help="check them one by one, or with --batch",
                )
            )
        return found

    def _targets_to_tests(self) -> None:
        """Undo that click takes what follows --write-test for its FILE."""
        name = self._given["write_test"]
        if name and not _TEST.fullmatch(os.path.basename(name)):
            self._given["targets"] = (name, *self._given["targets"])
            self._given["write_test"] = ""

    def _read_contract(self) -> dict[str, Any] | None:
        from regard.check.declared import read_declared

        path = self._given["contract"]
        return None if path is None else read_declared(path)

    def _check(self, targets: "Sequence[Target]") -> "list[Report]":
        from regard.check.failure import told
        from regard.check.run import Job, check_jobs, settle

        work = [Job(target, self._contract, self._options) for target in targets]
        found = check_jobs(
            work, limits=self._limits, processes=self._given["jobs"], engine=_ENGINE
        )
        reports = dict(_shown(found, [target.name for target in targets]))
        if len(work) == 1 and told(reports[0]):
            raise InputError(told(reports[0]))
        warn = _once()  # each target of a file reads all its comments
        return [
            settle(reports[index], self._selection, warn=warn) for index in range(len(work))
        ]

    def _fix(self, targets: "Sequence[Target]", reports: "list[Report]") -> "list[Report]":
        from regard.cli.check_writing import apply_fixes

        if not apply_fixes(reports):
            return reports
        from regard.check.target import reread

        again = self._check([reread(target) for target in targets])
        left = [finding for report in again for finding in report.findings]
        _say(f"checked again: {_counted(left)}")
        return again

    def _write_tests(self, reports: "Sequence[Report]") -> None:
        from regard.cli.check_writing import write_tests

        write_tests(reports, self._given["write_test"], force=self._given["force"])

    def _rendered(self, reports: "Sequence[Report]", out: Sink) -> str:
        from regard.check.render import render

        choice = self._given["color"]
        color = choice == "always" or (choice == "auto" and _colors(out))
        return render(
            self._given["form"] or "full",
            reports,
            color=color,
            width=shutil.get_terminal_size().columns if out.is_terminal else 80,
            command=_command(self._given["seed"]),
            fail_on=self._given["fail_on"],
        )


def _batch(given: dict[str, Any]) -> int:
    from regard.check.batch import answer_batch
    from regard.check.rules import Selection
    from regard.check.run import settle
    from regard.check.settings import Limits
    from regard.cli.check_writing import json_line

    named = {"targets": "TARGET", "contract": "--contract", "fix": "--fix"}
    for name, shown in (named | {"write_test": "--write-test"}).items():
        if given[name] not in (None, False, ()):
            raise click.UsageError(f"--batch says what to check; leave {shown} out")
    if given["form"] not in (None, "json"):
        raise click.UsageError("--batch answers in JSON; leave --format out")
    settings = _settings(())
    selection = Selection.of(
        given["select"] or settings.select, (*settings.ignore, *given["ignore"])
    )
    worst, warn = 0, _once()
    flags = statements(given)
    with (
        opened(given["batch"], holds="JSON object") as lines,
        written(
            given["output"],
            source=given["batch"],
            force=given["force"],
            example="answers.jsonl",
        ) as out,
    ):
        for answer in answer_batch(
            lines,
            options=lambda contract: _options(given, flags, settings, contract),
            limits=Limits(given["seconds"], given["memory"]),
            processes=given["jobs"],
            engine=_ENGINE,
            settle=lambda report: settle(report, selection, warn=warn),
            fail_on=given["fail_on"],
        ):
            worst = max(worst, answer["rc"])
            out.write(json_line(answer))
            out.flush()
    return 0 if worst == 1 and given["exit_zero"] else worst


def _options(
    given: dict[str, Any],
    flags: dict[str, Any],
    settings: "Settings",
    contract: "Mapping[str, Any] | None",
) -> dict[str, Any]:
    """Return the engine's options; what a project always wants comes after what is given."""
    from datetime import date

    options = {
        "seed": given["seed"],
        "repair": given["repair"],
        "flags": settings.flags(contract, flags) or None,
    }
    if given["write_test"] is not None:
        options |= {"write_test": True, "date": date.today().isoformat()}
    return options


def _settings(targets: Sequence[str]) -> "Settings":
    from regard.check.settings import read_settings

    places = [target.rpartition(":")[0] or target for target in targets]
    folders = [place for place in places if os.path.exists(place)]
    start = os.path.commonpath([os.path.abspath(f) for f in folders]) if folders else "."
    return read_settings(start if os.path.isdir(start) else os.path.dirname(start) or ".")


def _shown(
    found: "Iterator[tuple[int, Report]]", names: Sequence[str]
) -> "Iterator[tuple[int, Report]]":
    """Pass reports on; in a terminal, show how many of several there are."""
    if len(names) < 2 or not sys.stderr.isatty():
        yield from found
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(names))
        for index, report in found:
            bar.update(task, advance=1, description=names[index])
            yield index, report


def _counted(findings: Sequence[Any]) -> str:
    levels: tuple[Level, ...] = ("error", "warning", "note")
    live = [finding.level for finding in findings if not finding.suppressed]
    counts = {level: live.count(level) for level in levels}
    parts = [f"{n} {level}{'s' * (n > 1)}" for level, n in counts.items() if n]
    return ", ".join(parts) or "nothing is found any more"


def _colors(out: Sink) -> bool:
    dumb = os.environ.get("TERM", "") == "dumb" or bool(os.environ.get("NO_COLOR"))
    return out.is_terminal and not dumb


def _command(seed: int) -> str:
    arguments = as_given()
    if not any(argument.startswith("--seed") for argument in arguments):
        # Before what follows a bare --, which is a target whatever it looks like.
        at = arguments.index("--") if "--" in arguments else len(arguments)
        arguments = [*arguments[:at], "--seed", str(seed), *arguments[at:]]
    return shlex.join(["regard", "check", *arguments])


def _repeat(seed: int) -> None:
    _say(f"repeat: {_command(seed)}")


def _once() -> Callable[[str], None]:
    """Return what prints a warning, the same one only once."""
    seen: set[str] = set()

    def warn(text: str) -> None:
        if text not in seen:
            seen.add(text)
            _say(f"warning: {text}")

    return warn


def _say(text: str) -> None:
    click.echo(text, err=True)
