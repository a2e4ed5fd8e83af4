"""``regard align train`` and ``regard align links``: an aligner, and the links it finds."""

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from regard.alignment.symmetrize import METHODS as SYMMETRISED
from regard.cli.example import RecordedCommand, as_given
from regard.cli.options import THREADS, Number, Where
from regard.cli.stop import before_stopping
from regard.cli.streams import say, written
from regard.cli.train_options import Duration
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.aligner.train import Passed

__all__ = ["links", "train"]

_TRAIN = """
regard align train corpus.tsv --out aligner            # a pair a line, source<TAB>target
regard align train corpus.en corpus.fr --out aligner   # or two files, line by line
regard align train corpus.tsv --out aligner --time-budget 2m
"""
_LINKS = """
regard align links aligner corpus.tsv --out links.txt
regard align links aligner corpus.tsv --method grow-diag-final-and --out links.txt
regard align links aligner few.tsv --matrices few.jsonl && regard show few.jsonl
"""
_METHODS = ("agreeing", "mutual", "itermax", "forward", "backward", *SYMMETRISED)


@click.command(cls=RecordedCommand, example=_TRAIN)
@click.argument("corpus", type=Where(no_dash=True))
@click.argument("target", type=Where(no_dash=True), required=False)
@click.option("--out", required=True, type=Where(), help="Directory to write.")
@click.option("--epochs", type=Number(int, 2, 1000), help="Passes over CORPUS; default 15.")
@click.option("--time-budget", type=Duration(), help="Instead of --epochs: 90s, 5m.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="What --time-budget counts.",
)
@click.option(
    "--sparsity",
    type=Number(float, 0, 10, open_low=True),
    help="Prior counts of each word pair: less means fewer translations a word.",
)
@click.option(
    "--spelling",
    type=Number(float, 0, 1000),
    help="Prior counts of two words spelled the same; 0 where spelling means nothing.",
)
@click.option(
    "--empty",
    type=Number(float, 0, 1, open_low=True, open_high=True),
    help="Share of words without a partner.",
)
@click.option("--no-agree", is_flag=True, help="Let each direction learn for itself.")
@click.option("--seed", type=Number(int, 0, 2**63 - 1), default=0, show_default=True)
@click.option("--threads", type=THREADS, default=1, show_default=True)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@click.option("--force", is_flag=True, help="Write over the run in --out.")
def train(
    *,
    corpus: str,
    target: str | None,
    out: str,
    epochs: int | None,
    time_budget: float | None,
    clock: str,
    threads: int,
    resume: bool,
    force: bool,
    no_agree: bool,
    **given: Any,
) -> int:
    """Train an aligner of words on CORPUS: sentences and their translations.

    No gold links are needed and none are looked at, so give it all text there is, that to be
    aligned included. Words are what white space separates; they are compared in lower case.
    A pass over the corpus is kept when it is finished: --resume goes on from the last one and
    ends with the same aligner.
    """
    from regard.seq2seq.clock import Clock

    counting = Clock(clock)
    import torch

    from regard.aligner.corpus import read_pairs
    from regard.aligner.settings import AlignerSettings
    from regard.aligner.train import train_aligner
    from regard.seq2seq.events import InterruptedRun

    if resume and force:
        raise _contradiction("--resume", "--force", "--resume goes on, --force begins anew")
    if epochs is not None and time_budget is not None:
        raise _contradiction("--epochs", "--time-budget", "passes are counted, or time is")
    torch.set_num_threads(threads)
    chosen = {name: value for name, value in given.items() if value is not None}
    if epochs is not None:
        chosen["epochs"] = epochs
    settings = AlignerSettings(time_budget=time_budget or 0.0, agree=not no_agree, **chosen)
    command = shlex.join(["regard", "align", "train", *as_given()])
    pairs = read_pairs(corpus, target)
    go_on = f"go on with  {command}{'' if resume else ' --resume'}"
    try:
        with before_stopping(lambda: go_on):
            trained = train_aligner(
                pairs,
                settings,
                directory=out,
                force=force,
                resume=resume,
                made_by={"command": command, "threads": threads},
                on_progress=_Progress(settings.epochs if not time_budget else 0).show,
                clock=counting,
            )
    except InterruptedRun as stopped:
        click.echo(f"stopped; {stopped.step} whole passes are kept\n{go_on}", err=True)
        return 128 + stopped.signal
    learned = trained.learned
    unit = "CPU seconds" if clock == "cpu" else "seconds"
    say(
        f"{len(pairs)} sentence pairs, {len(learned.log)} passes, {learned.seconds:.1f} "
        f"{unit}, log-likelihood {learned.log[-1][1]:.3f} nats a word"
    )
    text = shlex.join([corpus] if target is None else [corpus, target])
    click.echo(f"try it    regard align links {shlex.quote(out)} {text}", err=True)
    return 0


