"""``regard audit``: what may be claimed from a model's attention weights."""

import json
import shlex
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.example import RecordedCommand, as_given
from regard.cli.options import Number, Where
from regard.cli.stop import before_stopping
from regard.cli.streams import refuse_existing, say
from regard.cli.train_options import Duration
from regard.errors import InputError, RegardError, explain

if TYPE_CHECKING:
    from regard.audit.reproduce.report import Report
    from regard.audit.verdict import Audit

__all__ = ["audit"]

_CUTS = {"split": "split", "cut": "inputs"}
"""How a case cuts texts, by the argument that takes it."""
_TARGETS = ("sst", "pronoun", "copy")
_EXAMPLE = """
regard audit --selftest
regard audit model.py:case --data inputs.jsonl --require L2 --out audit.html --json audit.json
regard audit reproduce copy --seeds 3 --json copy.json
"""


@click.command(cls=RecordedCommand, example=_EXAMPLE)
@click.argument("target", nargs=-1, metavar="MODEL.py:CASE | reproduce NAME")
@click.option(
    "--data",
    type=Where(no_dash=True),
    help="Inputs: *.jsonl, *.tsv of pairs, or a text a line.",
)
@click.option("--n", type=Number(int, 20, 10**6), default=500, show_default=True)
@click.option(
    "--require",
    type=click.Choice(["L1", "L2", "L3"]),
    default="L2",
    show_default=True,
    help="The claim that decides the exit code.",
)
@click.option("--out", type=Where(no_dash=True), help="Report to write, one offline HTML page.")
@click.option("--json", "json_out", type=Where(no_dash=True), help="Every number, as JSON.")
@click.option("--tests", help="Names of tests, with commas; default: all that train no model.")
@click.option("--retrain", is_flag=True, help="Also train again: uniform, seeds, deceived.")
@click.option("--budget", type=Duration(), help="Time, as 90s or 5m; what is done counts.")
@click.option("--seed", type=Number(int, 0, 2**31 - 1), default=0, show_default=True)
@click.option(
    "--seeds", type=Number(int, 1, 1000), help="Of reproduce: how many, from --seed on."
)
@click.option("--selftest", is_flag=True, help="Audit the honest and the deceived control.")
@click.option(
    "--resume",
    type=Where(no_dash=True),
    help="File that keeps what is measured; of reproduce: folder that keeps the models.",
)
@click.option("--force", is_flag=True, help="Write over the files of --out and --json.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def audit(
    *,
    target: tuple[str, ...],
    data: str | None,
    n: int,
    require: str,
    out: str | None,
    json_out: str | None,
    tests: str | None,
    retrain: bool,
    budget: float | None,
    seed: int,
    seeds: int | None,
    selftest: bool,
    resume: str | None,
    force: bool,
    form: str,
) -> int:
    """Find out what may be claimed from a model's attention weights.

    L1: where the model put weight. L2: removing what it attends to changes the output more than
    chance. L3: it ranks tokens about as well as the best method tried. Exit code 0: the claim
    of --require is granted; 1: refused; 2: undecided, or the weights were captured wrongly.
    """
    if seeds is not None and target[:1] != ("reproduce",):
        raise InputError(
            explain(
                "audit: --seeds belongs to reproduce",
                expected="--seed alone; `--retrain` tries other seeds of the model",
                got=f"--seeds {seeds}",
            )
        )
    if selftest:
        if target:
            raise InputError(
                explain(
                    "audit: --selftest audits its own two models",
                    expected="no target beside it",
                    got=" ".join(target),
                )
            )
        return _selftest(seed, form)
    if target[:1] == ("reproduce",):
        if budget is not None:
            raise InputError(
                explain(
                    "audit reproduce: --budget is not for published settings",
                    expected="no budget: they take minutes to hours",
                    got=f"{budget:g} s",
                )
            )
        many = range(seed, seed + (seeds or 1))
        return _reproduce(target[1:], data, many, json_out, resume, form)
    if len(target) != 1:
        raise InputError(
            explain(
                "audit: one target is needed",
                expected="MODEL.py:case, or reproduce and one of " + ", ".join(_TARGETS),
                got=" ".join(target) or "nothing",
                help="`regard audit --selftest` needs none",
            )
        )
    if data is None:
        raise InputError(
            explain(
                "audit: --data is missing",
                expected="--data FILE with inputs as the model meets them",
                got="no --data",
            )
        )
    _refuse_one_for_two({"--out": out, "--json": json_out, "--data": data, "--resume": resume})
    for path in filter(None, (out, json_out)):
        refuse_existing(path, force)
    from regard.audit.input_files import read_inputs
    from regard.audit.run import audit as run_audit
    from regard.audit.target import load_case

    case = load_case(target[0])
    ways: dict[str, Any] = {name: getattr(case, own, None) for name, own in _CUTS.items()}
    inputs = read_inputs(data, **{name: way for name, way in ways.items() if callable(way)})
    go_on = f"go on with --resume {shlex.quote(resume)}" if resume is not None else None
    with before_stopping(lambda: go_on), _Progress() as progress, _blaming(target[0]):
        found = run_audit(
            case,
            inputs,
            n=n,
            seed=seed,
            tests=_names(tests, retrain),
            budget=budget,
            resume=resume,
            progress=progress.show,
            command=shlex.join(["regard", "audit", *as_given()]),
        )
    _write(found, out, json_out)
    _tell(found, form)
    return exit_code(found, require)


