"""``regard demo``: what attention fixes, shown by training the models that show it."""

import importlib
import io
import multiprocessing
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import STEPS, Number, Where
from regard.cli.stop import before_stopping
from regard.cli.streams import say
from regard.files import as_argument

if TYPE_CHECKING:
    from regard.demo.plan import Job, Plan
    from regard.demo.pool import Event

__all__ = ["demo"]

_WILD = 10.0  # seconds without a guess of the time left, unless much is done before

_EXAMPLE = """
regard demo                       # about six minutes on two cores; see regard-demo/report.html
regard demo --quick --out quick   # under a minute, to see that it works
"""


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.option("--out", default="regard-demo", show_default=True, type=Where())
@click.option("--quick", is_flag=True, help="Short sequences, few steps: under a minute.")
@click.option("--seed", type=Number(int, 0, 2**31 - 1), default=0, show_default=True)
@click.option("--seeds", type=Number(int, 1, 1000), help="Copy models of a kind; default 3.")
@click.option("--steps", type=STEPS, help="Training steps of each copy model.")
@click.option(
    "--attention",
    "attentions",
    multiple=True,
    type=click.Choice(["none", "bahdanau", "dot", "general", "concat"]),
    help="Kinds to compare, once for each; default all but concat, which is slow.",
)
@click.option("--jobs", type=Number(int, 1, 256), help="Processes; default: one a core.")
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@click.option("--force", is_flag=True, help="Start again over the run in --out.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def demo(
    out: str,
    quick: bool,
    seed: int,
    seeds: int | None,
    steps: int | None,
    attentions: tuple[str, ...],
    jobs: int | None,
    resume: bool,
    force: bool,
    form: str,
) -> int:
    """Train models with and without attention, and report what attention fixed.

    Copies sequences of growing length with a GRU encoder-decoder without attention, with
    Bahdanau's and with Luong's; then turns letters to sounds. Prints the accuracy of each and
    writes a report that opens offline, the pictures (PNG and SVG), every number (demo.json) and
    the letters-to-sounds model to --out. Ctrl-C saves; --resume goes on.
    """
    from regard.demo.plan import Plan
    from regard.demo.run import run_demo
    from regard.errors import InputError, explain
    from regard.seq2seq.interrupt import Interruption
    from regard.seq2seq.workers import cores

    if resume and force:
        raise InputError(
            explain(
                "--resume and --force contradict each other",
                expected="one of the two",
                got="both",
                help="--resume goes on, --force begins anew",
            )
        )
    plan = _plan(Plan, quick, seed=seed, seeds=seeds, steps=steps, attentions=attentions)
    command = _command(
        out=out,
        quick=quick or None,
        seed=seed,
        seeds=seeds,
        steps=steps,
        attention=list(dict.fromkeys(attentions)),
    )
    # What is missing is told before the work begins: matplotlib draws at its very end.
    for module in ("torch", "safetensors", "rapidfuzz", "matplotlib"):
        importlib.import_module(module)

    with (
        before_stopping(_end_workers),  # for who presses Ctrl-C twice
        Interruption() as interruption,
        _Progress() as progress,
    ):
        results = run_demo(
            plan,
            Path(out),
            processes=jobs or cores(),
            command=command,
            resume=resume,
            force=force,
            on_start=progress.start,
            on_event=progress.show,
            asked_to_stop=lambda: interruption.asked is not None,
        )
    if results is None:
        click.echo(f"stopped and saved; go on with\n  {command} --resume", err=True)
        return 128 + (interruption.asked or 2)
    _tell(results, Path(out), form)
    return 0


def _end_workers() -> None:
    for process in multiprocessing.active_children():
        process.terminate()  # they save


def _plan(kind: "type[Plan]", quick: bool, *, seed: int, **given: Any) -> "Plan":
    plan = kind.quick(seed) if quick else kind(seed=seed)
    if given["attentions"]:
        given["attentions"] = tuple(dict.fromkeys(given["attentions"]))
    return replace(plan, **{name: value for name, value in given.items() if value})


