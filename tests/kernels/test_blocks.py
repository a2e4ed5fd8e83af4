"""Blocks against float64, in every regime where factored tangents could fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_regimes import (
    BATCH,
    D_ATTN,
    REGIMES,
    T_DEC,
    T_ENC,
    TINY,
    arrays_of,
    in_float64,
    normal,
)

from regard.kernels import block_gradients, blocks
from regard.kernels.block_gradients import additive_gradients
from regard.kernels.grouped import survey


@pytest.fixture(params=[4, 2, 0], ids=["groups of 4", "groups of 2", "tangents"])
def group(request, monkeypatch):
    """The largest group of features, whatever the sizes."""
    monkeypatch.setattr(blocks, "_WORTH", ((request.param, 0.0),) if request.param else ())
    return request.param


@pytest.fixture(params=[2**17, 3 * 7 * 19, 40])
def block(request, monkeypatch):
    """Blocks that hold all, some groups of an example, and single rows."""
    monkeypatch.setattr(blocks, "BLOCK", request.param)
    monkeypatch.setattr(block_gradients, "BLOCK", request.param)


def _torch(function, *arrays):
    import torch

    found = function(*(torch.from_numpy(each) for each in arrays))
    return tuple(x.numpy() for x in found) if isinstance(found, tuple) else found.numpy()


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("regime", REGIMES)
def test_scores_are_right_in_every_regime(regime, library, group, rng):
    *given_, grad = arrays_of(regime, rng)
    expected, _ = in_float64(*given_, grad)
    if library == "torch":
        scores = _torch(blocks.additive_scores, *given_)
    else:
        scores = blocks.additive_scores(*given_)
    # Where a few weights outweigh the rest, a tangent's own error shows.
    each = 2e-7 if regime == "weights of every size" else 1e-7
    bound = each * np.abs(given_[2].astype(np.float64)).sum()
    np.testing.assert_allclose(scores, expected, rtol=0, atol=bound + 20 * TINY)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("regime", REGIMES)
def test_gradients_are_right_in_every_regime(regime, library, rng):
    *given_, grad = arrays_of(regime, rng)
    _, expected = in_float64(*given_, grad)
    if library == "torch":
        found = _torch(additive_gradients, *given_, grad)
    else:
        found = additive_gradients(*given_, grad)
    for name, mine, right in zip(["query", "key", "v"], found, expected, strict=True):
        if regime == "normal 1e30" and name != "v":
            # Not a float32 number: the slopes are e^-1e30.
            assert np.abs(mine).max() < 1e-6 * np.abs(given_[2]).max()
            continue
        error = np.abs(mine - right).max()
        assert error <= 1e-6 * np.abs(right).max() + 40 * TINY, (name, error)


NEAR_ZERO = ("normal 1e-30", "normal 1e-4", "normal 0.03", "zeros", "denormal sums")


@pytest.mark.parametrize("regime", REGIMES)
def test_few_queries_in_pytorch_are_right_in_every_regime_but_one_gradient(
    monkeypatch, regime, rng
):
    # Features one by one, which is faster for few queries and keys; sums near zero cancel in
    # the gradient by v, which has an absolute error there instead of a relative one.
    import torch

    from regard.kernels.additive import additive_scores

    monkeypatch.setenv("REGARD_KERNELS", "blocks")
    *given_, grad = arrays_of(regime, rng)
    expected, gradients = in_float64(*given_, grad)
    inputs = [torch.from_numpy(each).requires_grad_() for each in given_]
    scores = additive_scores(*inputs)
    # Subnormal weights have few digits to begin with.
    each = 5e-6 if regime == "denormal weights" else 2e-7
    error = np.abs(scores.detach().numpy() - expected).max()
    assert error <= each * np.abs(given_[2].astype(np.float64)).sum()
    found = torch.autograd.grad(scores, inputs, torch.from_numpy(grad))
    for name, mine, right in zip(["query", "key", "v"], found, gradients, strict=True):
        error, largest = np.abs(mine.numpy() - right).max(), np.abs(right).max()
        if regime == "normal 1e30" and name != "v":
            # Not a float32 number: the slopes are e^-1e30.
            assert error < 1e-6 * np.abs(given_[2]).max()
        elif regime in NEAR_ZERO and name == "v":
            assert error <= 1e-8 * np.abs(grad).sum()
        else:
            assert error <= 1e-6 * largest, (name, error / largest)


@pytest.mark.parametrize("d_attn", [37, 40, 67])
@pytest.mark.parametrize(("T_dec", "T_enc"), [(1, 1), (2, 5), (3, 2), (9, 31)])
def test_every_remainder_of_groups_and_blocks_is_right(T_dec, T_enc, d_attn, group, block, rng):
    query, key = normal(rng, 3, T_dec, d_attn), normal(rng, 3, T_enc, d_attn)
    v, grad = normal(rng, d_attn), normal(rng, 3, T_dec, T_enc)
    expected, gradients = in_float64(query, key, v, grad)
    scores = blocks.additive_scores(query, key, v)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1.5e-7 * np.abs(v).sum())
    for mine, right in zip(additive_gradients(query, key, v, grad), gradients, strict=True):
        np.testing.assert_allclose(mine, right, rtol=0, atol=1.5e-6 * np.abs(right).max())


@settings(max_examples=60, deadline=None)
@given(
    magnitudes=st.lists(st.floats(-30, 30), min_size=33, max_size=71),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 9)),
    seed=st.integers(0, 2**32 - 1),
)
def test_features_of_any_magnitude_give_finite_and_right_results(magnitudes, sizes, seed):
    rng = np.random.default_rng(seed)
    scale = (10.0 ** np.array(magnitudes)).astype(np.float32)
    query, key = (normal(rng, size, scale.size) * scale for size in sizes)
    v, grad = np.sign(normal(rng, scale.size)), normal(rng, *sizes)
    expected, gradients = in_float64(query, key, v, grad)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_WORTH", ((4, 0.0),))
        scores = blocks.additive_scores(query, key, v)
    found = additive_gradients(query, key, v, grad)
    assert all(np.isfinite(each).all() for each in (scores, *found))
    assert np.abs(scores - expected).max() <= 1.5e-7 * scale.size
    reach = np.abs(grad).sum() * np.ones(3)
    for mine, right, most in zip(found, gradients, reach, strict=True):
        assert np.abs(mine - right).max() <= 1e-6 * np.abs(right).max() + 1e-7 * most


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["query", "key", "v"])
def test_nan_and_infinity_give_what_the_formula_gives(bad, where, group, rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    arrays = {"query": query, "key": key, "v": v}
    arrays[where][..., 5] = np.where(rng.random(arrays[where][..., 5].shape) < 0.5, bad, 1.0)
    with np.errstate(invalid="ignore"):
        expected = np.tanh(query[:, :, None] + key[:, None]) @ v
    scores = blocks.additive_scores(query, key, v)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def test_an_example_does_not_depend_on_the_others_in_its_batch(group, rng):
    query, key, v, grad = arrays_of("normal 1", rng)
    before = blocks.additive_scores(query, key, v)[0].copy()
    slopes = [each[0].copy() for each in additive_gradients(query, key, v, grad)[:2]]
    key[1], query[1] = np.nan, 1e30
    assert np.array_equal(blocks.additive_scores(query, key, v)[0], before)
    after = additive_gradients(query, key, v, grad)
    assert all(
        np.array_equal(mine[0], slope) for mine, slope in zip(after, slopes, strict=False)
    )


def test_the_regimes_meet_every_size_of_group(rng):
    # Else the tests above would say nothing of one of them.
    looked = [survey(*arrays_of(name, rng)[:2]) for name in ("normal 1", "normal 3", "zeros")]
    assert [each.groups[0] for each in looked] == [4, 2, 0]
    assert [each.squares[0] for each in looked] == [True, True, False]


def test_strides_leading_axes_and_other_types_do_not_matter(group, rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    plain = blocks.additive_scores(query, key, v)
    turned = [np.asfortranarray(each) for each in (query, key)]
    assert np.array_equal(blocks.additive_scores(*turned, np.repeat(v, 2)[::2]), plain)
    assert np.array_equal(blocks.additive_scores(query[:, None], key[:, None], v)[:, 0], plain)
    assert np.array_equal(blocks.additive_scores(query[0], key[0], v), plain[0])
    double = [each.astype(np.float64) for each in (query, key, v)]
    expected, _ = in_float64(*double, np.zeros_like(plain))
    found = blocks.additive_scores(*double)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [(0, 3, 5), (3, 0, 5), (3, 5, 0)])
def test_an_empty_axis_is_no_trouble(sizes, group):
    T_dec, T_enc, d_attn = sizes
    query, key = np.ones((2, T_dec, d_attn), "f"), np.ones((2, T_enc, d_attn), "f")
    v, grad = np.ones(d_attn, "f"), np.ones((2, T_dec, T_enc), "f")
    scores = blocks.additive_scores(query, key, v)
    assert scores.shape == (2, T_dec, T_enc)
    assert (scores == 0).all()
    for mine, given_ in zip(
        additive_gradients(query, key, v, grad), (query, key, v), strict=True
    ):
        assert mine.shape == given_.shape
        assert (mine == 0).all()


def test_inputs_are_not_written_to(group, rng):
    *given_, grad = arrays_of("normal 1", rng)
    copies = [each.copy() for each in (*given_, grad)]
    blocks.additive_scores(*given_)
    additive_gradients(*given_, grad)
    assert all(map(np.array_equal, copies, (*given_, grad)))


def test_every_library_computes_the_same_in_groups(xp, group, rng):
    *given_, grad = arrays_of("normal 1", rng)
    expected, _ = in_float64(*given_, grad)
    found = xp.numpy(blocks.additive_scores(*(xp.array(each) for each in given_)))
    assert found.shape == (BATCH, T_DEC, T_ENC)
    assert found.dtype == np.float32
    bound = 1e-7 * np.abs(given_[2]).sum()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
    assert D_ATTN % 4  # the last group is not full


def test_memory_does_not_grow_with_the_pairs():
    import tracemalloc

    rng = np.random.default_rng(3)
    query, key, v = normal(rng, 1, 499, 37), normal(rng, 1, 503, 37), np.ones(37, "f")
    pairs = 4 * 499 * 503 * 37
    tracemalloc.start()
    try:
        scores = blocks.additive_scores(query, key, v)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        np.tanh(query[:, :, None] + key[:, None]) @ v
        plain = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert plain > pairs  # the measure does see such an array where it exists
    assert peak < pairs / 4
    assert peak > scores.nbytes
