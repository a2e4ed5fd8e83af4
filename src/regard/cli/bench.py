"""``regard bench``: measure regard by what others have published."""

import importlib
import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import Number, Where
from regard.cli.streams import say
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.bench.plan import Run

__all__ = ["bench"]

_EXAMPLE = """
regard bench tasks                                   # what ships: about 70 minutes
regard bench tasks --task names --seeds 1            # two minutes
regard bench tasks --task g2p:fre --data-dir sigmorphon2020-task1.tar.xz
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Measure regard by what others have published."""


@bench.command("tasks", cls=ExampleCommand, example=_EXAMPLE)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    help="A recipe, for all its languages, or one as in g2p:fre; once for each. Default: all "
    "that there are data for.",
)
@click.option("--seeds", type=Number(int, 1, 1000), default=3, show_default=True)
@click.option("--data-dir", type=Where(no_dash=True), help="Where data that do not ship are.")
@click.option("--jobs", type=Number(int, 1, 256), default=2, show_default=True, help="Cores.")
@click.option(
    "--seconds",
    type=Number(float, 0, 10**7, open_low=True),
    help="Time of every run, instead of the recipes' own.",
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="What the time is measured by; cpu: on a busy machine it lasts longer and comes to "
    "the same.",
)
@click.option(
    "--members",
    type=Number(int, 1, 256),
    help="Models that answer together, instead of the recipes' number; they share the time.",
)
@click.option("--out", default="regard-bench", show_default=True, type=Where())
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def bench_tasks(
    *,
    tasks: tuple[str, ...],
    seeds: int,
    data_dir: str | None,
    jobs: int,
    seconds: float | None,
    clock: str,
    members: int | None,
    out: str,
    form: str,
) -> int:
    """Run the recipes, several seeds each, and print ours beside the published numbers.

    Every run's result is a file in --out; a bench that was stopped, by Ctrl-C or otherwise,
    goes on where it was when the same command is given again. All results together are in
    --out/tasks.json.
    """
    for module in ("torch", "safetensors", "rapidfuzz"):  # what is missing is told at once
        importlib.import_module(module)
    from regard.files import write_json
    from regard.seq2seq.bench.plan import plan
    from regard.seq2seq.bench.run import do_runs, result_of
    from regard.seq2seq.bench.table import text
    from regard.seq2seq.events import InterruptedRun

    where = Path(out)
    if where.exists() and not where.is_dir():
        raise InputError(
            explain(
                f"{out}: this is a file",
                expected="a directory, or a name for a new one",
                got="a file",
                help="choose another --out",
            )
        )
    runs = plan(tasks, seeds=seeds, data_dir=data_dir)
    given = (tasks, seeds, jobs, seconds, clock, members)
    command = _command(*given, data_dir=data_dir, out=out)
    told = _Told(len(runs), sum(result_of(where, run) is not None for run in runs))
    try:
        do_runs(
            runs,
            where,
            jobs=jobs,
            data_dir=data_dir,
            seconds=seconds,
            clock=clock,
            members=members,
            on_start=told.start,
            on_result=told.result,
        )
    except InterruptedRun as stopped:
        click.echo(f"stopped and saved; go on with\n  {command}", err=True)
        return 128 + stopped.signal
    results = [result for run in runs if (result := result_of(where, run)) is not None]
    # Where the data lie on this machine is nobody's business.
    made_by = _command(*given, data_dir=data_dir and "DATA", out=None)
    report = {"command": made_by, "results": results}
    write_json(where / "tasks.json", report)
    say(json.dumps(report, ensure_ascii=False) if form == "json" else text(results))
    click.echo(f"numbers  {where / 'tasks.json'}\nmade by  {command}", err=True)
    return 0


class _Told:
    """Says on stderr where a bench is."""

    def __init__(self, runs: int, before: int) -> None:
        self._runs, self._done = runs, before
        self._began = time.monotonic()
        if before:
            click.echo(f"{before} of {runs} runs were done before", err=True)

    def start(self, run: "Run", seconds: float) -> None:
        """Take a run that begins."""
        click.echo(f"{self._done + 1}/{self._runs}  {run.name}, {seconds:g} s", err=True)

    def result(self, run: "Run", result: dict[str, Any]) -> None:
        """Take a run that ended."""
        self._done += 1
        name, value = next(iter(result["test"]["all"].items()))
        click.echo(f"     {run.name}: test {name} {value:.2f} %", err=True)


def _command(
    tasks: tuple[str, ...],
    seeds: int,
    jobs: int,
    seconds: float | None,
    clock: str,
    members: int | None,
    *,
    data_dir: str | None,
    out: str | None,
) -> str:
    words = ["regard", "bench", "tasks"]
    for task in tasks:
        words += ["--task", task]
    words += ["--seeds", str(seeds), "--jobs", str(jobs)]
    for name, value in (
        ("--data-dir", data_dir),
        ("--seconds", seconds),
        ("--members", members),
        ("--out", out),
    ):
        if value is not None:
            words += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    if clock != "wall":
        words += ["--clock", clock]
    return shlex.join(words)
