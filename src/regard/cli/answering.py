"""Writing a model's answers, a line or more for every line in."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from regard.cli.streams import Sink
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.answers import Answer, Prediction
    from regard.seq2seq.rewriter import Rewriter
    from regard.seq2seq.search import Constraint, SearchSettings

__all__ = ["DONE", "Form", "Writer"]

# Would tear a line of the output apart; the backslash, so that it can be put together again.
_BREAKS = {ord("\t"): r"\t", ord("\n"): r"\n", ord("\r"): r"\r"}
_ESCAPES = {**_BREAKS, ord("\\"): r"\\"}
# A terminal obeys these: a text could clear the screen, or more.
_CONTROLS = {
    code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"
}
_WARNINGS = 20  # a file in the wrong script would print one for each of its lines
DONE = {
    "keep": "kept as something unknown",
    "copy": "copied where the model looks at it",
    "drop": "left out",
    "fail": "refused",
}
"""What becomes of symbols that the model never saw, by ``--unknown``."""


@dataclass(frozen=True)
class Form:
    """What a line of the output holds.

    Attributes
    ----------
    json : bool
        One object a text, rather than tab-separated columns.
    scores, align : bool
        Whether to add probabilities, and where the model looked.
    """

    json: bool
    scores: bool
    align: bool


class Writer:
    """Answers texts, keeps count of their lines, and warns.

    Parameters
    ----------
    transducer : Rewriter
    out : Sink
    form : Form
    search : SearchSettings
    constraint : Constraint or None
    unknown : str
        As :meth:`Rewriter.predict` takes it.
    longest : int
        Symbols that a text may have.
    name : str
        What to call an input in an error, before its number.

    Attributes
    ----------
    refused : int
        Texts that were too long to be answered.
    """

    def __init__(
        self,
        transducer: "Rewriter",
        out: Sink,
        *,
        form: Form,
        search: "SearchSettings",
        constraint: "Constraint | None",
        unknown: str,
        longest: int,
        name: str,
    ) -> None:
        self._transducer = transducer
        self._out = out
        self._form = form
        self._search = search
        self._constraint = constraint
        self._unknown = unknown
        self._longest = longest
        self._name = name
        self._line = 0
        self._warned = 0
        self._reported: set[str] = set()
        self._failed: list[str] = []
        self._with_unknown = 0
        self.refused = 0

    def answer(self, texts: Sequence[str]) -> None:
        """Answer some texts; where unknown symbols fail, those before the first first."""
        reasons = [self._reason(text) for text in texts]
        failing = next((i for i, reason in enumerate(reasons) if reason == "unknown"), None)
        texts, reasons = texts[:failing], reasons[:failing]
        found = iter(
            self._transducer.predict(
                [text for text, reason in zip(texts, reasons, strict=True) if not reason],
                search=self._search,
                constraint=self._constraint,
                unknown=self._unknown,
                need_weights=self._form.align,
            )
        )
        for text, reason in zip(texts, reasons, strict=True):
            self._line += 1
            if reason:
                self._refuse(text, reason)
                continue
            prediction = next(found)
            self._report(prediction)
            if self._form.json:
                self._write(self._object(prediction))
            else:
                for rank, answer in enumerate(prediction.answers, 1):
                    self._write(self._columns(prediction, rank, answer))
        if failing is not None:
            self._out.flush()
            raise self._unknown_symbols()

    def close(self) -> None:
        """Say how many warnings were held back."""
        if self._warned > _WARNINGS:
            click.echo(f"warning: {self._warned - _WARNINGS} more like these", err=True)
        if self._with_unknown > 1:
            click.echo(
                f"warning: {self._with_unknown} inputs have symbols that the model never saw, "
                f"{len(self._reported)} different ones",
                err=True,
            )

    def _reason(self, text: str) -> str:
        """Return why a text is not answered, or nothing."""
        vocab = self._transducer.description.source
        symbols = vocab.split(text)
        if not symbols:
            return "empty"
        if len(symbols) > self._longest:
            return "too long"
        if self._unknown in ("drop", "fail"):
            unknown = vocab.unknown(text)
            if unknown and self._unknown == "fail":
                self._failed = unknown
                return "unknown"
            if unknown and not set(symbols) - set(unknown):
                return "empty"
        return ""

    def _refuse(self, text: str, reason: str) -> None:
        if reason == "empty":
            self._warn("is empty" if not text else "has no symbol to answer")
        else:
            self.refused += 1
            size = len(self._transducer.description.source.split(text))
            self._warn(
                f"is too long and gets an empty answer: {size:,} symbols, "
                f"at most {self._longest:,} (--longest)"
            )
        if self._form.json:
            self._write(_json({"source": text, "target": "", "refused": reason}))
        else:
            # A line that was entirely empty stays so.
            self._write(self._source(text) + "\t" if text else "")

    def _report(self, prediction: "Prediction") -> None:
        if self._transducer.description.source.features:
            text, _, behind = prediction.source.partition("\t")
            if not (text.strip() and behind.strip()):
                lacking = "features behind a tab" if text.strip() else "text before the tab"
                self._warn(f"has no {lacking}; the model never saw the like")
        if prediction.unknown:
            self._with_unknown += 1
            new = [symbol for symbol in prediction.unknown if symbol not in self._reported]
            self._reported.update(new)
            if new:
                label = self._transducer.description.source.label
                shown = " ".join(repr(label(symbol)) for symbol in new)
                self._warn(
                    f"has symbols that the model never saw: {shown} ({DONE[self._unknown]})"
                )
        if not prediction.hypothesis.finished:
            self._warn("got an answer without an end, cut at the longest allowed")

    def _unknown_symbols(self) -> InputError:
        label = self._transducer.description.source.label
        return InputError(
            explain(
                f"{self._name} {self._line + 1}: the text has symbols that the model never saw",
                expected="symbols of the training data",
                got=" ".join(repr(label(symbol)) for symbol in self._failed[:10]),
                help="leave them out of the text, or choose --unknown keep, copy or drop",
            )
        )

    def _warn(self, text: str) -> None:
        self._warned += 1
        if self._warned <= _WARNINGS:
            click.echo(f"warning: input {self._line} {text}", err=True)

    def _write(self, line: str) -> None:
        shown = line.translate(_CONTROLS) if self._out.is_terminal else line
        self._out.write(shown + "\n")

    def _source(self, text: str) -> str:
        if not self._transducer.description.source.features:
            return text.translate(_ESCAPES)
        # Features are a column of their own, also where there are none.
        text, _, behind = text.partition("\t")
        return f"{text.translate(_ESCAPES)}\t{behind.translate(_ESCAPES)}"

    def _columns(self, prediction: "Prediction", rank: int, answer: "Answer") -> str:
        fields = [self._source(prediction.source), answer.target.translate(_BREAKS)]
        if self._search.nbest > 1:
            fields.append(str(rank))
        if self._form.scores:
            fields.append(f"{answer.hypothesis.log_prob:.4f}")
            if not self._search.ranking.plain:
                fields.append(f"{answer.hypothesis.score:.4f}")
        if self._form.align:
            fields.append(" ".join(f"{i}-{j}" for i, j in _links(answer)))
        return "\t".join(fields)

    def _object(self, prediction: "Prediction") -> str:
        answers = [self._answer(answer) for answer in prediction.answers]
        form: dict[str, Any] = {"source": prediction.source, **answers[0]}
        form["unknown"] = list(prediction.unknown)
        if self._form.align:
            label = self._transducer.description.source.label
            form["source_symbols"] = [label(symbol) for symbol in prediction.source_symbols]
        if self._search.nbest > 1:
            form["answers"] = answers
        return _json(form)

    def _answer(self, answer: "Answer") -> dict[str, Any]:
        hypothesis = answer.hypothesis
        form: dict[str, Any] = {
            "target": answer.target,
            "finished": hypothesis.finished,
            "log_prob": _number(hypothesis.log_prob),
            "score": _number(hypothesis.score),
        }
        if self._form.scores:
            form["log_probs"] = [_number(each) for each in hypothesis.log_probs]
        if self._form.align and hypothesis.weights is not None:
            label = self._transducer.description.target.label
            form["target_symbols"] = [label(symbol) for symbol in answer.target_symbols]
            form["links"] = _links(answer)
            form["weights"] = [
                [_number(round(float(w), 6)) for w in row] for row in hypothesis.weights
            ]
        return form


def _links(answer: "Answer") -> list[list[int]]:
    """Return, for each target symbol, the source symbol that was looked at most, and itself."""
    weights = answer.hypothesis.weights
    if weights is None:
        return []
    return [[int(row.argmax()), i] for i, row in enumerate(weights)]


def _number(value: float) -> float | None:
    """Return a number that JSON has; a model gone wrong may answer with others."""
    return value if math.isfinite(value) else None


def _json(form: dict[str, Any]) -> str:
    return json.dumps(form, ensure_ascii=False)
