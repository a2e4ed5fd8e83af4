"""Steps on prepared keys against float64, in every regime that could break them."""

import ctypes

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_regimes import BATCH, REGIMES, T_DEC, T_ENC, TINY, arrays_of, in_float64, normal

from regard.errors import BackendError, ConventionError, MaskError, ShapeError
from regard.kernels import native
from regard.kernels.native_step import prepare, step
from regard.kernels.softmax import masked_softmax

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))

D_V = 11
VARIANTS = native.variants()


def _softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _gradients(keys, query, v, value, d_context, d_weights=None, variant=None):
    """Weights, and the gradients by scores and query, of one step forward and backward."""
    own = keys.keys
    batch, T_enc, d_attn = own.batch, own.T_enc, own.d_attn
    factors = np.empty((batch, own.padded), np.float32)
    kinds = np.empty(batch, np.uint8)
    weights, d_scores = (np.empty((batch, T_enc), np.float32) for _ in range(2))
    context = np.empty((batch, value.shape[-1]), np.float32)
    d_query = np.empty((batch, d_attn), np.float32)
    asked = own.with_values(v.ctypes.data, value.ctypes.data, value.shape[-1])
    shared, at = ctypes.addressof(asked), lambda x: None if x is None else x.ctypes.data
    forward = (query, d_attn, factors, kinds, None, weights, context, 1)
    backward = (factors, kinds, weights, d_context, d_weights, T_enc, d_scores, d_query)
    for name, arguments in (
        ("regard_step_forward", forward),
        ("regard_step_backward", (*backward, d_attn, 1)),
    ):
        plain = (x if isinstance(x, int) else at(x) for x in arguments)
        native.call(name, variant, shared, *plain)
    return weights, d_scores, d_query


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("regime", REGIMES)
def test_scores_weights_and_context_are_right_in_every_regime(regime, variant, rng):
    query, key, v, grad = arrays_of(regime, rng)
    value = normal(rng, BATCH, T_ENC, D_V)
    expected, _ = in_float64(query, key, v, grad)
    bound = 1e-7 * np.abs(v.astype(np.float64)).sum() + TINY
    keys = prepare(key, variant=variant)
    for t in range(T_DEC):
        here = slice(t, t + 1)
        got = step(query[:, here], keys, v, value, variant=variant)
        np.testing.assert_allclose(got.scores, expected[:, here], rtol=0, atol=bound)
        # A score that is off by some number multiplies its weight by e to that number.
        off = min(1.0, np.expm1(min(1.0, 2 * bound))) + 5e-7
        np.testing.assert_allclose(got.weights, _softmax(expected[:, here]), rtol=0, atol=off)
        mine = got.weights.astype(np.float64) @ value
        np.testing.assert_allclose(got.context, mine, rtol=0, atol=1e-6 * np.abs(value).max())


def _check_gradients(query, key, v, value, keys, variant, rng):
    d_context = normal(rng, query.shape[0], value.shape[-1])
    d_weights = normal(rng, query.shape[0], key.shape[1])
    weights, d_scores, d_query = _gradients(
        keys, np.ascontiguousarray(query), v, value, d_context, d_weights, variant
    )
    by_weights = (value.astype(np.float64) @ d_context[..., None])[..., 0] + d_weights
    mean = (weights.astype(np.float64) * by_weights).sum(-1, keepdims=True)
    wanted = weights * (by_weights - mean)
    np.testing.assert_allclose(d_scores, wanted, rtol=0, atol=1e-6 * np.abs(by_weights).max())
    # What the kernel makes of its own gradient by the scores.
    _, (exact, _, _) = in_float64(query[:, None], key, v, d_scores[:, None])
    return d_scores, d_query, exact[:, 0]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("regime", REGIMES)
def test_gradients_by_scores_and_query_are_right_in_every_regime(regime, variant, rng):
    query, key, v, _ = arrays_of(regime, rng)
    value = normal(rng, BATCH, T_ENC, D_V)
    keys = prepare(key, variant=variant)
    for t in (0, 1, T_DEC - 1):
        d_scores, mine, exact = _check_gradients(query[:, t], key, v, value, keys, variant, rng)
        if regime == "normal 1e30":
            # Not a float32 number: the slopes are e^-1e30, the kernel's are 0 or e^-20.
            assert np.abs(mine).max() < 1e-6 * np.abs(v).max()
            continue
        # A softmax's gradients sum to 0, so narrow features cancel: what counts for them is
        # what they are sums of.
        reach = np.abs(d_scores).sum(-1).max() * np.abs(v).max()
        error = np.abs(mine - exact).max()
        assert error <= 1e-6 * np.abs(exact).max() + 2e-7 * reach + 20 * TINY, error


