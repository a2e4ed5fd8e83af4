"""G0: are these the weights of the model's answer? Asked before anything is measured.

Weights caught in training mode, before the mask, averaged over heads, or in a batch with longer
inputs look like weights. Every test below them would measure something else. A gate that fails
says what it saw; of what may be behind it only what was found.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from regard.audit.inputs import Input
from regard.audit.protocol import (
    Averaged,
    Case,
    Numbers,
    Overridable,
    ReadsOut,
    numbers,
)
from regard.audit.randomness import what_is_random
from regard.audit.reach import parameters_with_nan
from regard.audit.sample import asked_in_batches, probabilities, read_with
from regard.audit.verdict import Gate

__all__ = ["check_capture"]

_SUM = 1e-4
_SAME = 1e-5
_LOOKED_AT = 64  # inputs
_PART = 0.01  # of what turned weights do to an answer
_FLAT = 1e-3
_SHOWN = 60  # characters of an input
_ALONE = 8  # of them, asked once more without company


def check_capture(case: Case, inputs: Sequence[Input]) -> list[Gate]:
    """Return the gates of G0, up to the first that fails.

    Parameters
    ----------
    case : Case
    inputs : sequence of Input
        The first 64 are looked at.
    """
    some = list(inputs[:_LOOKED_AT])
    rows = _weights(case, some)
    again = _weights(case, some)
    found: list[Gate] = []
    checks: tuple[Callable[[], Gate], ...] = (
        lambda: _shape(some, rows),
        lambda: _finite(case, some, rows),
        lambda: _twice(case, some, rows, again),
        lambda: _sums(case, some, rows),
        lambda: _alone(case, some, rows),
        *([lambda: _heads(case, some, rows)] if isinstance(case, Averaged) else []),
        lambda: _output(case, some, rows),
    )
    for check in checks:
        found.append(check())
        if found[-1].outcome == "failed":
            break
    return found


def _shape(some: Sequence[Input], rows: Sequence[Numbers]) -> Gate:
    rule = "each input has one row of weights, one weight a token"
    for one, row in zip(some, rows, strict=True):
        length = len(one.tokens)
        if row.shape == (length,):
            continue
        if not row.ndim:
            said = f"weights() returned one number for {length} tokens"
        elif row.ndim > 1:
            said = (
                f"weights() returned {row.shape} for {length} tokens: several rows; choose one "
                "layer, head and step, since an average of heads is none of them"
            )
        elif row.shape[0] > length:
            said = (
                f"weights() returned {row.shape[0]} weights for {length} tokens: places of "
                "padding are among them; cut each row to its own tokens, and its sum will tell "
                "whether padding was attended"
            )
        else:
            said = f"weights() returned {row.shape[0]} weights for {length} tokens"
        return Gate("G0.shape", rule, "failed", said)
    return Gate("G0.shape", rule, "passed", f"so for {len(rows)} inputs")


def _finite(case: Case, some: Sequence[Input], rows: Sequence[Numbers]) -> Gate:
    rule = "weights and answers are finite numbers"
    for what, ask, found in (
        ("weights", _weights, rows),
        ("answers", _answers, _answers(case, some)),
    ):
        bad = [k for k, row in enumerate(found) if not np.isfinite(row).all()]
        if not bad:
            continue
        first = some[bad[0]]
        (alone,) = ask(case, [first])
        kind = "NaN" if np.isnan(found[bad[0]]).any() else "an infinite number"
        said = f"{what} hold {kind}: in {len(bad)} of {len(some)} inputs"
        at = int((~np.isfinite(found[bad[0]])).argmax())
        place = f" at token {at}, `{first.tokens[at]}`," if what == "weights" else ""
        said += f", first{place} in `{_clipped(' '.join(first.tokens))}`; asked alone, "
        said += (
            "that input has finite ones, so its neighbours in the batch or its padding matter"
            if np.isfinite(alone).all()
            else "too"
        )
        parameters = parameters_with_nan(case)
        if parameters:
            said += f"; parameters with NaN: {', '.join(parameters[:4])}"
        return Gate("G0.finite", rule, "failed", said)
    # What is no distribution at all is no gate's matter: nothing could be asked of it.
    probabilities(_answers(case, some[:1]))
    return Gate("G0.finite", rule, "passed", f"so for {len(rows)} inputs")


def _twice(
    case: Case, some: Sequence[Input], rows: Sequence[Numbers], again: Sequence[Numbers]
) -> Gate:
    rule = f"asked twice, weights and answers are the same within {_SAME:g}"
    moved = max(_apart(one, other) for one, other in zip(rows, again, strict=True))
    one, other = (np.stack(_answers(case, some)) for _ in range(2))
    answers = float(np.abs(one - other).max())
    if max(moved, answers) > _SAME:
        ask = _weights if moved > _SAME else _answers
        what = "weights" if moved > _SAME else "answers"
        found = what_is_random(case, lambda: ask(case, some))
        said = f"asked twice, the {what} differ by up to {max(moved, answers):.3g}: {found}"
        return Gate("G0.twice", rule, "failed", said)
    return Gate("G0.twice", rule, "passed", f"largest difference {max(moved, answers):.1g}")


def _sums(case: Case, some: Sequence[Input], rows: Sequence[Numbers]) -> Gate:
    rule = f"each row is not negative and sums to 1 within {_SUM:g}"
    sums = np.array([row.sum() for row in rows])
    low = min(float(row.min()) for row in rows)
    worst = int(np.abs(sums - 1).argmax())
    if low < -_SUM:
        said = f"a weight is {low:.3g}: these are scores before softmax, or gradients"
        return Gate("G0.sums", rule, "failed", said)
    if abs(sums[worst] - 1) > _SUM:
        alone = float(_weights(case, [some[worst]])[0].sum())
        if abs(alone - 1) <= _SUM < 1 - sums[worst]:
            cause = (
                f"asked alone, the row sums to {alone:.4f}: weight lies on padding, the mask "
                "is missing"
            )
        elif sums.max() > 1 + _SUM:
            cause = "these are weights after dropout, or not normalised"
        else:
            cause = "part of the weight lies on places that are not shown"
        said = f"a row sums to {sums[worst]:.4f}: {cause}"
        return Gate("G0.sums", rule, "failed", said)
    return Gate("G0.sums", rule, "passed", f"largest difference {abs(sums[worst] - 1):.1g}")


def _alone(case: Case, some: Sequence[Input], rows: Sequence[Numbers]) -> Gate:
    rule = f"weights and answers are the same alone and beside longer inputs within {_SUM:g}"
    order = sorted(range(len(some)), key=lambda k: len(some[k].tokens))
    longest = some[order[-1]]
    apart = answers = 0.0
    for k in order[:_ALONE]:
        beside = _weights(case, [some[k], longest])[0]
        (alone,) = _weights(case, [some[k]])
        if beside.shape != alone.shape:
            said = f"alone {alone.shape[0]} weights, beside a longer input {beside.shape[0]}"
            return Gate("G0.padding", rule, "failed", said)
        apart = max(apart, _apart(beside, alone), _apart(rows[k], alone))
        pair, (answer,) = _answers(case, [some[k], longest]), _answers(case, [some[k]])
        answers = max(answers, _apart(pair[0], answer))
    if apart > _SUM:
        said = (
            f"beside a longer input a weight differs by {apart:.3g} from alone: padding is "
            "attended, or the weights are averaged over the batch"
        )
        return Gate("G0.padding", rule, "failed", said)
    if answers > _SUM:
        said = (
            f"beside a longer input an answer differs by {answers:.3g} from alone, the weights "
            "do not: padding reaches the answer by another way, or the batch's average does"
        )
        return Gate("G0.padding", rule, "failed", said)
    said = f"largest difference {max(apart, answers):.1g}"
    return Gate("G0.padding", rule, "passed", said)


def _heads(case: Averaged, some: Sequence[Input], rows: Sequence[Numbers]) -> Gate:
    rule = f"weights that are an average are those of every head within {_SUM:g}"
    found = [numbers(heads, "heads()") for heads in asked_in_batches(case.heads, some)]
    apart = max(
        float(np.abs(heads - row).max()) for heads, row in zip(found, rows, strict=True)
    )
    if apart > _SUM:
        said = (
            f"averaged over {len(found[0])} heads, of which one differs by {apart:.3g}: the "
            "model runs with none of these weights; choose one head"
        )
        return Gate("G0.heads", rule, "failed", said)
    return Gate("G0.heads", rule, "passed", f"largest difference {apart:.1g}")


def _output(case: Case, some: Sequence[Input], rows: Sequence[Numbers]) -> Gate:
    rule = f"run with these weights, the model gives its own answer within {_SAME:g}"
    answers = np.stack(_answers(case, some))
    turned = [_turned(row) for row in rows]
    ways: dict[str, tuple[Numbers, Numbers]] = {}
    if isinstance(case, Overridable):
        own, other = (probabilities(case.predict_with(some, each)) for each in (rows, turned))
        # The same batch both times: rounding is then the same, and any difference is heard.
        if not (own != other).any():
            said = "predict_with() answers the same whatever weights it is given"
            if len(some) > 1 and float(np.ptp(answers, axis=0).max()) <= _SAME:
                said += f"; predict() answers all {len(some)} inputs the same, too"
            return Gate("G0.output", rule, "failed", said)
        ways["predict_with"] = own, other
    if isinstance(case, ReadsOut):
        reads = list(case.read_out(some))
        own, other = (
            np.concatenate(
                [
                    read_with(read.scores, read.b, row[None])
                    for read, row in zip(reads, each, strict=True)
                ]
            )
            for each in (rows, turned)
        )
        ways["read_out"] = own, other
    if not ways:
        return Gate(
            "G0.output",
            rule,
            "not tested",
            "the case has neither predict_with nor read_out: that the answer is made with "
            "these weights is taken on trust",
        )
    gaps = {name: float(np.abs(own - answers).max()) for name, (own, _) in ways.items()}
    name, gap = max(gaps.items(), key=lambda pair: pair[1])
    if gap > _SAME:
        said = (
            f"run with these weights ({name}), an answer differs by {gap:.3g}: they are not "
            "the ones it is made with; averaged over heads, another layer or step, or after "
            "dropout"
        )
        return Gate("G0.output", rule, "failed", said)
    effect = max(float(np.abs(own - other).max()) for own, other in ways.values())
    if gap > _PART * effect:
        said = (
            f"an answer differs by {gap:.1g} with these weights and by {effect:.1g} with "
            "turned ones: the answers hear too little of the weights to tell whose they are, "
            "which is taken on trust"
        )
        return Gate("G0.output", rule, "not tested", said)
    return Gate("G0.output", rule, "passed", f"largest difference {gap:.1g}")


def _turned(row: Numbers) -> Numbers:
    """Return other weights: moved on by a token, or all on one where they are equal."""
    turned = np.roll(row, 1)
    return turned if np.ptp(row) > _FLAT else np.eye(len(row))[0]


def _weights(case: Case, some: Sequence[Input]) -> list[Numbers]:
    return [numbers(row, "weights()") for row in asked_in_batches(case.weights, some)]


def _answers(case: Case, some: Sequence[Input]) -> list[Numbers]:
    return [numbers(row, "predict()") for row in asked_in_batches(case.predict, some)]


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _apart(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")
