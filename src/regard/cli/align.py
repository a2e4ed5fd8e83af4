"""``regard align``: links between two sentences, scored, combined and converted."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from regard.alignment.symmetrize import METHODS
from regard.cli.align_train import links, train
from regard.cli.align_weights import extract
from regard.cli.align_words import words
from regard.cli.example import ExampleCommand, write_example
from regard.cli.options import Number, Where
from regard.cli.streams import refuse_existing, say
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.alignment.link_files import LinkFile
    from regard.alignment.score import AlignmentScore

__all__ = ["align"]

_FORMATS = click.Choice(["pharaoh", "naacl"])
_BASE = click.Choice(["0", "1"])
_SENTENCES = click.option(
    "--sentences",
    type=Number(int, 1, 10_000_000),
    help="How many there are; a NAACL file does not say so of those without links at its end.",
)
_MEASURES = ("precision", "recall", "f1", "aer")

_GROUP = """
regard align train corpus.tsv --out aligner          # source<TAB>target, no gold needed
regard align links aligner corpus.tsv --out links.txt
regard align score gold.txt links.txt
"""
_SCORE = """
regard align score gold.txt system.txt
regard align score gold.naacl forward.txt backward.txt --text pairs.tsv --per-sentence
"""
_SYMMETRIZE = """
regard align symmetrize forward.txt backward.txt --method grow-diag-final --out both.txt
"""
_CONVERT = """
regard align convert gold.txt --to naacl --out gold.naacl
"""


class _Group(click.Group):
    """A group whose help begins with a working example."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_example(_GROUP, formatter)
        super().format_help(ctx, formatter)


@click.group(cls=_Group)
def align() -> None:
    """Links between two sentences: find them, score them against gold, combine, convert.

    Files are Pharaoh's (a sentence a line, `0-0 1-2`; possible links `1p2` or `1-2-P`) or
    NAACL's (a link a line, `sentence source target S`), plain or .gz. What a file counts from
    is worked out and said.
    """


align.add_command(train)
align.add_command(links)


@align.command(cls=ExampleCommand, example=_SCORE)
@click.argument("gold", type=Where(no_dash=True))
@click.argument("systems", nargs=-1, required=True, type=Where(no_dash=True))
@click.option("--gold-base", type=_BASE, help="What GOLD counts from; default: worked out.")
@click.option("--base", type=_BASE, help="What the systems count from; default: worked out.")
@click.option("--gold-target-first", is_flag=True, help="GOLD writes target-source.")
@click.option("--target-first", is_flag=True, help="The systems write target-source.")
@click.option(
    "--text", type=Where(no_dash=True), help="source<TAB>target or source ||| target."
)
@_SENTENCES
@click.option("--per-sentence", is_flag=True, help="Add a line for each sentence.")
@click.option("--level", type=Number(float, 0, 1, open_low=True, open_high=True), default=0.95)
@click.option("--seed", type=Number(int, 0, 2**31), default=0, show_default=True)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def score(
    *,
    gold: str,
    systems: tuple[str, ...],
    gold_base: str | None,
    base: str | None,
    gold_target_first: bool,
    target_first: bool,
    text: str | None,
    sentences: int | None,
    per_sentence: bool,
    level: float,
    seed: int,
    form: str,
) -> int:
    """Score SYSTEMS against GOLD: precision, recall, F1 and alignment error rate (AER).

    In percent, with the bootstrap confidence interval of AER over sentences. A file whose links
    would fit far better with the sides exchanged or counted otherwise is named: exit code 1.
    """
    from regard.alignment.link_files import read_links
    from regard.alignment.links import Gold
    from regard.alignment.score import score_alignments
    from regard.alignment.traps import traps

    sizes = None if text is None else _sizes(text)
    given: dict[str, Any] = {"sizes": sizes, "sentences": sentences}
    answers = read_links(gold, base=_number(gold_base), target_first=gold_target_first, **given)
    _say_guess(gold, answers)
    rows: list[tuple[str, AlignmentScore]] = []
    suspected = False
    for path in systems:
        found = read_links(path, base=_number(base), target_first=target_first, **given)
        _say_guess(path, found)
        count = _common_count((gold, answers), (path, found))
        golds = _filled(answers.sentences, count, Gold.of(()))
        links = _filled(found.links(), count, frozenset())
        rows.append((path, score_alignments(golds, links)))
        trap = traps(golds, links)
        if trap is not None:
            suspected = True
            click.echo(f"warning: {path}: {trap}", err=True)
    if form == "json":
        say(json.dumps([_mapping(path, it, level, seed, per_sentence) for path, it in rows]))
    else:
        _print(rows, level, seed, per_sentence)
    return 1 if suspected else 0


@align.command(cls=ExampleCommand, example=_SYMMETRIZE)
@click.argument("forward", type=Where(no_dash=True))
@click.argument("backward", type=Where(no_dash=True))
@click.option("--method", type=click.Choice(METHODS), default="grow-diag-final")
@_SENTENCES
@click.option("--base", type=_BASE, help="What both files count from; default: worked out.")
@click.option("--backward-target-first", is_flag=True, help="BACKWARD writes target-source.")
@click.option("--out", type=Where(), required=True, help="File to write, Pharaoh's, from 0.")
@click.option("--force", is_flag=True, help="Write over the file --out.")
def symmetrize(
    *,
    forward: str,
    backward: str,
    method: Any,
    sentences: int | None,
    base: str | None,
    backward_target_first: bool,
    out: str,
    force: bool,
) -> int:
    """Combine the links of two directions, FORWARD and BACKWARD, sentence by sentence."""
    from regard.alignment.link_files import read_links, write_links
    from regard.alignment.symmetrize import symmetrize as combined

    refuse_existing(out, force, forward, backward)
    given: dict[str, Any] = {"base": _number(base), "sentences": sentences}
    one = read_links(forward, **given)
    other = read_links(backward, target_first=backward_target_first, **given)
    for path, read in ((forward, one), (backward, other)):
        _say_guess(path, read)
    count = _common_count((forward, one), (backward, other))
    sides = (_filled(side.links(), count, frozenset()) for side in (one, other))
    pairs = zip(*sides, strict=True)
    write_links(out, [combined(a, b, method) for a, b in pairs])
    return 0


