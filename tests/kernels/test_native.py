"""The native kernel against float64, in every regime where factored tangents could fail."""

import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_regimes import BATCH, REGIMES, T_ENC, TINY, arrays_of, in_float64, normal

from regard.errors import BackendError, ConventionError, MaskError, ShapeError
from regard.kernels import native

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))

VARIANTS = native.variants()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("regime", REGIMES)
def test_scores_and_gradients_are_right_in_every_regime_of(regime, variant, rng):
    *given_, grad = arrays_of(regime, rng)
    expected, gradients = in_float64(*given_, grad)
    scores = native.additive_scores(*given_, variant=variant)
    bound = 1e-7 * np.abs(given_[2].astype(np.float64)).sum()
    np.testing.assert_allclose(scores, expected, rtol=0, atol=bound + TINY)
    found = native.additive_gradients(*given_, grad, variant=variant)
    for name, mine, exact in zip(["query", "key", "v"], found, gradients, strict=True):
        if regime == "normal 1e30" and name != "v":
            # Not a float32 number: the slopes are e^-1e30, the kernel's are 0 or e^-20.
            assert np.abs(mine).max() < 1e-6 * np.abs(given_[2]).max()
            continue
        error = np.abs(mine - exact).max()
        assert error <= 1e-6 * np.abs(exact).max() + 20 * TINY, (name, error)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d_attn", [53, 64, 97])
@pytest.mark.parametrize("light", [1.0, 1e-3, 1e-9, 0.0])
def test_no_width_at_which_the_arithmetic_changes_is_wrong(light, d_attn, variant, rng):
    # Four features share a division, then two, then none, as examples get wider; how wide they
    # may be depends on the lightest pair of features. All widths are in one batch.
    widths = np.concatenate([np.arange(0.2, 24, 0.2), [30, 60]]).astype("f")
    query, key = (normal(rng, widths.size, T, d_attn) for T in (11, 5))
    for side in (query, key):
        side[:, 0], side[:, 1] = -widths[:, None], widths[:, None]
    v = normal(rng, d_attn)
    v[1::3] *= np.float32(light)
    v[::5] *= np.float32(light)
    pairs = query.astype(np.float64)[:, :, None] + key.astype(np.float64)[:, None]
    scores = native.additive_scores(query, key, v, variant=variant)
    expected = np.tanh(pairs) @ v.astype(np.float64)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1.2e-7 * np.abs(v).sum())


@settings(max_examples=60, deadline=None)
@given(
    magnitudes=st.lists(st.floats(-30, 30), min_size=5, max_size=41),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 9)),
    seed=st.integers(0, 2**32 - 1),
    variant=st.sampled_from(VARIANTS or ("none",)),
)
def test_features_of_any_magnitude_give_finite_and_right_results(
    magnitudes, sizes, seed, variant
):
    rng = np.random.default_rng(seed)
    d_attn = len(magnitudes)
    scale = (10.0 ** np.array(magnitudes)).astype(np.float32)
    query, key = (normal(rng, size, d_attn) * scale for size in sizes)
    v, grad = normal(rng, d_attn), normal(rng, *sizes)
    expected, gradients = in_float64(query, key, v, grad)
    scores = native.additive_scores(query, key, v, variant=variant)
    found = native.additive_gradients(query, key, v, grad, variant=variant)
    assert all(np.isfinite(each).all() for each in (scores, *found))
    # Few features average little: a feature alone is within 1.5e-7.
    total = np.abs(v).sum(dtype=np.float64)
    assert np.abs(scores - expected).max() <= 1.5e-7 * total
    # Where all features are saturated the true gradient may be 0: then what counts is what an
    # unsaturated feature would have had.
    reach = np.abs(grad).sum() * np.array([np.abs(v).max(), np.abs(v).max(), 1])
    for mine, exact, most in zip(found, gradients, reach, strict=True):
        assert np.abs(mine - exact).max() <= 1e-6 * np.abs(exact).max() + 1e-7 * most


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("d_attn", [1, 7, 8, 16, 31, 32, 33, 67])
@pytest.mark.parametrize(("T_dec", "T_enc"), [(1, 1), (1, 5), (3, 2), (4, 4), (9, 131)])
def test_every_remainder_of_tiles_and_blocks_is_right(d_attn, T_dec, T_enc, variant, rng):
    query, key = normal(rng, 3, T_dec, d_attn), normal(rng, 3, T_enc, d_attn)
    v, grad = normal(rng, d_attn), normal(rng, 3, T_dec, T_enc)
    expected, gradients = in_float64(query, key, v, grad)
    scores = native.additive_scores(query, key, v, variant=variant)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1.5e-7 * np.abs(v).sum())
    found = native.additive_gradients(query, key, v, grad, variant=variant)
    for mine, exact in zip(found, gradients, strict=True):
        np.testing.assert_allclose(mine, exact, rtol=0, atol=1.5e-6 * np.abs(exact).max())


def _mask(kind):
    mask = np.ones((BATCH, T_ENC), bool)
    if kind == "lengths":
        mask[0, 11:] = mask[1, 3:] = False
    if kind == "holes":
        mask[:, ::3] = False
    if kind == "an example without keys":
        mask[1] = False
    return mask


