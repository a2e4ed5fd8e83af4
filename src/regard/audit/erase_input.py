"""Erase tokens from the input, the most attended first, and see how far the answer falls.

Comprehensiveness [1]_: the drop of the predicted class's probability when tokens are taken
away. It is measured for the single most attended token, and as the mean over four amounts (one
token, 5, 10 and 20 % of the tokens, rounded up), always against random tokens and against the
other rankings on the same inputs. Large amounts alone can be fooled: they take the
second-ranked token along, which is where a map that was trained to mislead may put the one that
matters.

Three ways of erasing, since each leaves the data in another direction: leave the token out,
replace it by the mask token, replace it by tokens drawn from the other inputs.

References
----------
.. [1] DeYoung, Jain, Rajani, Lehman, Xiong, Socher and Wallace, "ERASER: A Benchmark to
   Evaluate Rationalized NLP Models", ACL 2020, section 4.2. arXiv:1911.03429
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.gates import best_method, gain_of
from regard.audit.inputs import Input
from regard.audit.measure import Columns, Measure, means_of
from regard.audit.protocol import Masked, Numbers
from regard.audit.ranking import leave_one_out, order, random_orders, token_gradients
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["AMOUNTS", "MEASURE", "operators", "run", "table"]

AMOUNTS = (0.0, 0.05, 0.10, 0.20)
"""Shares of an input's tokens that are erased; at least one token each time."""
_SHUFFLES = 5
_DRAWS = 2


