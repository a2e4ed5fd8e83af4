"""G0: weights that are not the ones of the answer are stopped, with the reason."""

import numpy as np
import pytest

from regard.audit.capture import check_capture
from regard.audit.planted import planted_inputs, train_planted
from regard.audit.protocol import FunctionCase
from regard.errors import ShapeError


@pytest.fixture(scope="module")
def honest():
    return train_planted(steps=30).case


@pytest.fixture(scope="module")
def inputs():
    return planted_inputs(31, seed=3)


class _Altered:
    """The honest case with one method replaced."""

    def __init__(self, case, **methods):
        self._case = case
        for name, method in methods.items():
            setattr(self, name, method)

    def __getattr__(self, name):
        return getattr(self._case, name)


def _failed(case, inputs):
    gates = check_capture(case, inputs)
    assert [gate.outcome for gate in gates[:-1]] == ["passed"] * (len(gates) - 1)
    assert gates[-1].outcome == "failed"
    return gates[-1]


def test_a_case_that_is_right_passes_all_six_checks(honest, inputs):
    gates = check_capture(honest, inputs)
    assert [gate.outcome for gate in gates] == ["passed"] * 6


def test_scores_before_softmax_are_stopped(honest, inputs):
    case = _Altered(
        honest, weights=lambda batch: [np.log(row) for row in honest.weights(batch)]
    )
    failed = _failed(case, inputs)
    assert failed.name == "G0.sums"
    assert "before softmax" in failed.said


def test_several_rows_are_stopped(honest, inputs):
    case = _Altered(
        honest, weights=lambda batch: [np.stack([row] * 3) for row in honest.weights(batch)]
    )
    assert "several rows" in _failed(case, inputs).said


def test_one_number_an_input_is_stopped(honest, inputs):
    case = _Altered(honest, weights=lambda batch: [1.0] * len(batch))
    assert "one number for" in _failed(case, inputs).said


def test_rows_with_places_of_padding_are_stopped(honest, inputs):
    def padded(batch):
        longest = max(len(one.tokens) for one in batch)
        return [np.resize(row, longest) for row in honest.weights(batch)]

    case = _Altered(honest, weights=padded)
    assert "padding" in _failed(case, inputs).said


def test_weight_on_padding_is_stopped_as_a_missing_mask(honest, inputs):
    def unmasked(batch):
        longest = max(len(one.tokens) for one in batch)
        return [row * len(row) / longest for row in honest.weights(batch)]

    failed = _failed(_Altered(honest, weights=unmasked), inputs)
    assert failed.name == "G0.sums"
    assert "mask is missing" in failed.said


def test_dropped_out_weights_are_stopped(honest, inputs):
    generator = np.random.default_rng(0)

    def dropped(batch):
        return [row * generator.binomial(1, 0.5, len(row)) * 2 for row in honest.weights(batch)]

    failed = _failed(_Altered(honest, weights=dropped), inputs)
    assert failed.name == "G0.twice"
    assert failed.said.startswith("asked twice, the weights differ by up to ")
    # What draws is a generator of the test's own: no dropout is there to be named.
    assert "draws from one of its own" in failed.said
    assert "dropout" not in failed.said


def test_weights_that_hold_nan_are_stopped_with_the_place(honest, inputs):
    def holed(batch):
        rows = honest.weights(batch)
        for one, row in zip(batch, rows, strict=True):
            if one.tokens == inputs[7].tokens:
                row[3] = np.nan
        return rows

    failed = _failed(_Altered(honest, weights=holed), inputs)
    assert failed.name == "G0.finite"
    assert "weights hold NaN: in 1 of 31 inputs, first at token 3, " in failed.said
    assert f"`{inputs[7].tokens[3]}`" in failed.said
    assert failed.said.endswith("asked alone, too")


def test_weights_that_are_nan_beside_longer_inputs_only_are_told_so(honest, inputs):
    def holed(batch):
        rows = honest.weights(batch)
        longest = max(map(len, rows))
        return [row if len(row) == longest else row * np.nan for row in rows]

    failed = _failed(_Altered(honest, weights=holed), inputs)
    assert "asked alone, that input has finite ones" in failed.said


