"""Each test of the audit against its definition, worked out on the control model by hand."""

import numpy as np
import pytest

from regard.audit import erase_input, erase_weights, flip_fraction, gold_mass, permute, uniform
from regard.audit.distances import LN2, jensen_shannon, kullback_leibler, total_variation
from regard.audit.erase_weights import discordant, without_weight
from regard.audit.flip_fraction import weight_gradient
from regard.audit.gold_mass import average_precision
from regard.audit.inputs import Input
from regard.audit.planted import PlantedCase
from regard.audit.protocol import FunctionCase
from regard.audit.ranking import LONGEST, leave_one_out, order
from regard.audit.sample import Sample


@pytest.fixture(scope="module")
def sample(honest_model, planted):
    return Sample(honest_model, planted[:13], seed=3)


class _RunsAgain:
    """The control without its read-out, so that every other weighting is run."""

    def __init__(self, case):
        self.name = case.name
        self.mask_token = case.mask_token
        self.predict, self.weights = case.predict, case.weights
        self.predict_with = case.predict_with
        self.weight_gradient = case.weight_gradient


@pytest.fixture(scope="module")
def again(honest_model, planted):
    return Sample(_RunsAgain(honest_model), planted[:13], seed=3)


def _p(case, one, c):
    return float(case.predict([one])[0][c])


def test_the_top_token_is_deleted_and_the_drop_is_of_the_first_predicted_class(sample):
    columns = erase_input.run(sample, range(13))
    for number, one in enumerate(sample.inputs):
        top = int(sample.weights[number].argmax())
        c = int(sample.predicted[number])
        drop = _p(sample.case, one, c) - _p(sample.case, one.without([top]), c)
        assert columns["delete.attention.top1"][number] == pytest.approx(drop, abs=1e-9)
        masked = one.with_tokens({top: sample.case.mask_token})
        drop = _p(sample.case, one, c) - _p(sample.case, masked, c)
        assert columns["mask.attention.top1"][number] == pytest.approx(drop, abs=1e-9)


def test_the_mean_over_amounts_takes_one_token_five_ten_and_twenty_percent(sample):
    columns = erase_input.run(sample, range(13))
    for number, one in enumerate(sample.inputs):
        ranked = np.argsort(-sample.weights[number])
        length, c = len(one.tokens), int(sample.predicted[number])
        counts = [1, int(np.ceil(0.05 * length)), int(np.ceil(0.1 * length))]
        counts.append(int(np.ceil(0.2 * length)))
        drops = [
            _p(sample.case, one, c) - _p(sample.case, one.without(ranked[:k]), c)
            for k in counts
        ]
        assert columns["delete.attention.aopc"][number] == pytest.approx(np.mean(drops))


def test_a_random_token_is_the_mean_over_all_tokens(sample):
    columns = erase_input.run(sample, range(13))
    for number, drops in enumerate(columns["tokens.drop"]):
        assert columns["delete.random.top1"][number] == pytest.approx(np.mean(drops))
        best = columns["delete.leave-one-out.top1"][number]
        assert best == pytest.approx(max(drops))


def test_resampling_puts_another_token_of_the_data_in_the_same_place(sample):
    for altered in erase_input._erased(sample, 4, frozenset({2}), "resample"):
        one = sample.inputs[4]
        assert altered.tokens[2] != one.tokens[2]
        assert altered.tokens[2] in sample.words
        assert altered.tokens[:2] + altered.tokens[3:] == one.tokens[:2] + one.tokens[3:]


def test_fixed_places_are_never_erased_and_all_others_may_be(honest_model):
    one = Input(("w1", "yes1", "w2"), fixed=frozenset({0, 2}))
    other = Input(("w1", "no1", "w2", "w3", "w4"), fixed=frozenset({0, 4}))
    sample = Sample(honest_model, [one, other])
    asked = []

    def predict(batch):
        asked.extend(batch)
        return honest_model.predict(batch)

    sample.case = type("Watched", (), {"name": "x", "weights": None, "predict": None})()
    sample.case.predict = predict
    erase_input.run(sample, range(2))
    assert all(each.tokens[0] == "w1" for each in asked)
    assert all(each.tokens[-1] in ("w2", "w4") for each in asked)


def test_of_long_inputs_the_most_attended_tokens_are_left_out_and_some_others():
    def predict(texts):
        return np.tile([0.4, 0.6], (len(texts), 1))

    def weights(texts):
        return [np.arange(1, len(t) + 1) / np.arange(1, len(t) + 1).sum() for t in texts]

    long = Input(tuple(f"t{i}" for i in range(101)))
    sample = Sample(FunctionCase(predict, weights), [long])
    (found,) = leave_one_out(sample, [0])
    asked = np.flatnonzero(np.isfinite(found.drop))
    assert len(asked) == LONGEST
    assert set(range(85, 101)) <= set(asked.tolist())
    assert not found.complete


def test_ties_are_broken_by_chance_and_unknown_comes_last():
    generator = np.random.default_rng(0)
    firsts = {order(np.ones(5), range(5), generator)[0] for _ in range(100)}
    assert firsts == set(range(5))
    assert order(np.array([0.1, np.nan, 0.3]), range(3), generator) == [2, 0, 1]


