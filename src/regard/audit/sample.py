"""The inputs of an audit, what the model says of them, and every further question to it.

Questions go out in batches of one length or nearly so, each only once: erasing the token with
the largest weight is also one of leave-one-out's questions. Of an answer only what tests read
is kept, so that a vocabulary of thousands of classes costs no memory.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.audit.distances import jensen_shannon, total_variation
from regard.audit.inputs import Input
from regard.audit.protocol import Case, Numbers, Overridable, ReadsOut, numbers
from regard.errors import ShapeError, explain

__all__ = ["Effects", "Sample", "asked_in_batches", "probabilities", "read_with"]

BATCH_TOKENS = 8192


@dataclass(frozen=True)
class Effects:
    """What altered inputs or weights did to the answers; each (asked,).

    Attributes
    ----------
    drop : probability of the class first predicted, before minus after: -1 to 1
    moved : total variation distance between the answers, 0 to 1
    divergence : Jensen-Shannon divergence between the answers, 0 to 0.693
    flipped : whether another class is now predicted
    """

    drop: Numbers
    moved: Numbers
    divergence: Numbers
    flipped: NDArray[np.bool_]


class Sample:
    """Inputs with the model's own answers and weights.

    Parameters
    ----------
    case : Case
        Whose weights have been checked (:mod:`regard.audit.capture`).
    inputs : sequence of Input
    seed : int
        Of everything drawn; each input has streams of its own, so that a test gives the same
        whether it runs on all inputs at once or on some at a time.
    batch_tokens : int
        Tokens in a batch, padding included.

    Attributes
    ----------
    probabilities : (n, classes)
    predicted : (n,) int
        The likeliest class of each input.
    weights : list of (T_enc,)
    asked : int
        Inputs the model has answered.
    """

    def __init__(
        self,
        case: Case,
        inputs: Sequence[Input],
        *,
        seed: int = 0,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self.case = case
        self.inputs = list(inputs)
        self.seed = seed
        self._batch_tokens = batch_tokens
        self.asked = 0
        self._known: dict[tuple[int, tuple[str, ...]], tuple[float, float, float, bool]] = {}
        self._scores: dict[int, tuple[Numbers, Numbers]] = {}
        self.probabilities = np.stack(self._answers(self.inputs))
        self.predicted = self.probabilities.argmax(-1)
        self.weights: list[Numbers] = [
            numbers(row, "weights()") for row in self._in_batches(case.weights, self.inputs)
        ]
        self._words: list[str] | None = None

    def __len__(self) -> int:
        """Return how many inputs there are."""
        return len(self.inputs)

    @property
    def rereads(self) -> bool:
        """Whether other weights can be tried."""
        return isinstance(self.case, Overridable | ReadsOut)

    def random(self, number: int, what: str) -> np.random.Generator:
        """Return a stream for one input and one purpose."""
        return np.random.default_rng([self.seed, number, zlib.crc32(what.encode())])

    @property
    def words(self) -> list[str]:
        """All tokens that may be erased, as often as they occur: what resampling draws from."""
        if self._words is None:
            self._words = [one.tokens[i] for one in self.inputs for i in one.free]
        return self._words

    def effects(self, asked: Sequence[tuple[int, Input]]) -> Effects:
        """Return what altered inputs did, each compared with the input of that number."""
        new: dict[tuple[int, tuple[str, ...]], Input] = {}
        for number, one in asked:
            key = (number, one.tokens)
            if key not in self._known and key not in new:
                new[key] = one
        keys = list(new)
        for some, answers in self._batches(self.case.predict, list(new.values())):
            numbers = [keys[k][0] for k in some]
            found = self._compared(numbers, answers)
            for row, k in enumerate(some):
                self._known[keys[k]] = (
                    float(found.drop[row]),
                    float(found.moved[row]),
                    float(found.divergence[row]),
                    bool(found.flipped[row]),
                )
        return _effects([self._known[number, one.tokens] for number, one in asked])

    def reread(self, asked: Sequence[tuple[int, Numbers]]) -> Effects:
        """Return what other weights (T_enc,) did, everything before them unchanged.

        A read-out answers exactly and at once; without one the model runs again.
        """
        if isinstance(self.case, ReadsOut):
            parts = [
                self._compared([number], read_with(*self.scores(number), weights[None]))
                for number, weights in asked
            ]
            return _joined(parts)
        case = self.case
        assert isinstance(case, Overridable)  # asked of by `rereads`
        rows = [weights for _, weights in asked]
        inputs = [self.inputs[number] for number, _ in asked]
        found: dict[int, Effects] = {}
        for some in _batches_of([len(one.tokens) for one in inputs], self._batch_tokens):
            answers = case.predict_with([inputs[k] for k in some], [rows[k] for k in some])
            self.asked += len(some)
            compared = self._compared([asked[k][0] for k in some], probabilities(answers))
            for row, k in enumerate(some):
                found[k] = _part(compared, slice(row, row + 1))
        return _joined([found[k] for k in range(len(asked))])

    def reread_many(self, numbers: Sequence[int], weights: Sequence[Numbers]) -> list[Effects]:
        """Return what many rows of weights (m, T_enc) did to each of some inputs."""
        if isinstance(self.case, ReadsOut):
            return [
                self._compared([number] * len(rows), read_with(*self.scores(number), rows))
                for number, rows in zip(numbers, weights, strict=True)
            ]
        asked = [
            (number, row) for number, rows in zip(numbers, weights, strict=True) for row in rows
        ]
        all_ = self.reread(asked)
        ends = np.cumsum([len(rows) for rows in weights]).tolist()
        return [
            _part(all_, slice(end - len(rows), end))
            for end, rows in zip(ends, weights, strict=True)
        ]

    def scores(self, number: int) -> tuple[Numbers, Numbers]:
        """Return an input's read-out: what each token adds (T_enc, outputs), and the bias."""
        if not self._scores:
            case = self.case
            assert isinstance(case, ReadsOut)
            for k, read in enumerate(self._in_batches(case.read_out, self.inputs)):
                self._scores[k] = read.scores, np.asarray(read.b, dtype=np.float64)
        return self._scores[number]

    def per_input(self, call: Callable[[Sequence[Input]], Any], chunk: Sequence[int]) -> Any:
        """Call a case's method for some inputs, in batches; the list is in their order."""
        return self._in_batches(call, [self.inputs[number] for number in chunk])

    def _compared(self, numbers: Sequence[int], answers: Numbers) -> Effects:
        before = self.probabilities[list(numbers)]
        classes = self.predicted[list(numbers)]
        rows = np.arange(len(numbers))
        return Effects(
            drop=before[rows, classes] - answers[rows, classes],
            moved=total_variation(before, answers),
            divergence=jensen_shannon(before, answers),
            flipped=answers.argmax(-1) != classes,
        )

    def _answers(self, inputs: Sequence[Input]) -> list[Numbers]:
        found: dict[int, Numbers] = {}
        for some, answers in self._batches(self.case.predict, inputs):
            found |= dict(zip(some, answers, strict=True))
        return [found[k] for k in range(len(inputs))]

    def _batches(
        self, call: Callable[[Sequence[Input]], Any], inputs: Sequence[Input]
    ) -> Iterator[tuple[list[int], Numbers]]:
        for some in _batches_of([len(one.tokens) for one in inputs], self._batch_tokens):
            answers = probabilities(call([inputs[k] for k in some]))
            if len(answers) != len(some):
                raise _miscounted("predict", len(some), str(len(answers)))
            self.asked += len(some)
            yield some, answers

    def _in_batches(
        self, call: Callable[[Sequence[Input]], Any], inputs: Sequence[Input]
    ) -> list[Any]:
        return asked_in_batches(call, inputs, batch_tokens=self._batch_tokens)