@settings(max_examples=60, deadline=None)
@given(
    magnitudes=st.lists(st.floats(-30, 30), min_size=5, max_size=41),
    T_enc=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    variant=st.sampled_from(VARIANTS or ("none",)),
)
def test_features_of_any_magnitude_give_finite_and_right_results(
    magnitudes, T_enc, seed, variant
):
    rng = np.random.default_rng(seed)
    d_attn = len(magnitudes)
    scale = (10.0 ** np.array(magnitudes)).astype(np.float32)
    query, key = normal(rng, 1, d_attn) * scale, normal(rng, 1, T_enc, d_attn) * scale
    v, value = normal(rng, d_attn), normal(rng, 1, T_enc, D_V)
    keys = prepare(key, variant=variant)
    got = step(query[:, None], keys, v, value, variant=variant)
    assert all(np.isfinite(each).all() for each in got)
    expected = np.tanh(query[:, None].astype(np.float64) + key) @ v.astype(np.float64)
    total = np.abs(v).sum(dtype=np.float64)
    assert np.abs(got.scores[:, 0] - expected).max() <= 1.5e-7 * total
    d_scores, mine, exact = _check_gradients(query, key, v, value, keys, variant, rng)
    assert np.isfinite(d_scores).all()
    assert np.isfinite(mine).all()
    reach = np.abs(d_scores).sum() * np.abs(v).max()
    assert np.abs(mine - exact).max() <= 1e-6 * np.abs(exact).max() + 2e-7 * reach


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d_attn", [1, 7, 8, 16, 31, 32, 33, 67])
@pytest.mark.parametrize(("T_enc", "d_v"), [(1, 1), (3, 16), (4, 31), (5, 65), (131, 3)])
def test_every_remainder_of_tiles_and_vectors_is_right(d_attn, T_enc, d_v, variant, rng):
    query, key = normal(rng, 3, 1, d_attn), normal(rng, 3, T_enc, d_attn)
    v, value = normal(rng, d_attn), normal(rng, 3, T_enc, d_v)
    keys = prepare(key, variant=variant)
    got = step(query, keys, v, value, variant=variant)
    expected, _ = in_float64(query, key, v, np.zeros((3, 1, T_enc)))
    np.testing.assert_allclose(got.scores, expected, rtol=0, atol=1.5e-7 * np.abs(v).sum())
    weights = _softmax(expected)
    np.testing.assert_allclose(got.weights, weights, rtol=0, atol=5e-6)
    np.testing.assert_allclose(got.context, weights @ value, rtol=0, atol=2e-5)
    *_, mine, exact = _check_gradients(query[:, 0], key, v, value, keys, variant, rng)
    np.testing.assert_allclose(mine, exact, rtol=0, atol=1e-6 * np.abs(exact).max())


