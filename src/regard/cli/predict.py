"""``regard predict``: rewrite texts with a trained model."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import THREADS, Number, Where
from regard.cli.streams import Sink, opened, written
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.transducer import Prediction, Transducer

__all__ = ["predict"]

# Would tear a line of the output apart; the backslash, so that it can be put together again.
_BREAKS = {ord("\t"): r"\t", ord("\n"): r"\n", ord("\r"): r"\r"}
_ESCAPES = {**_BREAKS, ord("\\"): r"\\"}
# A terminal obeys these: a text could clear the screen, or more.
_CONTROLS = {
    code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"
}
_WARNINGS = 20  # a file in the wrong script would print one for each of its lines

_EXAMPLE = """
regard predict my-model ATTENTION ALIGN
regard predict my-model --input words.txt --output answers.tsv --scores
echo ATTENTION | regard predict my-model --format json --align
"""


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("model", type=Where())
@click.argument("words", nargs=-1)
@click.option("-i", "--input", "source", type=Where(), help="A text a line; - is stdin.")
@click.option("-o", "--output", type=Where(), help="Where to write; default stdout, as -.")
@click.option("--force", is_flag=True, help="Write over the file --output.")
@click.option(
    "--format", "form", type=click.Choice(["tsv", "json"]), default="tsv", show_default=True
)
@click.option("--scores", is_flag=True, help="Add the natural logarithm of the probability.")
@click.option("--align", is_flag=True, help="Add where the model looked for each symbol.")
@click.option(
    "--longest",
    type=Number(int, 1, 100_000),
    default=2000,
    show_default=True,
    help="Symbols that a text may have; time and memory grow with the square.",
)
@click.option("--threads", type=THREADS, default=1, show_default=True)
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
    longest: int,
    threads: int,
) -> int:
    r"""Answer WORDS, or the lines of --input, or those of stdin, each as soon as it is read.

    A line out for every line in: source<TAB>target, with --scores a third column, with --align
    links source-target counted from 0, the most attended source symbol of each target symbol.
    --format json writes one object a line, with --align the whole matrix. An empty line is
    answered with an empty line. A tab, line end or backslash inside a source is written as
    \t, \n, \r or \\, except in JSON. A file --output appears when all is answered.
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
                help="leave --align out",
            )
        )
    # A stream that is not asked for plays no part.
    read_from = None if words else source or "-"
    with written(output, source=read_from, force=force) as out:
        write = _Writer(
            transducer,
            out,
            form=form,
            scores=scores,
            align=align,
            longest=longest,
            name="word" if words else f"{'stdin' if source in (None, '-') else source}, line",
        )
        for texts in _texts(words, source):
            write.answer(texts)
            out.flush()
    write.close()
    return 0


class _Writer:
    """Answers texts, keeps count of their lines, and warns."""

    def __init__(
        self,
        transducer: "Transducer",
        out: Sink,
        *,
        form: str,
        scores: bool,
        align: bool,
        longest: int,
        name: str,
    ) -> None:
        self._transducer = transducer
        self._out = out
        self._json = form == "json"
        self._scores = scores
        self._align = align
        self._longest = longest
        self._name = name
        self._line = 0
        self._warned = 0

    def answer(self, texts: Sequence[str]) -> None:
        """Answer some texts; those before one that is too long first."""
        split = self._transducer.description.source.split
        sizes = [len(split(text)) for text in texts]
        bad = next((i for i, size in enumerate(sizes) if size > self._longest), None)
        texts = texts[:bad]
        filled = [text for text, size in zip(texts, sizes, strict=False) if size]
        found = iter(self._transducer.predict(filled, need_weights=self._align))
        for size in sizes[:bad]:
            self._line += 1
            if not size:
                self._warn("is empty")
                self._out.write("\n")
                continue
            prediction = next(found)
            if prediction.unknown:
                shown = " ".join(repr(symbol) for symbol in prediction.unknown)
                self._warn(f"has symbols that the model never saw: {shown}")
            if not prediction.hypothesis.finished:
                self._warn("got an answer without an end, cut at the longest allowed")
            line = self._json_line(prediction) if self._json else self._tsv_line(prediction)
            self._out.write(line.translate(_CONTROLS) if self._out.is_terminal else line)
        if bad is not None:
            self._out.flush()
            raise InputError(
                explain(
                    f"{self._name} {self._line + 1}: the text is too long",
                    expected=f"at most {self._longest:,} symbols",
                    got=f"{sizes[bad]:,} symbols",
                    help="shorten it, or raise the bound with --longest",
                )
            )

    def _warn(self, text: str) -> None:
        self._warned += 1
        if self._warned <= _WARNINGS:
            click.echo(f"warning: input {self._line} {text}", err=True)

    def close(self) -> None:
        """Say how many warnings were held back."""
        if self._warned > _WARNINGS:
            click.echo(f"warning: {self._warned - _WARNINGS} more like these", err=True)

    def _tsv_line(self, prediction: "Prediction") -> str:
        fields = [prediction.source.translate(_ESCAPES), prediction.target.translate(_BREAKS)]
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
    with opened(source) as lines:
        yield from read_lines(lines, source or "stdin")
