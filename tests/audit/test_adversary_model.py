"""A model trained to answer alike and attend elsewhere: what is made small, what is shown."""

import numpy as np
import pytest
import torch

from regard.audit import adversary_model
from regard.audit.classifier import Classified, ClassifierConfig
from regard.audit.classifier_adversary import imitating
from regard.audit.classifier_training import ClassifierTraining
from regard.audit.distances import jensen_shannon, kullback_leibler, total_variation
from regard.audit.from_classifier import ClassifierData, train_classifier
from regard.audit.planted import PlantedCase, planted_inputs
from regard.audit.protocol import Trained
from regard.audit.run import audit
from regard.audit.sample import Sample, asked_in_batches


def _rows(random, *shape):
    return torch.from_numpy(random.dirichlet(np.ones(shape[-1]), shape[:-1]).astype("float32"))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_objective_is_the_published_one(classes):
    random = np.random.default_rng(5)
    outputs = torch.from_numpy(random.normal(size=(7, 1 if classes == 2 else 3))).float()
    own, other, answers = (
        _rows(random, 7, 11),
        _rows(random, 13, 11),
        _rows(random, 13, classes),
    )
    factors = torch.from_numpy(random.random(13)).float()
    rows = [12, 0, 3, 5, 1, 2, 9]
    objective = imitating(
        answers, lambda chosen: other[list(chosen)], strength=0.3, factors=factors
    )
    found = objective(Classified(outputs, own, own, own), rows)
    p = outputs.softmax(-1) if classes == 3 else torch.cat([-outputs, outputs], 1).sigmoid()
    each = total_variation(p, answers[rows]) - 0.3 * kullback_leibler(own, other[rows])
    assert found.item() == pytest.approx(float((each * factors[rows].numpy()).mean()), rel=1e-4)


def test_a_weight_of_zero_and_padding_leave_the_objective_finite():
    own = torch.tensor([[1.0, 0.0, 0.0]], requires_grad=True)
    other = torch.tensor([[0.0, 1.0, 0.0]])
    objective = imitating(torch.tensor([[0.5, 0.5]]), lambda rows: other, strength=1.0)
    found = objective(Classified(torch.zeros(1, 1), own, own, own), [0])
    found.backward()
    assert found.item() == pytest.approx(np.log(1e-10), rel=1e-4)
    assert own.grad.isfinite().all()


def test_an_adversary_answers_alike_and_the_larger_lambda_attends_farther_away():
    data = ClassifierData(
        planted_inputs(300, seed=1), planted_inputs(60, seed=2), planted_inputs(90, seed=3)
    )
    config = ClassifierConfig(data.symbols, encoder="bigru", d_in=13, d_hidden=11, scale=1.0)
    training = ClassifierTraining(epochs=2, batch=23, learning_rate=0.03, balanced=True)
    base = train_classifier(data, config, training, seed=1).case
    answers = np.stack(asked_in_batches(base.predict, data.test))
    own = asked_in_batches(base.weights, data.test)
    apart = {}
    for strength in (0.0, 0.05):
        trained = base.train_adversary(strength=strength, seed=2)
        assert f"adversary, lambda {strength:g}" in trained.case.name
        other = np.stack(asked_in_batches(trained.case.predict, data.test))
        assert total_variation(answers, other).mean() < 0.05
        rows = asked_in_batches(trained.case.weights, data.test)
        apart[strength] = np.mean([jensen_shannon(*p) for p in zip(own, rows, strict=True)])
    assert apart[0.05] > 0.5 > 2 * apart[0.0]


class _Imitated(PlantedCase):
    """Does not train: its adversary is another model, or itself where nothing pushes."""

    def train_adversary(self, *, strength, seed=0):
        self.asked.append((strength, seed))
        return Trained(self.other if strength else self, 0.9, None)


def test_every_lambda_is_one_training_and_shown_with_what_it_cost(
    honest_model, deceived_model, planted
):
    case = _Imitated(honest_model.params, name="x")
    case.asked, case.other = [], deceived_model
    sample = Sample(case, planted, seed=7)
    columns = adversary_model.run(sample, range(len(adversary_model.STRENGTHS)))
    assert case.asked == [(strength, 8) for strength in adversary_model.STRENGTHS]
    assert columns["answers"][0] == columns["weights"][0] == 0.0
    pairs = zip(honest_model.weights(planted), deceived_model.weights(planted), strict=True)
    expected = np.mean([jensen_shannon(*pair) for pair in pairs])
    assert columns["weights"][1] == pytest.approx(expected)
    assert columns["share"][0] > 0.8 > 0.2 > columns["share"][1]
    names = [row.name for row in adversary_model.MEASURE.table(columns, 0).rows]
    assert "lambda 0.01: weights apart (JSD)" in names
    assert not any("F1" in name for name in names)  # not known here, so not shown


def test_it_has_to_be_asked_for_and_says_what_a_case_lacks(honest_model, planted):
    case = _Imitated(honest_model.params, name="x")
    case.asked = []
    unasked = dict(audit(case, planted[:20]).verdict.not_tested)
    assert unasked["adversary_model"] == "it trains models and has to be asked for"
    assert case.asked == []
    tests = ["adversary_model"]
    asked = dict(audit(honest_model, planted[:20], tests=tests).verdict.not_tested)
    assert asked["adversary_model"] == "the case has no train_adversary"