def _mask():
    mask = np.ones((BATCH, T_ENC), bool)
    mask[0, ::3] = mask[0, 11:] = False
    return mask


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_forbidden_keys_and_values_are_never_read_and_get_nothing(poison, rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    value, mask = normal(rng, BATCH, T_ENC, D_V), _mask()
    query = query[:, :1]
    alone = step(query[:1], prepare(key[:1, mask[0]]), v, value[:1, mask[0]])
    key[~mask] = poison
    value[~mask] = poison
    got = step(query, prepare(key, key_mask=mask), v, value)
    for mine, theirs in zip(got[1:], alone[1:], strict=True):
        assert np.array_equal(mine[:1, :, mask[0]], theirs)
        assert (mine[0, :, ~mask[0]] == 0).all()
    assert np.array_equal(got.context[:1], alone.context)


def test_an_example_without_keys_reads_nothing_and_gets_zeros(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    value, mask = normal(rng, BATCH, T_ENC, D_V), _mask()
    mask[1], query[1], key[1], value[1] = False, np.nan, np.nan, np.nan
    keys = prepare(key, key_mask=mask)
    got = step(query[:, :1], keys, v, value)
    assert all((each[1] == 0).all() for each in got)
    assert np.isfinite(got.context[0]).all()
    found = _gradients(keys, query[:, 0].copy(), v, value, normal(rng, BATCH, D_V))
    assert all((each[1] == 0).all() for each in found)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["query", "key", "v"])
def test_nan_and_infinity_give_what_the_formula_gives(bad, where, rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    arrays = {"query": query, "key": key, "v": v}
    arrays[where][..., 5] = np.where(rng.random(arrays[where][..., 5].shape) < 0.5, bad, 1.0)
    value, mask = normal(rng, BATCH, T_ENC, D_V), _mask()
    query = query[:, :1]
    with np.errstate(invalid="ignore"):
        scores = np.tanh(query[:, :, None] + key[:, None]) @ v
    expected = masked_softmax(torch.from_numpy(scores), torch.from_numpy(mask[:, None]))
    got = step(query, prepare(key, key_mask=mask), v, value)
    np.testing.assert_allclose(got.weights, expected.numpy(), rtol=0, atol=1e-5)


def test_an_example_does_not_depend_on_the_others_in_its_batch(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    value = normal(rng, BATCH, T_ENC, D_V)
    before = step(query[:, :1], prepare(key), v, value)
    key[1], query[1] = np.nan, 1e30
    after = step(query[:, :1], prepare(key), v, value)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("sizes", [(0, 3, 5, 2), (3, 0, 5, 2), (3, 5, 0, 2), (3, 5, 7, 0)])
def test_an_empty_axis_is_no_trouble(sizes):
    batch, T_enc, d_attn, d_v = sizes
    key, value = np.ones((batch, T_enc, d_attn), "f"), np.ones((batch, T_enc, d_v), "f")
    got = step(np.ones((batch, 1, d_attn), "f"), prepare(key), np.ones(d_attn, "f"), value)
    assert got.context.shape == (batch, 1, d_v)
    assert got.weights.shape == (batch, 1, T_enc)
    share = 1 / T_enc if T_enc else 0
    np.testing.assert_allclose(got.weights, np.full(got.weights.shape, share), rtol=1e-6)


def test_strides_and_leading_axes_do_not_matter(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    value = normal(rng, BATCH, T_ENC, D_V)
    plain = step(query[:, :1], prepare(key), v, value)
    turned = step(
        np.asfortranarray(query)[:, :1],
        prepare(np.asfortranarray(key), key_mask=np.ones((BATCH, 2 * T_ENC), bool)[:, ::2]),
        np.repeat(v, 2)[::2],
        np.asfortranarray(value),
    )
    deep = step(query[:, None, :1], prepare(key[:, None]), v, value[:, None])
    flat = step(query[0, :1], prepare(key[0]), v, value[0])
    for mine, a, b, c in zip(plain, turned, deep, flat, strict=True):
        assert np.array_equal(mine, a)
        assert np.array_equal(mine, b[:, 0])
        assert np.array_equal(mine[0], c)


def test_selected_keys_are_those_examples_in_that_order(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    value, order = normal(rng, BATCH, T_ENC, D_V), np.array([1, 0, 1])
    prepared = prepare(key, key_mask=_mask())
    before = step(query[:, :1], prepared, v, value)
    moved = np.ascontiguousarray(key[order])
    chosen = prepared._replace(
        keys=prepared.keys.select(moved.ctypes.data, order), shape=moved.shape, key=moved
    )
    after = step(query[order, :1], chosen, v, value[order])
    assert all(np.array_equal(a[order], b) for a, b in zip(before, after, strict=True))


def test_what_a_step_does_not_take_is_refused_by_name(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    value = normal(rng, BATCH, T_ENC, D_V)
    keys = prepare(key)
    with pytest.raises(BackendError, match="float32"):
        prepare(key.astype(np.float64))
    with pytest.raises(MaskError, match="key_mask"):
        prepare(key, key_mask=np.ones((BATCH, T_ENC)))
    with pytest.raises(ConventionError, match="variant='sse9'"):
        prepare(key, variant="sse9")
    with pytest.raises(BackendError, match="float32"):
        step(*(x.astype(np.float64) if x is query else x for x in (query, keys)), v, value)
    with pytest.raises(BackendError, match=r"`keys` are not prepared"):
        step(query[:, :1], key, v, value)
    with pytest.raises(ShapeError, match=r"`keys` do not fit `query` and `value`"):
        step(query[:1, :1], keys, v, value[:1])
    with pytest.raises(ShapeError, match="d_attn"):
        step(query[:, :1], keys, v[1:], value)
    with pytest.raises(ShapeError, match="more than one query"):
        step(query, keys, v, value)


def test_inputs_are_not_written_to(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    given_ = [query[:, :1], key, v, normal(rng, BATCH, T_ENC, D_V)]
    copies = [each.copy() for each in given_]
    step(given_[0], prepare(key), v, given_[3])
    assert all(map(np.array_equal, copies, given_))
