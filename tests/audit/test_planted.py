"""The control: its gradients, its training, and that its two models are what they claim."""

import numpy as np
import pytest

from regard.audit import planted as module
from regard.audit.planted import PLANTED, planted_inputs, train_planted
from regard.audit.selftest import run_selftest


def test_every_input_has_one_planted_word_that_is_its_label():
    for one in planted_inputs(53, seed=2):
        (place,) = one.gold
        assert one.tokens[place] in PLANTED[int(one.label)]
        others = [token for i, token in enumerate(one.tokens) if i != place]
        assert not {*PLANTED[0], *PLANTED[1]} & set(others)


def test_gradients_by_hand_are_those_of_finite_differences():
    random = np.random.default_rng(0)
    params = module._start(random, True)
    inputs = planted_inputs(5)
    ids = module._ids(inputs)
    labels = np.array([float(one.label) for one in inputs])
    deciding = np.isin(ids, list(module._DECIDING))

    def loss(values):
        run = module._forward(values, ids)
        p = run["p"]
        entropy = -(labels * np.log(p) + (1 - labels) * np.log(1 - p)).mean()
        return entropy - 0.7 * np.log(1 - (run["alpha"] * deciding).sum(1)).mean()

    gradients = module._backward(params, ids, labels, 0.7, None)
    for name, gradient in gradients.items():
        for _ in range(3):
            place = tuple(int(random.integers(size)) for size in params[name].shape)
            if name == "E":
                place = (int(ids[0, 0]), place[1])
            shifted = []
            for step in (1e-6, -1e-6):
                values = {key: value.copy() for key, value in params.items()}
                values[name][place] += step
                shifted.append(loss(values))
            slope = (shifted[0] - shifted[1]) / 2e-6
            assert slope == pytest.approx(gradient[place], rel=1e-4, abs=1e-8)


def test_gradients_of_tokens_and_weights_are_those_of_finite_differences(honest_model, planted):
    one = planted[0]
    own = honest_model.weights([one])[0]
    p = honest_model.predict([one])[0]
    c = int(p.argmax())
    found = honest_model.weight_gradient([one])[0]
    for place in range(len(own)):
        step = np.zeros_like(own)
        step[place] = 1e-6
        higher, lower = (
            honest_model.predict_with([one], [own + s])[0][c] for s in (step, -step)
        )
        assert found[place] == pytest.approx((higher - lower) / 2e-6, rel=1e-3, abs=1e-9)
    # Scaling a token's embedding by 1 + e changes p by e times input x gradient.
    tokens = honest_model.token_gradient([one])[0]
    ids = module._ids([one])
    for place in (0, 3, len(own) - 1):
        values = []
        for scale in (1 + 1e-6, 1 - 1e-6):
            extra = {**honest_model.params}
            extra["E"] = np.vstack([extra["E"], extra["E"][ids[0, place]] * scale])
            changed = ids.copy()
            changed[0, place] = len(extra["E"]) - 1
            last = module._forward(extra, changed, own[None])["p"][0]
            values.append(last if c else 1 - last)
        slope = abs(values[0] - values[1]) / 2e-6
        assert tokens[place] == pytest.approx(slope, rel=1e-3, abs=1e-8)


def test_training_is_the_same_for_the_same_seed():
    one, other = (train_planted(seed=3, steps=7).case.params for _ in range(2))
    assert all((one[name] == other[name]).all() for name in one)


def test_the_deceived_model_is_as_accurate_and_puts_nothing_on_the_planted_word(
    honest_model, deceived_model, planted
):
    for case, low, high in ((honest_model, 0.5, 1.0), (deceived_model, 0.0, 0.01)):
        right = case.predict(planted).argmax(-1) == [int(one.label) for one in planted]
        mass = [
            row[list(one.gold)].sum()
            for row, one in zip(case.weights(planted), planted, strict=True)
        ]
        assert right.mean() > 0.95
        assert low <= np.mean(mass) <= high


def test_the_selftest_tells_the_two_apart():
    found = run_selftest(seed=1, n=40)
    assert found.passed
    assert found.honest.share >= 0.8
    assert found.deceived.share <= 0.2
    assert (found.honest.l2, found.deceived.l2) == ("passed", "failed")
    swapped = type(found)(1, found.deceived, found.honest)
    assert not swapped.passed
