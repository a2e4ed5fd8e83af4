import numpy as np
import pytest
from attention_cases import BATCH, T_DEC, T_ENC, case, some_mask

import regard as rg
from regard.attention.smoothing import smoothed


def test_weights_are_sigmoids_over_their_sum(xp, rng):
    scores, mask = 3 * rng.normal(size=(5, 13)), some_mask(rng, 5, 13)
    sigmoid = mask / (1 + np.exp(-scores))
    expected = sigmoid / np.maximum(sigmoid.sum(-1, keepdims=True), 1e-300)
    got = xp.numpy(smoothed(xp.array(scores), mask=xp.array(mask)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)
    assert not got[0].any()
    sigmoid = 1 / (1 + np.exp(-scores))
    got = xp.numpy(smoothed(xp.array(scores)))
    np.testing.assert_allclose(
        got, sigmoid / sigmoid.sum(-1, keepdims=True), rtol=0, atol=1e-14
    )


def test_it_is_wider_than_a_softmax():
    scores = np.array([7.0, 5.0, 3.0, -9.0])
    assert smoothed(scores)[2] > 0.3 > rg.softmax(scores)[1]


@pytest.mark.parametrize("low", [-1e4, -1e30])
def test_scores_of_which_every_sigmoid_is_zero_still_make_weights(xp, low):
    got = xp.numpy(smoothed(xp.array(np.array([low, low, 2 * low]))))
    np.testing.assert_allclose(got, [0.5, 0.5, 0.0], atol=1e-15)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e30])
def test_a_forbidden_score_has_no_weight_and_no_influence(rng, poison):
    torch = pytest.importorskip("torch")
    mask = some_mask(rng, 5, 7)
    scores, found = rng.normal(size=(5, 7)), []
    for fill in (0.5, poison):
        leaf = torch.from_numpy(np.where(mask, scores, fill)).requires_grad_()
        weights = smoothed(leaf, mask=torch.from_numpy(mask))
        weights.square().sum().backward()
        found.append((weights.detach(), leaf.grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert not found[1][1][torch.from_numpy(~mask)].any()


def test_gradients_agree_with_finite_differences(rng):
    torch = pytest.importorskip("torch")
    scores = torch.from_numpy(rng.normal(size=(5, 7))).requires_grad_()
    mask = torch.from_numpy(some_mask(rng, 5, 7))
    assert torch.autograd.gradcheck(lambda e: smoothed(e, mask=mask), scores)


def test_the_gradient_at_a_score_of_zero_is_that_of_the_sigmoid():
    torch = pytest.importorskip("torch")
    scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    smoothed(scores)[0].backward()
    torch.testing.assert_close(
        scores.grad, torch.tensor([2.0, -1.0, -1.0], dtype=torch.float64) / 18
    )


def test_attend_knows_it_by_name(xp, rng):
    query, key, value, _ = case("dot", rng)
    mask = some_mask(rng, BATCH, T_DEC, T_ENC)
    arrays = [xp.array(each) for each in (query, key, value)]
    got = rg.attend(*arrays, mask=xp.array(mask), normalizer="smoothed")
    expected = smoothed(query @ key.swapaxes(-1, -2), mask=mask)
    np.testing.assert_allclose(xp.numpy(got.weights), expected, rtol=0, atol=1e-12)