def operators(sample: Sample) -> tuple[str, ...]:
    """Return the ways of erasing that the case allows."""
    case = sample.case
    masks = isinstance(case, Masked) and case.mask_token is not None
    return ("delete", "mask", "resample") if masks else ("delete", "resample")


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return, for each input, the drop under each operator, ranking and amount.

    Returns
    -------
    columns : dict
        ``delete.attention.top1``, ``delete.attention.aopc`` and so on: drop of probability when
        one token is erased, and the mean drop over :data:`AMOUNTS`; rankings ``attention``,
        ``leave-one-out``, ``gradient`` where the case has one, ``random`` (the mean over
        shuffles). ``tokens.weight`` and ``tokens.drop`` are lists, one number a token: its
        weight, and the drop without it (None where it was not left out).
    """
    rankings = _rankings(sample, chunk)
    columns: dict[str, list[Any]] = {}
    left_out = leave_one_out(sample, chunk)
    for operator in operators(sample):
        drops = _Drops(sample, operator)
        for orders in rankings.values():
            for number, many in zip(chunk, orders, strict=True):
                for one in many:
                    for count in _counts(sample.inputs[number]):
                        drops.ask(number, one[:count])
        drops.answer()
        for ranking, orders in rankings.items():
            top, mean = [], []
            for number, many in zip(chunk, orders, strict=True):
                counts = _counts(sample.inputs[number])
                table = [[drops.of(number, one[:count]) for count in counts] for one in many]
                top.append(float(np.mean([row[0] for row in table])))
                mean.append(float(np.mean(table)))
            if ranking == "random" and operator == "delete":
                # Of one random token the expectation is known exactly.
                top = [
                    float(out.drop[list(sample.inputs[number].free)].mean())
                    if np.isfinite(out.drop[list(sample.inputs[number].free)]).all()
                    else value
                    for number, out, value in zip(chunk, left_out, top, strict=True)
                ]
            columns[f"{operator}.{ranking}.top1"] = top
            columns[f"{operator}.{ranking}.aopc"] = mean
    columns["tokens.weight"] = [sample.weights[number].tolist() for number in chunk]
    columns["tokens.drop"] = [_plain(out.drop) for out in left_out]
    return columns


def _plain(drops: Numbers) -> list[float | None]:
    return [None if math.isnan(drop) else drop for drop in drops.tolist()]


class _Drops:
    """The drops of one operator: all questions first, then one answer to them."""

    def __init__(self, sample: Sample, operator: str) -> None:
        self._sample, self._operator = sample, operator
        self._asked: dict[tuple[int, frozenset[int]], float] = {}

    def ask(self, number: int, positions: Sequence[int]) -> None:
        self._asked[number, frozenset(positions)] = math.nan

    def answer(self) -> None:
        keys, questions = [], []
        for number, positions in self._asked:
            for altered in _erased(self._sample, number, positions, self._operator):
                keys.append((number, positions))
                questions.append((number, altered))
        drops = self._sample.effects(questions).drop
        sums: dict[tuple[int, frozenset[int]], list[float]] = {}
        for key, drop in zip(keys, drops.tolist(), strict=True):
            sums.setdefault(key, []).append(drop)
        self._asked = {key: float(np.mean(values)) for key, values in sums.items()}

    def of(self, number: int, positions: Sequence[int]) -> float:
        return self._asked[number, frozenset(positions)]


def _erased(
    sample: Sample, number: int, positions: frozenset[int], operator: str
) -> list[Input]:
    one = sample.inputs[number]
    if operator == "delete":
        return [one.without(positions)]
    if operator == "mask":
        case = sample.case
        assert isinstance(case, Masked)
        assert case.mask_token is not None
        return [one.with_tokens(dict.fromkeys(positions, case.mask_token))]
    found = []
    for draw in range(_DRAWS):
        # One stream a place: a token is replaced by the same one in whichever order it goes.
        replaced = {
            i: _drawn(sample, sample.random(number, f"resample {draw} {i}"), one.tokens[i])
            for i in positions
        }
        found.append(one.with_tokens(replaced))
    return found


def _drawn(sample: Sample, generator: np.random.Generator, other_than: str) -> str:
    words = sample.words
    for _ in range(20):
        word = words[int(generator.integers(len(words)))]
        if word != other_than:
            return word
    return word


def _rankings(sample: Sample, chunk: Sequence[int]) -> dict[str, list[list[list[int]]]]:
    left_out = leave_one_out(sample, chunk)
    gradients = token_gradients(sample, chunk)
    found: dict[str, list[list[list[int]]]] = {"attention": [], "leave-one-out": []}
    if gradients is not None:
        found["gradient"] = []
    found["random"] = []
    for row, number in enumerate(chunk):
        free = sample.inputs[number].free
        generator = sample.random(number, "ties")
        found["attention"].append([order(sample.weights[number], free, generator)])
        found["leave-one-out"].append([order(left_out[row].drop, free, generator)])
        if gradients is not None:
            found["gradient"].append([order(gradients[row], free, generator)])
        found["random"].append(random_orders(sample, number, _SHUFFLES))
    return found


def _counts(one: Input) -> list[int]:
    """Return how many tokens each amount is; one is always left."""
    free, rest = len(one.free), 0 if one.fixed else 1
    return [max(1, min(math.ceil(share * free), free - rest)) for share in AMOUNTS]


def table(columns: Columns, seed: int) -> Table:
    """Return the figures of attention, with chance and the best ranking beside them."""
    rows = []
    mean = means_of(columns, seed)
    for way in ("delete", "mask", "resample"):
        if f"{way}.attention.top1" not in columns:
            continue
        for amount, what in (("top1", "top token"), ("aopc", "AOPC over 1 token, 5, 10, 20 %")):
            best = best_method(columns, way, amount)
            rows.append(
                Row(
                    f"{way}, {what}",
                    mean(columns[f"{way}.attention.{amount}"]),
                    random=float(np.nanmean(columns[f"{way}.random.{amount}"])),
                    best=float(np.nanmean(columns[f"{way}.{best}.{amount}"])),
                )
            )
        for amount, what in (("aopc", "F"), ("top1", "F of the top token")):
            gain = gain_of(columns, way, amount, seed=seed)
            rows.append(Row(f"{way}, {what} (gain over random / best's)", gain))
    return Table(
        "erase_input",
        "Erase the most attended tokens from the input (drop of p(predicted))",
        "whether the tokens that got the weight move the answer, compared with chance and with "
        "the best ranking tried",
        "what the model would do on natural inputs: an input with a hole is none; hence "
        "several ways of erasing",
        tuple(rows),
        gates=True,
    )


MEASURE = Measure("erase_input", run, table)