def test_answers_that_hold_nan_or_infinity_are_stopped(honest, inputs):
    case = _Altered(honest, predict=lambda batch: np.full((len(batch), 2), np.nan))
    assert "answers hold NaN: in 31 of 31 inputs" in _failed(case, inputs).said
    case = _Altered(honest, predict=lambda batch: np.full((len(batch), 2), np.inf))
    assert "answers hold an infinite number" in _failed(case, inputs).said


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (lambda texts: None, "weights(): one answer for each input is needed"),
        (lambda texts: 0.5, "weights(): one answer for each input is needed"),
        (lambda texts: [[0.5, 0.5]], "weights(): one answer for each input is needed"),
        (
            lambda texts: [["a"] * len(text) for text in texts],
            "weights(): these are no numbers",
        ),
        (lambda texts: [[[1.0], [0.5, 0.5]] for _ in texts], "weights(): these are no numbers"),
    ],
)
def test_what_is_no_weights_at_all_is_refused_by_name(inputs, weights, said):
    case = FunctionCase(lambda texts: np.tile([0.25, 0.75], (len(texts), 1)), weights)
    with pytest.raises(ShapeError) as caught:
        check_capture(case, inputs)
    assert said in str(caught.value)


def test_answers_that_padding_reaches_are_stopped(honest, inputs):
    def padded(batch):
        longest = max(len(one.tokens) for one in batch)
        shares = np.array([len(one.tokens) / longest for one in batch])[:, None]
        return shares * honest.predict(batch) + (1 - shares) / 2

    failed = _failed(_Altered(honest, predict=padded), inputs)
    assert failed.name == "G0.padding"
    assert "padding reaches the answer by another way" in failed.said


def test_weights_averaged_over_the_batch_are_stopped(honest, inputs):
    def averaged(batch):
        rows = honest.weights(batch)
        largest = np.mean([row.max() for row in rows])
        mixed = [row + largest for row in rows]
        return [row / row.sum() for row in mixed]

    failed = _failed(_Altered(honest, weights=averaged), inputs)
    assert failed.name == "G0.padding"
    assert "averaged over the batch" in failed.said


def test_weights_of_another_layer_are_stopped(honest, inputs):
    case = _Altered(honest, weights=lambda batch: [row[::-1] for row in honest.weights(batch)])
    failed = _failed(case, inputs)
    assert failed.name == "G0.output"
    assert "another layer" in failed.said


def test_a_predict_with_that_does_not_listen_is_stopped(honest, inputs):
    case = _Altered(honest, predict_with=lambda batch, weights: honest.predict(batch))
    assert _failed(case, inputs).said.endswith("whatever weights it is given")
    still = np.array([0.25, 0.75])
    case = FunctionCase(
        lambda texts: np.tile(still, (len(texts), 1)),
        lambda texts: [np.eye(len(text))[0] for text in texts],
        predict_with=lambda texts, rows: np.tile(still, (len(texts), 1)),
    )
    assert "predict() answers all 31 inputs the same" in _failed(case, inputs).said


def test_equal_weights_pass_where_the_answer_is_made_with_them(inputs):
    def with_weights(texts, rows):
        z = [
            sum(a * len(token) * i for i, (a, token) in enumerate(zip(r, t, strict=True)))
            for r, t in zip(rows, texts, strict=True)
        ]
        p = 1 / (1 + np.exp(3 - np.array(z)))
        return np.stack([1 - p, p], 1)

    def equal(texts):
        return [np.full(len(text), 1 / len(text)) for text in texts]

    case = FunctionCase(
        lambda texts: with_weights(texts, equal(texts)), equal, predict_with=with_weights
    )
    assert check_capture(case, inputs)[-1].outcome == "passed"


def test_where_answers_hardly_hear_the_weights_they_are_taken_on_trust(honest, inputs):
    # Right to 3e-8 with any weights: that says nothing of whose weights these are.
    def nearly(batch, weights):
        answers = honest.predict(batch)
        moved = 1e-7 * honest.predict_with(batch, weights)
        return (answers + moved) / (answers + moved).sum(-1, keepdims=True)

    case = _NoReadOut(_Altered(honest, predict_with=nearly))
    case.weights = lambda batch: [row[::-1] for row in honest.weights(batch)]
    gate = check_capture(case, inputs)[-1]
    assert (gate.name, gate.outcome) == ("G0.output", "not tested")
    assert "hear too little of the weights to tell whose they are" in gate.said


class _NoReadOut:
    """A case as it is, but for its read-out."""

    name = "without"

    def __init__(self, case):
        self.predict, self.weights = case.predict, case.weights
        self.predict_with = case.predict_with


def test_without_predict_with_the_output_is_taken_on_trust(honest, inputs):
    case = FunctionCase(
        lambda texts: np.tile([0.25, 0.75], (len(texts), 1)),
        lambda texts: [np.full(len(text), 1 / len(text)) for text in texts],
    )
    gate = check_capture(case, inputs)[-1]
    assert gate.outcome == "not tested"
    assert "on trust" in gate.said
