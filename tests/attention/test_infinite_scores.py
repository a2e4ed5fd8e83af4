"""Scores that overflow: weights are their limit, never NaN."""

import numpy as np
import pytest

import regard as rg
from regard.attention.normalizers import NORMALIZERS
from regard.axes import library

INF = np.inf
ROWS = np.array([[1.0, INF, -3.0, INF, 2.0], [INF, -INF, -INF, 0.0, 1.0], [-INF] * 5])
LIMIT = np.array([[0.0, 0.5, 0.0, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], [0.0] * 5])


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax15"])
def test_keys_whose_score_is_infinite_share_the_weight(xp, name):
    function = NORMALIZERS[name]
    everything = xp.array(np.ones(ROWS.shape, dtype=bool))
    plain, masked = (xp.numpy(function(xp.array(ROWS), mask=may)) for may in (None, everything))
    for weights in (plain, masked, function(ROWS.tolist())):
        np.testing.assert_allclose(weights, LIMIT, rtol=0, atol=1e-12)


def test_an_infinite_score_that_is_forbidden_takes_no_share(xp):
    may = np.ones(ROWS.shape, dtype=bool)
    may[0, 1] = False
    weights = xp.numpy(rg.softmax(xp.array(ROWS), mask=xp.array(may)))
    np.testing.assert_array_equal(weights[0], [0.0, 0.0, 0.0, 1.0, 0.0])


def test_a_nan_that_may_be_attended_is_the_callers_and_shows(xp):
    scores = np.array([[1.0, np.nan, INF], [1.0, 2.0, 3.0]])
    weights = xp.numpy(rg.softmax(xp.array(scores)))
    assert np.isnan(weights[0]).all()
    assert np.isfinite(weights[1]).all()


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize(("dtype", "size"), [("float16", 300.0), ("float64", 1e200)])
def test_a_dot_product_that_overflows_gives_equal_weights(dtype, size):
    states = np.full((3, 7), size, dtype=dtype)
    context, weights = rg.attend(states, states, score="dot")
    assert library(type(weights)) == "NumPy"
    np.testing.assert_allclose(weights, 1 / 3, rtol=1e-3)
    np.testing.assert_allclose(context, states, rtol=1e-3)


def test_gradients_beside_an_infinite_score_are_finite():
    torch = pytest.importorskip("torch")
    scores = torch.tensor(ROWS, requires_grad=True)
    (rg.softmax(scores) * torch.arange(5.0)).sum().backward()
    assert torch.equal(scores.grad, torch.zeros(3, 5, dtype=torch.float64))