@click.command(cls=RecordedCommand, example=_LINKS)
@click.argument("directory", type=Where(no_dash=True))
@click.argument("corpus", type=Where(no_dash=True))
@click.argument("target", type=Where(no_dash=True), required=False)
@click.option(
    "--out", type=Where(), help="File of links; default: stdout, or none with --matrices."
)
@click.option(
    "--method",
    type=click.Choice(_METHODS),
    default="agreeing",
    show_default=True,
    help="How links are read from what both directions believe.",
)
@click.option(
    "--threshold",
    type=Number(float, 0, 1, open_low=True),
    help="The least belief that makes a link; less makes more of them.",
)
@click.option(
    "--matrices", type=Where(no_dash=True), help="File for `regard show`: .json, .jsonl, .npz."
)
@click.option(
    "--direction",
    type=click.Choice(["forward", "backward"]),
    default="forward",
    show_default=True,
    help="Of --matrices: the target's words look at the source's, or backward.",
)
@click.option("--threads", type=THREADS, default=1, show_default=True)
@click.option("--force", is_flag=True, help="Write over files that exist.")
def links(
    *,
    directory: str,
    corpus: str,
    target: str | None,
    out: str | None,
    method: str,
    threshold: float | None,
    matrices: str | None,
    direction: Any,
    threads: int,
    force: bool,
) -> int:
    """Link the words of CORPUS with the aligner in DIRECTORY.

    One line a sentence pair, `source-target` from 0: `0-0 1-2`. CORPUS is what the aligner was
    trained on, or other text in the same languages; of words that it never saw it knows the
    spelling and the place only.
    """
    import torch

    from regard.aligner.corpus import read_pairs
    from regard.aligner.links import LEAST
    from regard.aligner.trained import TrainedAligner
    from regard.alignment.collection_files import write_collection
    from regard.alignment.link_files import link_lines

    torch.set_num_threads(threads)
    aligner = TrainedAligner.load(directory)
    pairs = read_pairs(corpus, target)
    if matrices is not None:
        made_by = {"command": shlex.join(["regard", "align", "links", *as_given()])}
        records = aligner.records(pairs, direction=direction, made_by=made_by)
        write_collection(matrices, records, force=force)
        if out is None:
            return 0
    found = aligner.links(pairs, method, LEAST if threshold is None else threshold)
    with written(out, source=corpus, force=force, example="links.txt") as sink:
        for line in link_lines(found):
            sink.write(line + "\n")
    return 0


class _Progress:
    """Says how far a run is: one line that is written over in a terminal, else one a pass."""

    def __init__(self, passes: int) -> None:
        self._of = f"/{passes}" if passes else ""
        self._live = sys.stderr.isatty()

    def show(self, passed: "Passed") -> None:
        """Take one event."""
        if not (self._live or passed.whole):
            return
        likelihood = (
            "" if passed.likelihood is None else f"  {passed.likelihood:.3f} nats a word"
        )
        left = passed.seconds * (1 / passed.share - 1) if passed.share > 0.02 else 0.0
        line = f"pass {passed.passes}{self._of}{likelihood}"
        if left >= 1:
            line += f"  about {left:.0f} s left"
        end = "\n" if passed.whole else ""
        sys.stderr.write(f"\r\x1b[K{line}{end}" if self._live else f"{line}{end}")
        sys.stderr.flush()


def _contradiction(one: str, other: str, because: str) -> InputError:
    return InputError(
        explain(
            f"{one} and {other} contradict each other",
            expected="one of the two",
            got="both",
            help=because,
        )
    )