def _names(tests: str | None, retrain: bool) -> list[str] | None:
    from regard.audit.measures import chosen

    if tests is None and not retrain:
        return None
    given = None if tests is None else [name.strip() for name in tests.split(",")]
    return [measure.name for measure in chosen(given)] + ["retrain"] * retrain


def exit_code(found: "Audit", require: str) -> int:
    """Return 0 where a claim is granted, 1 where it is refused, 2 where neither."""
    outcome = found.verdict.outcome(require)
    return {"granted": 0, "refused": 1}.get(outcome, 2)


def _selftest(seed: int, form: str) -> int:
    from dataclasses import asdict

    from regard.audit.selftest import run_selftest
    from regard.audit.text import selftest_text

    found = run_selftest(seed=seed, progress=lambda what: click.echo(what, err=True))
    if form == "json":
        say(json.dumps({**asdict(found), "passed": found.passed}))
    else:
        say(selftest_text(found))
    return 0 if found.passed else 2


def _reproduce(
    names: tuple[str, ...],
    data: str | None,
    seeds: range,
    json_out: str | None,
    resume: str | None,
    form: str,
) -> int:
    if len(names) != 1 or names[0] not in _TARGETS:
        raise InputError(
            explain(
                "audit reproduce: one target is needed",
                expected=" or ".join(_TARGETS),
                got=" ".join(names) or "nothing",
            )
        )
    from regard.audit.reproduce.run import reproduce
    from regard.files import write_json

    def keep(found: "Report") -> None:
        # After every seed, so that hours are not lost with the last one.
        if json_out is not None:
            write_json(Path(json_out), found.to_dict())

    go_on = f"go on with --resume {shlex.quote(resume)}" if resume is not None else None
    with before_stopping(lambda: go_on), _Progress() as progress:
        found = reproduce(
            names[0],
            data=data,
            seeds=seeds,
            models=None if resume is None else Path(resume),
            progress=progress.show,
            keep=keep,
        )
    say(json.dumps(found.to_dict()) if form == "json" else found.text())
    return 0 if found.passed else 1


def _write(found: "Audit", out: str | None, json_out: str | None) -> None:
    from regard.files import write_atomically, write_json

    if json_out is not None:
        write_json(Path(json_out), found.to_dict())
    if out is not None:
        from regard.audit.page import page

        write_atomically(Path(out), page(found).encode("utf-8"))


def _tell(found: "Audit", form: str) -> None:
    from regard.audit.text import text

    say(json.dumps(found.to_dict(), ensure_ascii=False) if form == "json" else text(found))


def _refuse_one_for_two(paths: dict[str, str | None]) -> None:
    """Refuse options that name one file: what one writes the other would lose."""
    seen: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        first = seen.setdefault(Path(path).resolve(), option)
        if first != option:
            raise InputError(
                explain(
                    f"audit: {first} and {option} name one file",
                    expected="a file for each",
                    got=path,
                )
            )


@contextmanager
def _blaming(target: str) -> Iterator[None]:
    """Tell what the user's own file raises as theirs, by line."""
    try:
        yield
    except RegardError:
        raise
    except Exception as error:
        home = Path(target.rpartition(":")[0]).resolve()
        steps = traceback.extract_tb(error.__traceback__)
        own = [step for step in steps if Path(step.filename).resolve() == home]
        if not own:
            raise
        raise InputError(
            explain(
                f"audit: {home.name}, line {own[-1].lineno}, raised {type(error).__name__}",
                expected="probabilities and weights for every input, erased ones too",
                got=str(error)[:200] or type(error).__name__,
                because=own[-1].line or "",
            )
        ) from error


class _Progress:
    """What is being done: a bar in a terminal, a line a test elsewhere."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._began = time.monotonic()

    def __enter__(self) -> "_Progress":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, what: str, done: int, of: int) -> None:
        """Take one step of the audit."""
        if self._bar is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bar.add_task(what)
            self._bar.update(self._tasks[what], completed=done, total=of)
        elif what not in self._tasks or done == of:
            self._tasks[what] = True
            seconds = time.monotonic() - self._began
            state = f"{done} of {of}" if done else "begins"
            print(f"{what}: {state}  ({seconds:.0f} s)", file=sys.stderr, flush=True)