@pytest.mark.parametrize("kind", ["lengths", "holes", "an example without keys"])
@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_forbidden_keys_are_never_read_and_get_nothing(kind, poison, rng):
    query, key, v, grad = arrays_of("normal 1", rng)
    mask = _mask(kind)
    allowed = [(query[b : b + 1], key[b : b + 1, mask[b]]) for b in range(BATCH)]
    alone = [native.additive_scores(q, k, v) for q, k in allowed]
    key[~mask] = poison
    grad[np.broadcast_to(~mask[:, None], grad.shape)] = poison
    scores = native.additive_scores(query, key, v, key_mask=mask)
    d_query, d_key, d_v = native.additive_gradients(query, key, v, grad, key_mask=mask)
    d_v_alone = 0
    for b, (q, k) in enumerate(allowed):
        assert np.array_equal(scores[b][:, mask[b]], alone[b][0])
        assert (scores[b][:, ~mask[b]] == 0).all()
        upstream = np.ascontiguousarray(grad[b : b + 1, :, mask[b]])
        d_q, d_k, d_v_b = native.additive_gradients(q, k, v, upstream)
        assert np.array_equal(d_query[b], d_q[0])
        assert np.array_equal(d_key[b, mask[b]], d_k[0])
        assert (d_key[b, ~mask[b]] == 0).all()
        d_v_alone = d_v_alone + d_v_b.astype(np.float64)
    np.testing.assert_allclose(d_v, d_v_alone, rtol=0, atol=1e-6 * np.abs(d_v).max())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["query", "key", "v"])
def test_nan_and_infinity_give_what_the_formula_gives(bad, where, rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    arrays = {"query": query, "key": key, "v": v}
    arrays[where][..., 5] = np.where(rng.random(arrays[where][..., 5].shape) < 0.5, bad, 1.0)
    with np.errstate(invalid="ignore"):
        expected = np.tanh(query[:, :, None] + key[:, None]) @ v
    scores = native.additive_scores(query, key, v)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def test_an_example_does_not_depend_on_the_others_in_its_batch(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    before = native.additive_scores(query, key, v)[0].copy()
    key[1], query[1] = np.nan, 1e30
    assert np.array_equal(native.additive_scores(query, key, v)[0], before)


@pytest.mark.parametrize("sizes", [(0, 3, 5), (3, 0, 5), (3, 5, 0)])
def test_an_empty_axis_is_no_trouble(sizes):
    T_dec, T_enc, d_attn = sizes
    query, key = np.ones((2, T_dec, d_attn), "f"), np.ones((2, T_enc, d_attn), "f")
    v, grad = np.ones(d_attn, "f"), np.ones((2, T_dec, T_enc), "f")
    scores = native.additive_scores(query, key, v)
    assert scores.shape == (2, T_dec, T_enc)
    assert (scores == 0).all()
    for mine in native.additive_gradients(query, key, v, grad):
        assert (mine == 0).all()


def test_strides_and_leading_axes_do_not_matter(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    plain = native.additive_scores(query, key, v)
    turned = [np.asfortranarray(each) for each in (query, key)]
    assert np.array_equal(native.additive_scores(*turned, np.repeat(v, 2)[::2]), plain)
    assert np.array_equal(native.additive_scores(query[:, None], key[:, None], v)[:, 0], plain)
    assert np.array_equal(native.additive_scores(query[0], key[0], v), plain[0])


CHILD = """
import multiprocessing, sys
import numpy as np
from regard.kernels import native

def scores():
    rng = np.random.default_rng(7)
    shapes = (2, 7, 53), (2, 19, 53), (53,)
    return native.additive_scores(*(rng.standard_normal(s).astype("f") for s in shapes))

if __name__ == "__main__":
    mine = scores()  # the library is loaded before the fork
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(np.array_equal(pool.apply(scores), mine), np.abs(mine).max() > 1)
"""


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_a_child_process_computes_the_same(way, tmp_path):
    # In an interpreter of its own: other tests load libraries that do not survive a fork.
    if way not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {way} on this system")
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script, way], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.split() == ["True", "True"]


def test_what_the_kernel_does_not_take_is_refused_by_name(rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    with pytest.raises(BackendError, match="float32"):
        native.additive_scores(*(each.astype(np.float64) for each in (query, key, v)))
    with pytest.raises(ShapeError, match="d_attn"):
        native.additive_scores(query, key[..., 1:], v)
    with pytest.raises(MaskError, match="key_mask"):
        native.additive_scores(query, key, v, key_mask=np.ones((BATCH, T_ENC)))
    with pytest.raises(ConventionError, match="variant='sse9'"):
        native.additive_scores(query, key, v, variant="sse9")


def test_inputs_are_not_written_to(rng):
    *given_, grad = arrays_of("normal 1", rng)
    copies = [each.copy() for each in (*given_, grad)]
    native.additive_scores(*given_)
    native.additive_gradients(*given_, grad)
    assert all(map(np.array_equal, copies, (*given_, grad)))
