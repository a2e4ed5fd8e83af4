"""``regard train``: from a file of pairs to a model directory."""

import json
import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import STEPS, THREADS, Number, Where
from regard.cli.stop import before_stopping
from regard.cli.streams import say
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.train import Progress

__all__ = ["train"]

_KINDS = click.Choice(["chars", "spaces"])
_ATTENTIONS = click.Choice(["none", "bahdanau", "dot", "general", "concat"])

_SIZE = Number(int, 1, 10**9)
_EPOCHS = Number(float, 0, 10**6, open_low=True)
_RATE = Number(float, 0, 10**9, open_low=True)
_PATIENCE = Number(int, 0, 10**9)

_EXAMPLE = """
regard train g2p --preset quick --out g2p-model      # the lexicon that ships with regard
regard predict g2p-model ATTENTION
regard train pairs.tsv --out my-model --target-symbols spaces
"""


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("data", type=Where(no_dash=True))
@click.option("--out", required=True, type=Where(), help="Model directory to write.")
@click.option("--dev", type=Where(no_dash=True), help="Held-out pairs; default: cut from DATA.")
@click.option("--test", type=Where(no_dash=True), help="Pairs for the final score.")
@click.option("--preset", type=click.Choice(["minute", "quick"]), help="For a named recipe.")
@click.option("--symbols", type=_KINDS, help="How both sides are cut into symbols.")
@click.option("--source-symbols", type=_KINDS, help="The same for the source; default chars.")
@click.option("--target-symbols", type=_KINDS, help="The same for the target; default chars.")
@click.option("--no-nfc", is_flag=True, help="Leave the Unicode form of the text as it is.")
@click.option("--attention", type=_ATTENTIONS, help="Kind of attention; default bahdanau.")
@click.option("--hidden", type=_SIZE, help="Encoder state of one direction; default 96.")
@click.option("--state", type=_SIZE, help="Decoder state; default 160 (dot: twice --hidden).")
@click.option(
    "--dropout",
    type=Number(float, 0, 1, open_high=True),
    help="Default 0.1, and 0.3 below 10,000 pairs.",
)
@click.option("--steps", type=STEPS, help="Training steps; default: from the size of the data.")
@click.option("--epochs", type=_EPOCHS, help="Passes over the data, instead of --steps.")
@click.option("--batch-tokens", type=_SIZE, help="Symbols in a batch; default 1000.")
@click.option("--learning-rate", type=_RATE, help="At its highest; default 0.005.")
@click.option(
    "--patience", type=_PATIENCE, help="Looks without improvement before it ends; 0 never."
)
@click.option("--seed", type=Number(int, 0, 2**63 - 1), default=0, show_default=True)
@click.option("--threads", type=THREADS, default=1, show_default=True)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@click.option("--force", is_flag=True, help="Write over the run in --out.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def train(
    *, data: str, out: str, threads: int, resume: bool, force: bool, form: str, **given: Any
) -> int:
    """Train a model on DATA: a file of source<TAB>target lines, or the recipe `g2p`.

    A file that is called g2p is written ./g2p. Several lines with one source give it several
    references. Text is brought to Unicode form NFC. Ctrl-C finishes the step and saves;
    --resume goes on from there and ends with the same model. The scores are printed to stdout:
    error rates are in percent, lower is better.
    """
    import torch

    from regard.cli.progress import TrainingProgress
    from regard.cli.scores import score_lines, score_mapping
    from regard.seq2seq.job import train_pairs
    from regard.seq2seq.train import InterruptedRun

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
    command = _command(data, out, threads, given)
    pairs, dev, test, settings = _data_and_settings(data, **given)
    _warn_of_overlap(pairs, {"--dev": dev, "--test": test})
    made_by = {
        "command": command,
        "threads": threads,
        "dev": _source_of(dev),
        "test": _source_of(test),
    }
    go_on = f"go on with  {command} --resume"
    watch = _Watch()
    with before_stopping(lambda: go_on if _has_run(out) else None):
        try:
            with TrainingProgress(settings.train.steps) as progress:

                def on_progress(event: "Progress") -> None:
                    watch.take(event.loss)
                    progress.show(event)

                transducer, result = train_pairs(
                    pairs,
                    dev,
                    settings,
                    directory=out,
                    force=force,
                    resume=resume,
                    made_by=made_by,
                    on_progress=on_progress,
                )
        except InterruptedRun as stopped:
            click.echo(
                f"stopped after step {stopped.step} of {settings.train.steps} and saved\n"
                f"{go_on}",
                err=True,
            )
            return 128 + stopped.signal
        watch.warn()
        scores = {"dev": transducer.error_rates(dev)}
        if test is not None:
            scores["test"] = transducer.error_rates(test)
    if form == "json":
        report = {"model": out, "steps": result.steps, "best_step": result.best_step}
        report |= {name: score_mapping(rates) for name, rates in scores.items()}
        say(json.dumps(report, ensure_ascii=False))
    else:
        for name, rates in scores.items():
            said = "held-out, the best weights were chosen on it" if name == "dev" else "test"
            say(f"{said}\n{score_lines(rates)}")
    click.echo(
        f"{result.steps} steps, {result.seconds:.0f} CPU seconds of training; model in {out}\n"
        f"made by   {command}\n"
        f"try it    regard predict {shlex.quote(out)} -i - < words.txt",
        err=True,
    )
    return 0


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
    return os.path.exists(os.path.join(out, "config.json"))


