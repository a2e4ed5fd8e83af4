"""``regard train``: from a file of pairs to a model directory."""

import json
import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from regard.cli.options import Where
from regard.cli.stop import before_stopping
from regard.cli.streams import say
from regard.cli.train_options import (
    GroupedCommand,
    data_options,
    learning_options,
    length_options,
    machine_options,
    model_options,
    output_options,
)
from regard.errors import InputError, explain
from regard.files import as_argument

if TYPE_CHECKING:
    from regard.cli.train_settings import Task
    from regard.seq2seq.events import Progress, TrainResult
    from regard.seq2seq.transducer import Transducer

    _Found = tuple[Transducer, list[TrainResult]]

__all__ = ["train"]

_HARDLY_BEGUN = 50  # steps
_HOW = ("device", "tensorboard", "save_every", "ensemble", "jobs")  # decide no weight

_TIMES = ("time_budget", "save_every")
_EXAMPLE = """
regard train g2p --preset quick --out g2p-model      # the lexicon that ships with regard
regard predict g2p-model ATTENTION
regard train g2p --language fre --data-dir sigmorphon2020-task1.tar.xz --out french
regard train pairs.tsv --out my-model --target-symbols spaces --time-budget 5m
"""


@click.command(cls=GroupedCommand, example=_EXAMPLE)
@click.argument("data", type=Where(no_dash=True))
@click.option("--out", required=True, type=Where(), help="Model directory to write.")
@click.option("--preset", type=click.Choice(["minute", "quick"]), help="For the recipe `g2p`.")
@click.option("--language", help="Of a recipe that has several.")
@click.option(
    "--data-dir",
    type=Where(no_dash=True),
    help="Where a recipe's data are, if they do not ship: a directory or a tar archive.",
)
@data_options
@model_options
@length_options
@learning_options
@machine_options
@output_options
def train(
    *, data: str, out: str, threads: int, resume: bool, force: bool, form: str, **given: Any
) -> int:
    """Train a model on DATA: a file of source<TAB>target lines, or a recipe.

    Recipes are copy, g2p, inflection, names and translate: data, settings, and the published
    results that are printed beside this one; a file that is called like one is written ./g2p.
    Several lines with one source give it several references. Text is brought to Unicode form
    NFC. Ctrl-C finishes the step and saves; --resume goes on from there, or from less than a
    minute before a kill, and ends with the same model. The scores are printed to stdout: error
    rates are in percent, lower is better.

    Several processes train one model, on one machine or on several:
    torchrun --nproc-per-node 4 -m regard train DATA --out DIR
    """
    from regard.seq2seq.clock import Clock

    clock = Clock(given["clock"] or "wall")  # the import of torch counts
    import torch

    from regard.cli.other_run import in_options
    from regard.cli.train_settings import task_of, warn_of_overlap
    from regard.seq2seq.same_run import OtherRunError
    from regard.seq2seq.train import SAVE_EVERY
    from regard.seq2seq.world import joined

    if resume and force:
        raise InputError(
            explain(
                "--resume and --force contradict each other",
                expected="one of the two",
                got="both",
                help="--resume goes on, --force begins anew",
            )
        )
    torch.set_num_threads(threads)
    world = joined(device=given["device"])
    if world.size > 1:
        # Said in so many words, the command means the same to one process.
        given["accumulate"] = given["accumulate"] or world.size
    command = _command(data, out, threads, given)
    how = {name: given.pop(name) for name in _HOW}
    task = task_of(data, **given)
    if world.is_first:
        warn_of_overlap(task.train, {"--dev": task.dev, "--test": task.test})
    options = {
        "directory": out,
        "force": force,
        "resume": resume,
        "made_by": {
            "command": command,
            "threads": threads,
            "dev": _source_of(task.dev),
            "test": _source_of(task.test),
        },
        "tensorboard": how["tensorboard"],
        "device": how["device"],
        "world": world,
        "clock": clock,
        "save_every": how["save_every"] or SAVE_EVERY,
    }
    go_on = f"go on with  {command} --resume"
    with before_stopping(lambda: go_on if _has_run(out) else None):
        members = how["ensemble"] or (task.members if world.size == 1 else 1)
        try:
            if members > 1:
                _refuse_for_ensemble(world.size, how["tensorboard"])
                together = {"members": members, "jobs": how["jobs"], "threads": threads}
                found = _trained_together(task, go_on, options | together)
            else:
                found = _trained(task, go_on, options)
        except OtherRunError as error:
            raise in_options(error, out) from error
        if isinstance(found, int):
            return found
        transducer, results = found
        if not world.is_first:
            return 0
        from regard.seq2seq.search import SearchSettings

        search = SearchSettings(task.beam)
        scores = {"dev": transducer.error_rates(task.dev, search=search)}
        if task.test is not None:
            scores["test"] = transducer.error_rates(task.test, search=search)
    _tell(scores, results, form, out)
    if task.recipe is not None and form == "text":
        from regard.seq2seq.recipes.beside import beside

        say(beside(task.recipe, scores["test"]))
    beam = f" --beam {task.beam}" if task.beam > 1 else ""
    steps, seconds = sum(r.steps for r in results), sum(r.seconds for r in results)
    passes = results[0].passes
    _advise(results, task.settings.train.time_budget, transducer.description.model.dropout)
    click.echo(
        f"{steps} steps, {seconds:.0f} CPU seconds of training, each pair read about "
        f"{passes:.1f} times{' by each model' * (len(results) > 1)}; model in {out}\n"
        f"made by   {command}\n"
        f"try it    regard predict {as_argument(out)}{beam} -i - < words.txt",
        err=True,
    )
    return 0


