"""G0: weights that are not the ones of the answer are stopped, with the reason."""

import numpy as np
import pytest

from regard.audit.capture import check_capture
from regard.audit.planted import planted_inputs, train_planted
from regard.audit.protocol import FunctionCase


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


def test_a_case_that_is_right_passes_all_five_checks(honest, inputs):
    gates = check_capture(honest, inputs)
    assert [gate.outcome for gate in gates] == ["passed"] * 5


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
    assert "dropout" in failed.said


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
    assert "whatever weights" in _failed(case, inputs).said


def test_without_predict_with_the_output_is_taken_on_trust(honest, inputs):
    case = FunctionCase(
        lambda texts: np.tile([0.25, 0.75], (len(texts), 1)),
        lambda texts: [np.full(len(text), 1 / len(text)) for text in texts],
    )
    gate = check_capture(case, inputs)[-1]
    assert gate.outcome == "not tested"
    assert "on trust" in gate.said
