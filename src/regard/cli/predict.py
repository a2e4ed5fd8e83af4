"""``regard predict``: rewrite texts with a trained model."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from regard.cli.example import ExampleCommand
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.transducer import Prediction, Transducer

__all__ = ["predict"]

_BREAKS = {ord(code): " " for code in "\t\n\r"}  # would tear a line of the output apart
_WARNINGS = 20  # a file in the wrong script would print one for each of its lines

_EXAMPLE = """
regard predict my-model ATTENTION ALIGN
regard predict my-model --input words.txt --output answers.tsv --scores
echo ATTENTION | regard predict my-model --format json --align
"""


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("model", type=click.Path())
@click.argument("words", nargs=-1)
@click.option("-i", "--input", "source", type=click.Path(), help="A text a line; - is stdin.")
@click.option("-o", "--output", type=click.Path(), help="Where to write; default stdout.")
@click.option("--force", is_flag=True, help="Write over the file --output.")
@click.option(
    "--format", "form", type=click.Choice(["tsv", "json"]), default="tsv", show_default=True
)
@click.option("--scores", is_flag=True, help="Add the natural logarithm of the probability.")
@click.option("--align", is_flag=True, help="Add where the model looked for each symbol.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
def predict(
    *,
    model: str,
    words: tuple[str, ...],
    source: str | None,
    output: str | None,
    force: bool,
    form: str,
    scores: bool,
    align: bool,
    threads: int,
) -> int:
    """Answer WORDS, or the lines of --input, or those of stdin, each as soon as it is read.

    A line out for every line in: source<TAB>target, with --scores a third column, with --align
    links source-target counted from 0, the most attended source symbol of each target symbol.
    --format json writes one object a line, with --align the whole matrix. An empty line is
    answered with an empty line.
    """
    import torch

    from regard.seq2seq.transducer import Transducer

    if words and source is not None:
        raise click.UsageError("give WORDS or --input, not both")
    torch.set_num_threads(threads)
    transducer = Transducer.load(model)
    if align and not transducer.model.attends:
        raise InputError(
            explain(
                f"{model}: --align asks for weights that the model has not",
                expected="a model with attention",
                got='attention "none"',
            )
        )
    write = _Writer(transducer, form=form, scores=scores, align=align)
    with _written(output, force) as out:
        for texts in _texts(words, source):
            write.answer(texts, out)
            out.flush()
    write.close()
    return 0


class _Writer:
    """Answers texts, keeps count of their lines, and warns."""

    def __init__(
        self, transducer: "Transducer", *, form: str, scores: bool, align: bool
    ) -> None:
        self._transducer = transducer
        self._json = form == "json"
        self._scores = scores
        self._align = align
        self._line = 0
        self._warned = 0

    def answer(self, texts: Sequence[str], out: IO[str]) -> None:
        split = self._transducer.description.source.split
        filled = [text for text in texts if split(text)]
        found = iter(self._transducer.predict(filled, need_weights=self._align))
        for text in texts:
            self._line += 1
            if not split(text):
                self._warn("is empty")
                out.write("\n")
                continue
            prediction = next(found)
            if prediction.unknown:
                shown = " ".join(repr(symbol) for symbol in prediction.unknown)
                self._warn(f"has symbols that the model never saw: {shown}")
            if not prediction.hypothesis.finished:
                self._warn("got an answer without an end, cut at the longest allowed")
            out.write(self._json_line(prediction) if self._json else self._tsv_line(prediction))

    def _warn(self, text: str) -> None:
        self._warned += 1
        if self._warned <= _WARNINGS:
            click.echo(f"warning: input {self._line} {text}", err=True)

    def close(self) -> None:
        """Say how many warnings were held back."""
        if self._warned > _WARNINGS:
            click.echo(f"warning: {self._warned - _WARNINGS} more like these", err=True)

    def _tsv_line(self, prediction: "Prediction") -> str:
        fields = [prediction.source.translate(_BREAKS), prediction.target]
        if self._scores:
            fields.append(f"{prediction.hypothesis.log_prob:.4f}")
        weights = prediction.hypothesis.weights
        if self._align and weights is not None:
            fields.append(" ".join(f"{row.argmax()}-{i}" for i, row in enumerate(weights)))
        return "\t".join(fields) + "\n"

    def _json_line(self, prediction: "Prediction") -> str:
        answer: dict[str, Any] = {
            "source": prediction.source,
            "target": prediction.target,
            "unknown": list(prediction.unknown),
            "finished": prediction.hypothesis.finished,
        }
        if self._scores:
            answer["log_prob"] = prediction.hypothesis.log_prob
        weights = prediction.hypothesis.weights
        if self._align and weights is not None:
            answer["source_symbols"] = list(prediction.source_symbols)
            answer["target_symbols"] = list(prediction.target_symbols)
            answer["weights"] = [[round(float(w), 6) for w in row] for row in weights]
        return json.dumps(answer, ensure_ascii=False) + "\n"


def _texts(words: Sequence[str], source: str | None) -> Iterator[Sequence[str]]:
    from regard.seq2seq.lines import read_lines

    if words:
        yield words
        return
    with _opened(source) as lines:
        yield from read_lines(lines, source or "stdin")


@contextmanager
def _opened(source: str | None) -> Iterator[IO[bytes]]:
    if source is None or source == "-":
        if sys.stdin.isatty():
            click.echo("type one text a line; Ctrl-D ends", err=True)
        yield sys.stdin.buffer
        return
    try:
        stream = open(source, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(
            explain(
                f"{source}: the file cannot be read",
                expected="a readable file, one text a line",
                got=error.strerror or str(error),
            )
        ) from error
    with stream:
        yield stream


@contextmanager
def _written(output: str | None, force: bool) -> Iterator[IO[str]]:
    if output is None:
        yield sys.stdout
        return
    with _created(output, force) as out:
        yield out


def _created(output: str, force: bool) -> IO[str]:
    try:
        return open(output, "w" if force else "x", encoding="utf-8", newline="\n")
    except FileExistsError as error:
        raise InputError(
            explain(
                f"{output}: the file exists",
                expected="a new name",
                got="an existing file",
                help="--force writes over it",
            )
        ) from error
    except OSError as error:
        raise InputError(
            explain(
                f"{output}: the file cannot be written",
                expected="a place with write permission",
                got=error.strerror or str(error),
            )
        ) from error
