"""Scores, softmax and context in one native pass, against float64."""

import numpy as np
import pytest
from kernel_regimes import BATCH, REGIMES, T_ENC, TINY, arrays_of, in_float64, normal

from regard.errors import BackendError, ConventionError, MaskError, ShapeError
from regard.kernels import native
from regard.kernels.native_attend import attend, softmax_gradient_at

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))

VARIANTS = native.variants()
D_V = 61  # three vectors of columns, one, and a part of one


def _weights(scores, may=None):
    if may is not None:
        scores = np.where(may, scores, -np.inf)
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("regime", REGIMES)
def test_weights_and_context_are_right_in_every_regime(regime, variant, rng):
    query, key, v, grad = arrays_of(regime, rng)
    value = normal(rng, BATCH, T_ENC, D_V)
    scores, _ = in_float64(query, key, v, grad)
    bound = 1e-7 * np.abs(v.astype(np.float64)).sum() + TINY
    context, weights = attend(query, key, v, value, variant=variant)
    # A score that is off by some number multiplies its weight by e to that number.
    off = min(1.0, np.expm1(min(1.0, 2 * bound))) + 5e-7
    np.testing.assert_allclose(weights, _weights(scores), rtol=0, atol=off)
    mine = weights.astype(np.float64) @ value
    np.testing.assert_allclose(context, mine, rtol=0, atol=1e-6 * np.abs(value).max())


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("T_dec", [1, 2, 3, 5, 7, 8, 11, 13, 29])
def test_every_number_of_queries_and_columns_is_read_rightly(T_dec, variant, rng):
    for d_v in (1, 2, 15, 16, 17, 31, 47, 48, 53):
        query, key, v = normal(rng, 3, T_dec, 37), normal(rng, 3, 19, 37), normal(rng, 37)
        value, may = normal(rng, 3, 19, d_v), rng.random((3, T_dec, 19)) < 0.6
        key_mask = np.arange(19) < np.array([19, 6, 0])[:, None]
        context, weights = attend(
            query, key, v, value, mask=may, key_mask=key_mask, variant=variant
        )
        pairs = query.astype(np.float64)[:, :, None] + key.astype(np.float64)[:, None]
        expected = _weights(np.tanh(pairs) @ v, may & key_mask[:, None])
        np.testing.assert_allclose(weights, expected, rtol=0, atol=2e-6)
        np.testing.assert_allclose(context, expected @ value, rtol=0, atol=1e-5)
        assert not weights[~(may & key_mask[:, None])].any()
        assert not context[2].any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_no_mask_allows_is_never_read(variant, rng):
    query, key, v = normal(rng, 2, 5, 37), normal(rng, 2, 7, 37), normal(rng, 37)
    value, key_mask = normal(rng, 2, 7, 3), np.ones((2, 7), bool)
    key_mask[0, 4:] = False
    expected = attend(query, key, v, value, key_mask=key_mask, variant=variant)
    key[0, 4:], value[0, 4:] = np.nan, np.nan
    found = attend(query, key, v, value, key_mask=key_mask, variant=variant)
    for mine, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_context_is_the_same_without_weights(variant, rng):
    given = normal(rng, 2, 11, 37), normal(rng, 2, 7, 37), normal(rng, 37), normal(rng, 2, 7, 5)
    context, weights = attend(*given, variant=variant)
    alone, none = attend(*given, need_weights=False, variant=variant)
    assert weights.shape == (2, 11, 7)
    assert none is None
    np.testing.assert_array_equal(alone, context)


def test_a_nan_is_its_own_rows_alone(rng):
    query, key, v = normal(rng, 1, 5, 37), normal(rng, 1, 7, 37), normal(rng, 37)
    query[0, 3, 2] = np.nan
    context, weights = attend(query, key, v, normal(rng, 1, 7, 3))
    lost = np.isnan(weights).all(-1)
    assert lost.tolist() == [[False, False, False, True, False]]
    np.testing.assert_array_equal(np.isnan(context).all(-1), lost)
    assert np.isfinite(weights[~lost]).all()


def test_threads_change_nothing(rng, monkeypatch):
    monkeypatch.setattr("regard.kernels.threads._WORTH_A_THREAD", 100)
    monkeypatch.setattr("regard.kernels.threads._allowed", lambda: 1)
    given = normal(rng, 3, 17, 37), normal(rng, 3, 7, 37), normal(rng, 37), normal(rng, 3, 7, 5)
    expected = attend(*given)
    monkeypatch.setattr("regard.kernels.threads._allowed", lambda: 5)
    for mine, wanted in zip(attend(*given), expected, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("sizes", [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_empty_axes_give_zeros_of_the_right_shape(sizes, rng):
    batch, T_dec, T_enc = sizes
    given = normal(rng, batch, T_dec, 7), normal(rng, batch, T_enc, 7), normal(rng, 7)
    context, weights = attend(*given, normal(rng, batch, T_enc, 11))
    assert context.shape == (batch, T_dec, 11)
    assert weights.shape == sizes
    assert not context.any()


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 37])
def test_the_softmaxs_gradient_is_the_formulas(n, rng):
    weights, grad = _weights(normal(rng, 3, n) * 3).astype("f"), normal(rng, 3, n)
    weights[1] = 0  # a query that may attend nowhere
    if n > 2:
        weights[2, 1], grad[2, 1] = 0, np.nan  # and what came of a forbidden key
    grad[1] = np.nan
    w, g = weights.astype(np.float64), np.where(weights == 0, 0, grad).astype(np.float64)
    expected = w * (g - (w * g).sum(-1, keepdims=True))
    softmax_gradient_at(weights.ctypes.data, grad.ctypes.data, 3, n)
    np.testing.assert_allclose(grad, expected, rtol=0, atol=1e-6)


def test_bad_arguments_get_one_clear_error(rng):
    query, key, v = normal(rng, 2, 3, 7), normal(rng, 2, 5, 7), normal(rng, 7)
    value = normal(rng, 2, 5, 11)
    with pytest.raises(ShapeError, match="T_enc"):
        attend(query, key, v, normal(rng, 2, 4, 11))
    with pytest.raises(MaskError, match="mask"):
        attend(query, key, v, value, mask=np.ones((2, 3, 5)))
    with pytest.raises(ShapeError, match="T_dec"):
        attend(query, key, v, value, mask=np.ones((2, 5, 5), bool))
    with pytest.raises(BackendError, match="float32"):
        attend(query, key, v, value.astype(np.float64))
    with pytest.raises(ConventionError, match="variant"):
        attend(query, key, v, value, variant="abacus")