def _command(**options: Any) -> str:
    words = ["regard", "demo"]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                words.append(f"--{name}")
            elif one is not None:
                words += [f"--{name}", str(one)]
    return shlex.join(words)


def _tell(results: dict[str, Any], out: Path, form: str) -> None:
    if form == "json":
        import json

        say(json.dumps(results, ensure_ascii=False))
        return
    from rich.console import Console

    from regard.demo.run import MODEL
    from regard.demo.table import accuracy_table

    text = io.StringIO()
    terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(file=text, force_terminal=terminal)
    table = accuracy_table(results["copy"])
    notes, table.caption = table.caption, None  # would wrap at the width of the table
    console.print(table)
    console.print(notes, style="dim", highlight=False, markup=False)
    letters = results["g2p"]
    console.print(
        f"\nletters to sounds, {letters['n_test']:,} held-out words, against the nearest of "
        f"all listed pronunciations:\n  phoneme error rate {100 * letters['per']:.2f} %   "
        f"word error rate {100 * letters['wer']:.2f} %",
        highlight=False,
    )
    for example in letters["examples"]:
        word, sounds = "".join(example["source"]), " ".join(example["target"])
        console.print(f"  {word:<18} {sounds}", highlight=False, markup=False)
    say(text.getvalue().rstrip("\n"))
    click.echo(
        f"\nreport   {out / 'report.html'}\nnumbers  {out / 'demo.json'}\n"
        f"pictures {out / 'accuracy.png'}, ...\n"
        f"model    {out / MODEL}: regard predict {as_argument(out / MODEL)} HELLO\n"
        f"made by  {results['made_by']['command']} "
        f"in {results['made_by']['wall_seconds']:.0f} s",
        err=True,
    )


class _Progress:
    """All jobs as one bar with the time left, and a line for each that runs."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._all: Any = None
        self._tasks: dict[str, Any] = {}
        self._shares: dict[str, float] = {}
        self._costs: dict[str, float] = {}
        self._told = self._began = time.monotonic()
        self._at_start = 0.0

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, jobs: "list[Job]", done: "list[Job]") -> None:
        """Take all jobs, and those that are done already."""
        self._costs = {job.name: job.cost for job in jobs}
        self._shares = {job.name: 1.0 for job in done}
        self._at_start = self._done()
        if sys.stderr.isatty():
            self._bar = _rich_bar()
            self._all = self._bar.add_task("all jobs", total=sum(self._costs.values()), said="")
            self._bar.update(self._all, completed=self._done())
            self._bar.start()
        elif done:
            print(f"{len(done)} of {len(jobs)} jobs were done before", file=sys.stderr)

    def show(self, event: "Event") -> None:
        """Take one event."""
        name, finished = event.job.name, event.share == 1
        self._shares[name] = event.share
        if self._bar is None:
            if finished or time.monotonic() - self._told > 10:
                self._told = time.monotonic()
                print(self._line(event), file=sys.stderr, flush=True)
            return
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(f"  {event.job.title}", total=1, said="")
        self._bar.update(self._tasks[name], completed=event.share, said=event.said)
        said = f"{sum(share == 1 for share in self._shares.values())}/{len(self._costs)} done"
        self._bar.update(self._all, completed=self._done(), said=said)
        if finished:
            self._bar.remove_task(self._tasks.pop(name))

    def _done(self) -> float:
        return sum(self._costs[name] * share for name, share in self._shares.items())

    def _line(self, event: "Event") -> str:
        total = sum(self._costs.values())
        line = f"{100 * self._done() / total:3.0f} %  {event.job.title}"
        line += " done" if event.share == 1 else f" {100 * event.share:.0f} %  {event.said}"
        gained = self._done() - self._at_start
        spent = time.monotonic() - self._began
        # The first guesses are wild: workers import for seconds before they begin.
        known = gained > 0.05 * total or (gained > 0 and spent > _WILD)
        if known and self._done() < total:
            pace = spent / gained
            line += f"  about {(total - self._done()) * pace:.0f} s left"
        return line


def _rich_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}"),
        console=Console(stderr=True),
        transient=True,
        # Jobs end at different speeds; a long memory keeps the guess steady.
        speed_estimate_period=120,
    )
