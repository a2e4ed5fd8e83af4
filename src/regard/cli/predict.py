"""``regard predict``: rewrite texts with a trained model."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import LONGEST, THREADS, Number, Where
from regard.cli.search_options import (
    SEARCH_OPTIONS,
    chosen_constraint,
    chosen_search,
    search_options,
    unknown_option,
    with_option,
)
from regard.cli.streams import opened, written
from regard.errors import InputError, explain

__all__ = ["predict"]

_EXAMPLE = """
regard predict my-model ATTENTION ALIGN
regard predict my-model --input words.txt --output answers.tsv --beam 5 --scores
echo ATTENTION | regard predict my-model --format json --nbest 3 --align
"""


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("model", type=Where())
@click.argument("words", nargs=-1)
@click.option("-i", "--input", "source", type=Where(), help="A text a line; - is stdin.")
@click.option("-o", "--output", type=Where(), help="Where to write; default stdout, as -.")
@click.option("--force", is_flag=True, help="Write over the file --output.")
@with_option
@click.option(
    "--format", "form", type=click.Choice(["tsv", "json"]), default="tsv", show_default=True
)
@click.option("--scores", is_flag=True, help="Add the natural logarithm of the probability.")
@click.option("--align", is_flag=True, help="Add where the model looked for each symbol.")
@search_options
@unknown_option
@click.option(
    "--longest",
    type=Number(int, 1, 100_000),
    default=LONGEST,
    show_default=True,
    help="Symbols that a text may have; time and memory grow with the square.",
)
@click.option(
    "--runtime",
    type=click.Choice(["numpy", "onnx", "torch"]),
    help="What runs the model; default: what its files are made for.",
)
@click.option("--threads", type=THREADS, default=1, show_default=True)
def predict(
    *,
    model: str,
    words: tuple[str, ...],
    source: str | None,
    output: str | None,
    force: bool,
    more: tuple[str, ...],
    form: str,
    scores: bool,
    align: bool,
    unknown: str,
    longest: int,
    runtime: str | None,
    threads: int,
    allow: str | None,
    lexicon: str | None,
    **given: Any,
) -> int:
    r"""Answer WORDS, or the lines of --input, or those of stdin, each as soon as it is read.

    A line out for every line in: source<TAB>target, with --scores the log-probability and, with
    a penalty, the score, with --align links source-target counted from 0, the most attended
    source symbol of each target symbol. --nbest K writes up to K lines for each, with the rank
    as third column. A model with features reads text<TAB>features and writes both columns.
    --format json writes one object a line with everything, with --align the whole matrix.

    An empty line is answered with an empty line, a text that is too long with an empty answer,
    and the exit code is then 1. A tab, line end or backslash inside a source is written as \t,
    \n, \r or \\, except in JSON. A file --output appears when all is answered.

    MODEL is a model directory, or what `regard export` wrote, which runs without PyTorch.

    --unknown keep shows the model that something stood there; copy answers the symbol itself
    where the model looks at it; drop leaves it out; fail ends with an error.
    """
    from regard.cli.answering import Form, Writer
    from regard.seq2seq.runtimes import load, runtime_of, set_threads

    if words and source is not None:
        raise click.UsageError("give WORDS or --input, not both")
    set_threads(threads, runtime or runtime_of(model))
    search = chosen_search(**{name: given[name] for name in SEARCH_OPTIONS})
    transducer = load(model, *more, runtime=runtime)
    for flag, asked in (
        ("--align", align),
        ("--unknown copy", unknown == "copy"),
        ("--coverage-penalty", search.ranking.coverage > 0),
    ):
        if asked and not transducer.attends:
            raise _no_weights(model, flag)
    constraint = chosen_constraint(
        transducer.description,
        allow=allow,
        lexicon=lexicon,
        min_length=search.min_length,
        max_length=search.max_length,
    )
    # A stream that is not asked for plays no part.
    read_from = None if words else source or "-"
    with written(output, source=read_from, force=force) as out:
        write = Writer(
            transducer,
            out,
            form=Form(json=form == "json", scores=scores, align=align),
            search=search,
            constraint=constraint,
            unknown=unknown,
            longest=longest,
            name="word" if words else f"{'stdin' if source in (None, '-') else source}, line",
        )
        for texts in _texts(words, source):
            write.answer(texts)
            out.flush()
    write.close()
    return 1 if write.refused else 0


def _no_weights(model: str, flag: str) -> InputError:
    return InputError(
        explain(
            f"{model}: {flag} asks for weights that the model has not",
            expected="a model with attention",
            got='attention "none"',
            help=f"leave {flag} out",
        )
    )


def _texts(words: Sequence[str], source: str | None) -> Iterator[Sequence[str]]:
    from regard.seq2seq.lines import read_lines

    if words:
        yield words
        return
    with opened(source) as lines:
        yield from read_lines(lines, source or "stdin")