def _data_and_settings(
    data: str,
    *,
    dev: str | None,
    test: str | None,
    preset: str | None,
    symbols: str | None,
    source_symbols: str | None,
    target_symbols: str | None,
    no_nfc: bool,
    attention: str | None,
    hidden: int | None,
    state: int | None,
    seed: int,
    **options: Any,
) -> Any:
    """Return training, held-out and test pairs, and the job's settings."""
    from regard.seq2seq.pairs import read_pairs
    from regard.seq2seq.recipes import g2p
    from regard.seq2seq.recipes.pairs import held_out_count, settings_for

    _refuse_together(attention, hidden, state, **options)
    if data == "g2p":
        _refuse_for_recipe(
            dev=dev,
            test=test,
            symbols=symbols,
            source_symbols=source_symbols,
            target_symbols=target_symbols,
            no_nfc=no_nfc or None,
            hidden=hidden,
            state=state,
            **{name: value for name, value in options.items() if name != "steps"},
        )
        lexicon = g2p.load()
        settings = g2p.settings(
            preset or "minute",
            attention=attention or "bahdanau",
            steps=options["steps"],
            seed=seed,
        )
        return lexicon.train, lexicon.dev, lexicon.test, settings
    if preset is not None:
        raise click.UsageError("--preset belongs to the recipe `g2p`, not to a file of pairs")
    pairs = read_pairs(data, nfc=not no_nfc)
    if dev is None:
        pairs, held_out = pairs.split(held_out_count(pairs), seed=seed)
    else:
        held_out = read_pairs(dev, nfc=not no_nfc)
    tested = None if test is None else read_pairs(test, nfc=not no_nfc)
    chosen = {
        "source_symbols": source_symbols or symbols,
        "target_symbols": target_symbols or symbols,
        "attention": attention,
        "d_hidden": hidden,
        "d_s": state,
        **options,
    }
    settings = settings_for(
        pairs,
        seed=seed,
        nfc=not no_nfc,
        **{name: value for name, value in chosen.items() if value is not None},
    )
    return pairs, held_out, tested, settings


def _refuse_together(
    attention: str | None, hidden: int | None, state: int | None, **options: Any
) -> None:
    """Refuse options that do not go together, by their own names."""
    if options["steps"] is not None and options["epochs"] is not None:
        raise InputError(
            explain(
                "--steps and --epochs both say how long to train",
                expected="one of the two",
                got=f"--steps {options['steps']} and --epochs {options['epochs']}",
                help="leave one out",
            )
        )
    twice = 2 * (hidden or 96)
    if attention == "dot" and state is not None and state != twice:
        raise InputError(
            explain(
                "--state does not fit --hidden, which dot attention needs",
                expected=f"--state {twice}, twice --hidden",
                got=f"--state {state}",
                help="leave --state out, or use --attention general",
            )
        )


def _refuse_for_recipe(**options: Any) -> None:
    given = [
        f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None
    ]
    if given:
        raise click.UsageError(f"the recipe `g2p` sets {', '.join(given)} itself")


def _warn_of_overlap(pairs: Any, others: dict[str, Any]) -> None:
    trained = pairs.references().keys()
    for flag, other in others.items():
        sources = other.references().keys() if other is not None else ()
        shared = sum(source in trained for source in sources)
        if shared:
            click.echo(
                f"warning: {shared} of the {len(sources)} sources of {flag} are trained on",
                err=True,
            )


def _source_of(pairs: Any) -> dict[str, Any] | None:
    if pairs is None:
        return None
    return {"name": pairs.name, "pairs": len(pairs), "sha256": pairs.sha256}


def _command(data: str, out: str, threads: int, given: dict[str, Any]) -> str:
    """Return the command line that does the same again."""
    words = ["regard", "train", data, "--out", out]
    for name, value in {**given, "threads": threads}.items():
        if value is True:
            words.append(_flag(name))
        elif value is not None and value is not False:
            words += [_flag(name), str(value)]
    return shlex.join(words)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