def asked_in_batches(
    call: Callable[[Sequence[Input]], Any],
    inputs: Sequence[Input],
    *,
    batch_tokens: int = BATCH_TOKENS,
) -> list[Any]:
    """Call a case's method in batches of similar length; the list is in the inputs' order."""
    found: dict[int, Any] = {}
    for some in _batches_of([len(one.tokens) for one in inputs], batch_tokens):
        returned = call([inputs[k] for k in some])
        # An array without axes has the method and cannot be gone through.
        one_by_one = hasattr(returned, "__iter__") and getattr(returned, "shape", None) != ()
        answers = list(returned) if one_by_one else None
        if answers is None or len(answers) != len(some):
            got = type(returned).__name__ if answers is None else str(len(answers))
            raise _miscounted(getattr(call, "__name__", "call"), len(some), got)
        found |= dict(zip(some, answers, strict=True))
    return [found[k] for k in range(len(inputs))]


def probabilities(answers: Any) -> Numbers:
    """Return a case's answers as (batch, classes), checked.

    Raises
    ------
    ShapeError
        They are no finite distributions over at least two classes.
    """
    found = numbers(answers, "predict()")
    fits = found.ndim == 2 and found.shape[1] >= 2
    finite = bool(np.isfinite(found).all())
    fits = fits and finite and bool((found >= -1e-9).all())
    if not fits or not np.allclose(found.sum(-1), 1, atol=1e-4):
        rows = found.ndim == 2 and found.size
        sums = f", a row {_shown(found)}" if rows else ""
        raise ShapeError(
            explain(
                "predict(): these are no probabilities",
                expected="(batch, classes), at least two classes, each row summing to 1",
                got=f"shape {found.shape}{sums}{'' if finite else ', not all finite'}",
                help="a single sigmoid p becomes the two columns 1 - p and p; logits become "
                "probabilities by softmax",
            )
        )
    return found


