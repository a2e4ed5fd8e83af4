"""Evaluating a model on pairs: error rates, where the errors are, and what the n best hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from regard.errors import InputError, explain
from regard.seq2seq.answers import Prediction
from regard.seq2seq.bootstrap import Interval, bootstrap
from regard.seq2seq.metrics import Counts, ErrorRates, counts
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.rewriter import Rewriter
from regard.seq2seq.search import Constraint, SearchSettings

__all__ = ["Evaluation", "LengthRow", "Mistake", "evaluate"]

_ROWS = 10  # of a table by length, at most about


class LengthRow(NamedTuple):
    """The sources of some lengths."""

    shortest: int
    longest: int
    """In symbols; both ends belong to the row."""

    rates: ErrorRates


class Mistake(NamedTuple):
    """A source with a wrong answer."""

    prediction: Prediction
    references: tuple[str, ...]
    counts: Counts


@dataclass(frozen=True)
class Evaluation:
    """Predictions beside their references.

    Attributes
    ----------
    predictions : tuple of Prediction
        One a source, all with the same number of answers or fewer.
    references : tuple of tuples of str
        The targets of each source.
    reference_symbols : tuple of tuples of tuples of str
        The same in symbols of the model's target vocabulary.
    """

    predictions: tuple[Prediction, ...]
    references: tuple[tuple[str, ...], ...]
    reference_symbols: tuple[tuple[tuple[str, ...], ...], ...]

    @cached_property
    def counts(self) -> tuple[Counts, ...]:
        """What each source adds to the rates."""
        return tuple(counts(self._symbols(0), self.reference_symbols))

    @cached_property
    def rates(self) -> ErrorRates:
        """Of the first answers."""
        return _rates(self.counts)

    @property
    def unfinished(self) -> int:
        """Sources whose first answer was cut at the longest allowed."""
        return sum(not prediction.hypothesis.finished for prediction in self.predictions)

    def interval(
        self, measure: str, *, level: float = 0.95, samples: int = 1000, seed: int = 0
    ) -> Interval:
        """Return a rate with its interval, as :func:`~regard.seq2seq.bootstrap.bootstrap`."""
        return bootstrap(
            self._symbols(0),
            self.reference_symbols,
            measure=measure,
            level=level,
            samples=samples,
            seed=seed,
        )

    def oracle(self) -> list[ErrorRates]:
        """Return the rates of the best answer among the first 1, 2, 3 ... of every source.

        The best is the one with the fewest edits. That is what a user can reach who picks an
        answer, or a second model that ranks them anew.
        """
        most = max(len(prediction.answers) for prediction in self.predictions)
        best = list(self.counts)
        found = [_rates(best)]
        for rank in range(1, most):
            # A source with fewer answers keeps the best it has.
            each = counts(self._symbols(rank), self.reference_symbols)
            best = [
                new if new.edits < old.edits else old
                for old, new in zip(best, each, strict=True)
            ]
            found.append(_rates(best))
        return found

    def by_length(self) -> list[LengthRow]:
        """Return the rates by the length of the source, in about ten rows."""
        lengths = [len(prediction.source_symbols) for prediction in self.predictions]
        width = _width(max(lengths) - min(lengths) + 1)
        rows: dict[int, list[Counts]] = {}
        for length, one in zip(lengths, self.counts, strict=True):
            rows.setdefault((length - 1) // width, []).append(one)
        return [
            LengthRow(row * width + 1, (row + 1) * width, _rates(rows[row]))
            for row in sorted(rows)
        ]

    def worst(self, count: int) -> list[Mistake]:
        """Return the wrong answers with the most edits; of equals, those most sure."""
        wrong = [
            Mistake(prediction, references, one)
            for prediction, references, one in zip(
                self.predictions, self.references, self.counts, strict=True
            )
            if one.edits
        ]
        wrong.sort(key=lambda m: (-m.counts.edits, -m.prediction.hypothesis.log_prob))
        return wrong[:count]

    def _symbols(self, rank: int) -> list[tuple[str, ...]]:
        return [
            prediction.answers[min(rank, len(prediction.answers) - 1)].target_symbols
            for prediction in self.predictions
        ]


def evaluate(
    transducer: Rewriter,
    pairs: Pairs,
    *,
    search: SearchSettings | None = None,
    constraint: Constraint | None = None,
    unknown: str = "keep",
) -> Evaluation:
    """Answer the sources of some pairs.

    Parameters
    ----------
    transducer : Rewriter
    pairs : Pairs
        Several with one source give it several references.
    search, constraint, unknown
        As :meth:`Rewriter.predict` takes them.

    Returns
    -------
    evaluation : Evaluation

    Raises
    ------
    InputError
        There is no pair, or as :meth:`Rewriter.predict` does.

    Notes
    -----
    Symbols are compared, not ids: a reference with a symbol that the model never saw can never
    be matched, and counts as an error.
    """
    if not pairs.items:
        raise InputError(
            explain("evaluate(): `pairs` is empty", expected="at least one pair", got="none")
        )
    references = pairs.references()
    target = transducer.description.target
    return Evaluation(
        tuple(
            transducer.predict(
                list(references),
                search=search,
                constraint=constraint,
                unknown=unknown,
                need_weights=False,
            )
        ),
        tuple(references.values()),
        tuple(
            tuple(tuple(target.split(text)) for text in texts) for texts in references.values()
        ),
    )


def _rates(each: Sequence[Counts]) -> ErrorRates:
    return ErrorRates(
        edits=sum(one.edits for one in each),
        symbols=sum(one.symbols for one in each),
        wrong=sum(one.edits > 0 for one in each),
        examples=len(each),
        right_positions=sum(one.right_positions for one in each),
    )


def _width(span: int) -> int:
    """Return a round number of lengths that makes about ten rows of `span`."""
    width = 1
    while span > _ROWS * width:  # 1, 2, 5, 10, 20, 50 ...
        width = width * 5 // 2 if str(width).startswith("2") else width * 2
    return width