def test_each_question_is_asked_once(honest_model, planted):
    asked = []

    class Counting(PlantedCase):
        def predict(self, batch):
            asked.extend(one.tokens for one in batch)
            return super().predict(batch)

    sample = Sample(Counting(honest_model.params, name="x"), planted[:5])
    erase_input.run(sample, range(5))
    once = len(asked)
    leave_one_out(sample, range(5))
    erase_input.run(sample, range(5))
    assert len(asked) == once == sample.asked


def test_zeroing_the_top_weight_by_formula_and_by_running_again_agree(sample, again):
    one, other = (erase_weights.run(each, range(13)) for each in (sample, again))
    for name, column in one.items():
        np.testing.assert_allclose(column, other[name], atol=1e-9)
    weights = sample.weights[0]
    left = without_weight(weights, int(weights.argmax()))
    c = int(sample.predicted[0])
    after = sample.case.predict_with([sample.inputs[0]], [left])[0][c]
    assert one["top.drop"][0] == pytest.approx(sample.probabilities[0, c] - after)


def test_what_is_left_of_weights_sums_to_one_even_if_nothing_is():
    np.testing.assert_allclose(without_weight(np.array([0.5, 0.3, 0.2]), 0), [0, 0.6, 0.4])
    np.testing.assert_allclose(without_weight(np.array([1.0, 0.0, 0.0]), 0), [0, 0.5, 0.5])


def test_mcnemars_p_is_that_of_a_fair_coin():
    assert discordant(0, 0) == 1.0
    assert discordant(5, 0) == pytest.approx(2 * 0.5**5)
    assert discordant(3, 1) == pytest.approx(2 * (1 + 4) / 16)


def test_uniform_weights_and_shuffles_by_formula_and_by_running_again_agree(sample, again):
    one, other = (uniform.run(each, range(13)) for each in (sample, again))
    np.testing.assert_allclose(one["moved"], other["moved"], atol=1e-9)
    found = permute.run(again, range(3))["moved"]
    generator = again.random(0, "permute")
    rows = [generator.permutation(again.weights[0]) for _ in range(20)]
    answers = again.case.predict_with([again.inputs[0]] * 20, rows)
    moved = np.abs(answers[:, 0] - again.probabilities[0, 0])
    assert found[0] == pytest.approx(np.median(moved))


def test_the_fraction_to_flip_counts_the_weights_removed_in_order(sample):
    columns = flip_fraction.run(sample, range(13))
    for number in range(13):
        weights = sample.weights[number]
        ranked = np.argsort(-weights)
        expected = None
        for k in range(1, len(weights)):
            left = weights.copy()
            left[ranked[:k]] = 0.0
            answer = sample.case.predict_with([sample.inputs[number]], [left / left.sum()])[0]
            if answer.argmax() != sample.predicted[number]:
                expected = k / len(weights)
                break
        assert columns["attention"][number] == expected
    assert any(fraction is not None for fraction in columns["attention"])


def test_gradients_of_weights_from_a_read_out_are_those_of_the_model(sample, again):
    for number in range(5):
        found = weight_gradient(
            sample.scores(number)[0],
            sample.probabilities[number],
            int(sample.predicted[number]),
        )
        (expected,) = sample.case.weight_gradient([sample.inputs[number]])
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_gradients_of_weights_of_a_softmax_are_those_of_finite_differences():
    random = np.random.default_rng(0)
    scores, weights = random.normal(size=(7, 3)), random.dirichlet(np.ones(7))

    def answer(a):
        shifted = np.exp(a @ scores)
        return shifted / shifted.sum()

    found = weight_gradient(scores, answer(weights), 2)
    for place in range(7):
        step = np.eye(7)[place] * 1e-6
        slope = (answer(weights + step)[2] - answer(weights - step)[2]) / 2e-6
        assert found[place] == pytest.approx(slope, rel=1e-5)


def test_mass_hits_and_precision_on_marked_tokens(sample):
    columns = gold_mass.run(sample, range(13))
    for number, one in enumerate(sample.inputs):
        (place,) = one.gold
        assert columns["attention.mass"][number] == sample.weights[number][place]
        hit = sample.weights[number].argmax() == place
        assert columns["attention.hit"][number] == float(hit)
        assert columns["random.hit"][number] == 1 / len(one.tokens)
    assert average_precision([4, 1, 0, 2], [1, 2]) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert average_precision([0, 1], [7]) == 0.0


def test_distances_by_hand():
    assert total_variation([0.9, 0.1], [0.6, 0.4]) == pytest.approx(0.3)
    assert jensen_shannon([1.0, 0.0], [0.0, 1.0]) == pytest.approx(LN2)
    assert kullback_leibler([0.5, 0.5], [0.25, 0.75]) == pytest.approx(
        0.5 * np.log(2) + 0.5 * np.log(2 / 3)
    )
    assert kullback_leibler([0.5, 0.5], [1.0, 0.0]) == np.inf