@align.command(cls=ExampleCommand, example=_CONVERT)
@click.argument("links", type=Where(no_dash=True))
@click.option("--to", "form", type=_FORMATS, required=True, help="Format to write.")
@click.option("--base", type=_BASE, help="What LINKS counts from; default: worked out.")
@click.option("--target-first", is_flag=True, help="LINKS writes target-source.")
@_SENTENCES
@click.option("--out-base", type=_BASE, help="What to count from; default: the format's own.")
@click.option("--out", type=Where(), required=True, help="File to write.")
@click.option("--force", is_flag=True, help="Write over the file --out.")
def convert(
    *,
    links: str,
    form: Any,
    base: str | None,
    target_first: bool,
    sentences: int | None,
    out_base: str | None,
    out: str,
    force: bool,
) -> int:
    """Write LINKS in another format, or counted from another number.

    Confidences stay where the output is NAACL's, the only format that has them.
    """
    from regard.alignment.link_files import read_links, write_links

    refuse_existing(out, force, links)
    if form == "naacl" and out_base == "0":
        raise InputError(
            explain(
                "--out-base 0: the NAACL format counts from 1",
                expected="--out-base 1, or none",
                got="0",
                because="a position 0 stands for no word there",
            )
        )
    read = read_links(links, base=_number(base), target_first=target_first, sentences=sentences)
    _say_guess(links, read)
    write_links(
        out,
        read.sentences,
        format=form,
        base=_number(out_base),
        confidences=read.confidences,
    )
    _say_lost(read, form)
    return 0


align.add_command(words)
align.add_command(extract)


def _number(base: str | None) -> int | None:
    return None if base is None else int(base)


def _say_guess(path: str, read: "LinkFile") -> None:
    if read.guessed:
        click.echo(f"{path}: {read.guessed}", err=True)


def _say_lost(read: "LinkFile", form: str) -> None:
    """Say what the format that was written cannot hold."""
    count = len(read.sentences)
    last = max((i for i, gold in enumerate(read.sentences, 1) if gold.possible), default=0)
    if form == "naacl" and last < count:
        click.echo(
            f"the last {count - last} sentences have no links, which a NAACL file does not "
            f"say: read it with --sentences {count}",
            err=True,
        )
    sure = sum(map(len, read.confidences))
    if form != "naacl" and sure:
        click.echo(
            f"the confidences of {sure} links are left out: Pharaoh's format has none", err=True
        )


def _common_count(*files: tuple[str, "LinkFile"]) -> int:
    """Return how many sentences two files have; NAACL's may leave out the last ones."""
    count = max(len(read.sentences) for _, read in files)
    for path, read in files:
        if len(read.sentences) == count:
            continue
        if read.format != "naacl":
            raise InputError(
                explain(
                    f"{path}: another number of sentences",
                    expected=f"{count} sentence pairs, as in the other file",
                    got=str(len(read.sentences)),
                    help="a sentence without links is an empty line",
                )
            )
        click.echo(
            f"{path}: no links from sentence {len(read.sentences) + 1} to {count}", err=True
        )
    return count


def _filled(sentences: Sequence[Any], count: int, empty: Any) -> list[Any]:
    return [*sentences, *[empty] * (count - len(sentences))]


def _sizes(path: str) -> list[tuple[int, int]]:
    """Count the words of every sentence pair of a text."""
    from regard.aligner.corpus import read_pairs

    return read_pairs(path).sizes


def _mapping(
    path: str, score: "AlignmentScore", level: float, seed: int, per_sentence: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {"system": path, "sentences": len(score.counts)}
    found |= {"links": score.links, "sure": score.sure}
    for measure in _MEASURES:
        interval = score.interval(measure, level=level, seed=seed)
        found[measure] = getattr(score, measure)
        found[f"{measure}_interval"] = [interval.low, interval.high]
    found["level"] = level
    if per_sentence:
        found["per_sentence"] = [
            dict(zip(_MEASURES, row, strict=True)) for row in score.sentences().tolist()
        ]
    return found


def _print(
    rows: Sequence[tuple[str, "AlignmentScore"]], level: float, seed: int, per_sentence: bool
) -> None:
    width = max(len(path) for path, _ in rows)
    say(f"{'':<{width}}  precision  recall     F1    AER  {100 * level:g} % interval  links")
    for path, score in rows:
        interval = score.interval(level=level, seed=seed)
        say(
            f"{path:<{width}}  {100 * score.precision:9.1f} {100 * score.recall:7.1f} "
            f"{100 * score.f1:6.1f} {100 * score.aer:6.1f}  "
            f"{100 * interval.low:5.1f} to {100 * interval.high:4.1f}  {score.links:5d}"
        )
    if per_sentence:
        for path, score in rows:
            say(f"\n{path}\nsentence  precision  recall     F1    AER")
            for number, row in enumerate(score.sentences().tolist(), 1):
                cells = "  ".join(f"{100 * value:5.1f}" for value in row)
                say(f"{number:8d}      {cells}")
