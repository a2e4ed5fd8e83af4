import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import regard as rg
from regard.attention import reference


def test_softmax_agrees_with_the_plain_list_reference(xp, rng):
    scores, mask = 3 * rng.normal(size=(2, 3, 13)), rng.random((2, 3, 13)) < 0.5
    mask[0, 0] = False
    plain, masked = (
        xp.numpy(rg.softmax(xp.array(scores))),
        xp.numpy(rg.softmax(xp.array(scores), mask=xp.array(mask))),
    )
    for index in np.ndindex(2, 3):
        expected = reference.softmax(scores[index].tolist())
        np.testing.assert_allclose(plain[index], expected, rtol=0, atol=1e-15)
        expected = reference.softmax(scores[index].tolist(), mask[index].tolist())
        np.testing.assert_allclose(masked[index], expected, rtol=0, atol=1e-15)


def test_the_reference_softmax_is_the_definition():
    weights = reference.softmax([1.0, 2.0, 4.0])
    total = math.e + math.e**2 + math.e**4
    assert weights == pytest.approx([math.e / total, math.e**2 / total, math.e**4 / total])


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_a_forbidden_score_has_weight_zero_and_no_influence_whatever_it_holds(xp, rng, poison):
    scores, mask = rng.normal(size=(3, 13)), rng.random((3, 13)) < 0.5
    mask[0], mask[1] = False, True
    poisoned = np.where(mask, scores, poison)
    clean = xp.numpy(rg.softmax(xp.array(scores), mask=xp.array(mask)))
    got = xp.numpy(rg.softmax(xp.array(poisoned), mask=xp.array(mask)))
    np.testing.assert_array_equal(got, clean)
    assert not got[~mask].any()
    assert not got[0].any()


@settings(deadline=None)
@given(
    scores=hnp.arrays(np.float64, (3, 7), elements=st.floats(-1e30, 1e30)),
    mask=hnp.arrays(np.bool_, (3, 7)),
)
def test_each_row_sums_to_one_or_is_all_zero(scores, mask):
    weights = rg.softmax(scores, mask=mask)
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    np.testing.assert_allclose(weights.sum(axis=-1), mask.any(axis=-1), rtol=0, atol=1e-12)


@settings(deadline=None)
@given(
    scores=hnp.arrays(np.float64, 7, elements=st.floats(-1e3, 1e3)),
    shift=st.floats(-1e3, 1e3),
)
def test_adding_one_number_to_all_scores_changes_nothing(scores, shift):
    np.testing.assert_allclose(rg.softmax(scores + shift), rg.softmax(scores), atol=1e-11)


def test_scores_of_minus_infinity_forbid_as_a_mask_does(xp):
    scores = np.array([[0.0, -np.inf, 1.0], [-np.inf, -np.inf, -np.inf]])
    got = xp.numpy(rg.softmax(xp.array(scores)))
    np.testing.assert_allclose(got, rg.softmax(scores, mask=np.isfinite(scores)), atol=1e-15)
    assert not got[1].any()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_is_normalised_in_float32_and_rounded_once(name):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    scores = 3 * torch.randn(53, 211, generator=torch.Generator().manual_seed(2015))
    scores = scores.to(dtype)
    weights = rg.softmax(scores)
    assert weights.dtype == dtype
    once = torch.softmax(scores.double(), dim=-1).to(dtype)
    # A float32 result falls on the other side of a rounding boundary now and then; exponentials
    # and sums that were rounded to half precision on the way miss most of the time.
    assert (weights != once).double().mean() < 0.01


def test_no_keys_at_all_give_no_weights(xp):
    assert xp.numpy(rg.softmax(xp.array(np.zeros((3, 0))))).shape == (3, 0)
    assert rg.softmax([]) == []


def test_nested_lists_give_nested_lists():
    weights = rg.softmax([[0.0, 0.0], [5.0, 5.0]], mask=[[True, True], [True, False]])
    assert weights == [[0.5, 0.5], [1.0, 0.0]]


def test_integer_masks_are_refused_with_the_conversion_to_use():
    with pytest.raises(rg.MaskError) as caught:
        rg.softmax(np.zeros((3, 13)), mask=np.ones((3, 13), dtype=int))
    assert str(caught.value) == (
        "softmax(): `mask` is not a boolean array\n"
        "  expected  a boolean array mask (*rows, T_enc)\n"
        "  got       dtype int64\n"
        "  because   a mask is True where a query may attend\n"
        "  help      `mask != 0` if 1 means may attend, `mask == 0` if 1 means padding"
    )