def _trained(task: "Task", go_on: str, options: dict[str, Any]) -> "_Found | int":
    """Train one model; return an exit code if the run was asked to stop."""
    from regard.cli.progress import TrainingProgress
    from regard.seq2seq.job import train_pairs
    from regard.seq2seq.train import InterruptedRun

    watch = _Watch()
    training = task.settings.train
    quiet = not options["world"].is_first
    try:
        with TrainingProgress(training.steps, budget=training.time_budget, quiet=quiet) as bar:

            def on_progress(event: "Progress") -> None:
                watch.take(event.loss)
                bar.show(event)

            transducer, result = train_pairs(
                task.train, task.dev, task.settings, on_progress=on_progress, **options
            )
    except InterruptedRun as stopped:
        if not quiet:
            of = "" if training.time_budget else f" of {training.steps}"
            click.echo(f"stopped after step {stopped.step}{of} and saved\n{go_on}", err=True)
        return 128 + stopped.signal
    watch.warn()
    return transducer, [result]


def _trained_together(task: "Task", go_on: str, options: dict[str, Any]) -> "_Found | int":
    """Train an ensemble; return an exit code if the run was asked to stop."""
    from regard.cli.progress import MembersProgress
    from regard.seq2seq.ensemble_job import train_ensemble
    from regard.seq2seq.train import InterruptedRun
    from regard.seq2seq.transducer import Transducer

    alone = ("tensorboard", "world")
    options = {name: value for name, value in options.items() if name not in alone}
    show = MembersProgress().show
    try:
        results = train_ensemble(
            task.train, task.dev, task.settings, on_progress=show, **options
        )
    except InterruptedRun as stopped:
        click.echo(f"stopped and saved\n{go_on}", err=True)
        return 128 + stopped.signal
    return Transducer.load(options["directory"]), results


def _refuse_for_ensemble(processes: int, tensorboard: str | None) -> None:
    if processes > 1 or tensorboard is not None:
        with_it = "torchrun" if processes > 1 else "--tensorboard"
        raise InputError(
            explain(
                f"--ensemble and {with_it} do not go together",
                expected="one of the two",
                got="both",
                because="members have processes of their own, and a log.csv each",
                help="--ensemble 1 trains one model",
            )
        )


def _tell(scores: dict[str, Any], results: "list[TrainResult]", form: str, out: str) -> None:
    """Print the scores."""
    from regard.cli.scores import score_lines, score_mapping

    if form == "json":
        report: dict[str, Any] = {"model": out}
        members = [
            {
                "steps": r.steps,
                "best_step": r.best_step,
                "averaged": list(r.averaged),
                "passes": round(r.passes, 2),
            }
            for r in results
        ]
        report |= members[0] if len(members) == 1 else {"members": members}
        report |= {name: score_mapping(rates) for name, rates in scores.items()}
        say(json.dumps(report, ensure_ascii=False))
        return
    for name, rates in scores.items():
        said = "held-out, the best weights were chosen on it" if name == "dev" else "test"
        say(f"{said}\n{score_lines(rates)}")


def _advise(results: "list[TrainResult]", budget: float, dropout: float) -> None:
    """Say what the length of the run should make one think about."""
    from regard.seq2seq.recipes.pairs import FEW_PASSES

    steps, passes = min(r.steps for r in results), results[0].passes
    if budget and steps < _HARDLY_BEGUN:
        click.echo(
            f"warning: the time was over after {steps} steps: the model has hardly begun to "
            "learn; give it more",
            err=True,
        )
    if dropout and passes < FEW_PASSES:
        click.echo(
            f"hint: each pair was read only about {passes:.1f} times; dropout ({dropout:g}) "
            "then tends to cost more than it brings: compare --dropout 0",
            err=True,
        )


class _Watch:
    """Notices a loss that ends far above where it began."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._mean = 0.0

    def take(self, loss: float) -> None:
        """Take the loss of a step, in nats a symbol."""
        if self._first is None:
            self._first = self._mean = loss
        self._mean = 0.9 * self._mean + 0.1 * loss

    def warn(self) -> None:
        """Say so on stderr."""
        # Twice and one nat: far more than the noise of single batches.
        if self._first is not None and self._mean > 2 * self._first + 1:
            click.echo(
                f"warning: the loss rose from {self._first:.3g} to {self._mean:.3g}: the "
                "model is of no use; train again with a smaller --learning-rate",
                err=True,
            )


def _has_run(out: str) -> bool:
    return any(os.path.exists(os.path.join(out, n)) for n in ("config.json", "ensemble.json"))


def _source_of(pairs: Any) -> dict[str, Any] | None:
    if pairs is None:
        return None
    return {"name": pairs.name, "pairs": len(pairs), "sha256": pairs.sha256}


def _command(data: str, out: str, threads: int, given: dict[str, Any]) -> str:
    """Return the command line that does the same again."""
    words = ["--out", out]
    for name, value in {**given, "threads": threads}.items():
        flag = "--" + name.replace("_", "-")
        if name == "header" and value is False:
            words.append("--no-header")
        elif value is True:
            words.append(flag)
        elif isinstance(value, tuple):
            words += [word for one in value for word in (flag, str(one))]
        elif value is not None and value is not False:
            words += [flag, f"{value:g}s" if name in _TIMES else str(value)]
    return f"regard train {as_argument(data)} {shlex.join(words)}"