def _shown(table: Numbers) -> str:
    """Return the first row that is no distribution, as much of it as fits a line."""
    sums = table.sum(-1)
    bad = (np.abs(sums - 1) > 1e-4) | ~np.isfinite(sums) | (table < -1e-9).any(-1)
    row = table[int(bad.argmax())]
    shown = ", ".join(f"{value:.3g}" for value in row[:4])
    return f"[{shown}{', ...' if len(row) > 4 else ''}]"


def read_with(scores: Numbers, bias: Numbers, weights: Numbers) -> Numbers:
    """Return the answers (m, classes) of a read-out under weights (m, T_enc)."""
    outputs = weights @ scores + bias
    if outputs.shape[-1] == 1:
        last = 1 / (1 + np.exp(-np.clip(outputs, -700, 700)))
        return np.concatenate([1 - last, last], axis=-1)
    shifted = np.exp(outputs - outputs.max(-1, keepdims=True))
    found: Numbers = shifted / shifted.sum(-1, keepdims=True)
    return found


def _batches_of(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    order = sorted(range(len(lengths)), key=lambda k: lengths[k])
    some: list[int] = []
    for k in order:
        if some and (len(some) + 1) * lengths[k] > batch_tokens:
            yield some
            some = []
        some.append(k)
    if some:
        yield some


def _effects(rows: Sequence[tuple[float, float, float, bool]]) -> Effects:
    table = np.array([row[:3] for row in rows], dtype=np.float64).reshape(-1, 3)
    drop, moved, divergence = table.T
    return Effects(drop, moved, divergence, np.array([row[3] for row in rows], dtype=bool))


def _part(effects: Effects, some: slice) -> Effects:
    return Effects(
        effects.drop[some],
        effects.moved[some],
        effects.divergence[some],
        effects.flipped[some],
    )


def _joined(parts: Sequence[Effects]) -> Effects:
    return Effects(
        np.concatenate([part.drop for part in parts]),
        np.concatenate([part.moved for part in parts]),
        np.concatenate([part.divergence for part in parts]),
        np.concatenate([part.flipped for part in parts]),
    )


def _miscounted(name: str, expected: int, got: str) -> ShapeError:
    return ShapeError(
        explain(
            f"{name}(): one answer for each input is needed",
            expected=f"{expected} answers",
            got=got,
        )
    )
