"""Trained again: what is trained, what comes back, and the sentences that follow."""

import numpy as np
import pytest

from regard.audit import retrain
from regard.audit.downgrades import downgrades_of
from regard.audit.planted import PlantedCase
from regard.audit.protocol import Trained
from regard.audit.sample import Sample
from regard.audit.store import Store


class _Recorded(PlantedCase):
    """Does not train: says what was asked, and answers with itself."""

    def train(self, **options):
        self.asked.append(options)
        return Trained(self, 0.9, 0.8)


@pytest.fixture
def sample(honest_model, planted):
    case = _Recorded(honest_model.params, name="x")
    case.asked = []
    return Sample(case, planted[:25], seed=7)


def test_every_comparison_is_planned_with_seeds_of_its_own(sample):
    plan = retrain.plan(sample)
    assert [kind for kind, _ in plan].count("learned") == 3
    assert [kind for kind, _ in plan].count("uniform") == 3
    assert {kind for kind, _ in plan} == set(retrain.KINDS)
    assert {seed for kind, seed in plan if kind == "learned"} == {8, 9, 10}


def test_the_diagnostic_trains_alone_with_the_models_and_an_adversarys_weights(sample):
    plan = [kind for kind, _ in retrain.plan(sample)]
    for kind in ("alone, base", "alone, adversary"):
        retrain.run(sample, [plan.index(kind)])
        options = sample.case.asked[-1]
        assert options["context"] is False
        assert options["attention"] == "frozen"
        rows = options["frozen"](sample.inputs)
        if kind == "alone, base":
            for row, own in zip(rows, sample.weights, strict=True):
                np.testing.assert_allclose(row, own)
        else:
            assert all(np.count_nonzero(row) <= 2 for row in rows)
            answers = sample.case.predict_with(sample.inputs, rows)
            assert np.abs(answers - sample.probabilities).max() <= 0.01 + 1e-9


def test_a_deceived_twin_is_audited_and_comes_out_low(honest_model, planted):
    sample = Sample(honest_model, planted[:25], seed=7)
    place = [kind for kind, _ in retrain.plan(sample)].index("deceived")
    columns = retrain.run(sample, [place])
    assert columns["accuracy"][0] > 0.95
    assert columns["share"][0] <= 0.2


def test_sentences_follow_from_the_trainings():
    store = Store(None, "key")
    rows = {
        "kind": ["learned", "learned", "learned", "uniform", "uniform"],
        "accuracy": [0.80, 0.82, 0.81, 0.81, 0.80],
        "f1": [None] * 5,
        "divergence": [0.08, 0.07, 0.08, 0.1, 0.1],
        "to equal": [0.1] * 5,
        "share": [None] * 5,
    }
    store.add("retrain", rows)
    said = " ".join(downgrades_of(store))
    assert "Uniform attention trains to the same accuracy" in said
    assert "a single map is as much the seed's as the task's" in said
    worse = Store(None, "key")
    worse.add(
        "retrain", {**rows, "accuracy": [0.80, 0.82, 0.81, 0.7, 0.71], "to equal": [0.5] * 5}
    )
    assert downgrades_of(worse) == []


def test_other_weights_are_told_and_said_not_to_count():
    store = Store(None, "key")
    store.add("adversary", {"exists": [1.0, 1.0, 1.0, 0.0]})
    (said,) = downgrades_of(store)
    assert said == (
        "Alternative weights with the same output exist for 75% of inputs (expected for a "
        "single-logit read-out; not counted)."
    )
