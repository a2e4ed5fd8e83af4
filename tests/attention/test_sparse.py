import numpy as np
import pytest
from attention_cases import BATCH, T_DEC, T_ENC, case, some_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import regard as rg
from regard.attention import reference_variants as reference
from regard.attention.normalizers import NORMALIZERS, normalizer_of
from regard.attention.sparse import entmax15, sparsemax

BOTH = pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
FUNCTIONS = {"sparsemax": sparsemax, "entmax15": entmax15}


@BOTH
@pytest.mark.parametrize("spread", [0.3, 1.0, 30.0])
def test_it_agrees_with_the_plain_list_reference(xp, rng, name, spread):
    scores, mask = spread * rng.normal(size=(2, 3, 13)), rng.random((2, 3, 13)) < 0.5
    mask[0, 0] = False
    plain = xp.numpy(FUNCTIONS[name](xp.array(scores)))
    masked = xp.numpy(FUNCTIONS[name](xp.array(scores), mask=xp.array(mask)))
    oracle = getattr(reference, name)
    for index in np.ndindex(2, 3):
        expected = oracle(scores[index].tolist())
        np.testing.assert_allclose(plain[index], expected, rtol=0, atol=1e-13)
        expected = oracle(scores[index].tolist(), mask[index].tolist())
        np.testing.assert_allclose(masked[index], expected, rtol=0, atol=1e-13)


def test_sparsemax_is_the_nearest_point_of_the_simplex(rng):
    # Optimality: the residual is constant where weight is, and no larger where there is none.
    scores = rng.normal(size=(101, 7))
    weights = sparsemax(scores)
    residual = scores - weights
    tau = residual.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(np.where(weights > 0, residual - tau, 0), 0, atol=1e-14)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-14)
    assert 0 < (weights == 0).mean() < 1


def test_entmax_maximises_its_own_regularised_score(rng):
    # Peters et al. 2019, eq. 4: no point of the simplex does better than the weights.
    def objective(p, e):
        return (p * e).sum(-1) + (p - p**1.5).sum(-1) / (1.5 * 0.5)

    scores = rng.normal(size=7)
    best = objective(entmax15(scores), scores)
    others = rng.dirichlet(np.full(7, 0.5), size=5003)
    near = 0.999 * entmax15(scores) + 0.001 * others
    assert (objective(others, scores) < best).all()
    assert (objective(near, scores) <= best + 1e-15).all()


@BOTH
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_a_forbidden_score_has_weight_zero_and_no_influence(xp, rng, name, poison):
    scores, mask = rng.normal(size=(3, 13)), rng.random((3, 13)) < 0.5
    mask[0], mask[1] = False, True
    poisoned = np.where(mask, scores, poison)
    function = FUNCTIONS[name]
    clean = xp.numpy(function(xp.array(scores), mask=xp.array(mask)))
    got = xp.numpy(function(xp.array(poisoned), mask=xp.array(mask)))
    np.testing.assert_array_equal(got, clean)
    assert not got[~mask].any()
    assert not got[0].any()
    assert got[1:].any(axis=-1).all()


@BOTH
@settings(deadline=None)
@given(
    scores=hnp.arrays(np.float64, (3, 7), elements=st.floats(-1e30, 1e30)),
    mask=hnp.arrays(np.bool_, (3, 7)),
)
def test_each_row_sums_to_one_or_is_all_zero(name, scores, mask):
    weights = FUNCTIONS[name](scores, mask=mask)
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    np.testing.assert_allclose(weights.sum(axis=-1), mask.any(axis=-1), rtol=0, atol=1e-12)


@BOTH
def test_equal_scores_share_equally_and_infinite_ones_are_forbidden(xp, name):
    scores = np.array([[5.0, 5.0, -np.inf], [-np.inf] * 3])
    got = xp.numpy(FUNCTIONS[name](xp.array(scores)))
    np.testing.assert_allclose(got, [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]], atol=1e-15)


@BOTH
def test_a_score_that_is_not_a_number_shows(name):
    assert np.isnan(FUNCTIONS[name](np.array([[0.0, np.nan, 1.0]]))).any()


@BOTH
def test_lists_give_lists_and_no_keys_no_weights(xp, name):
    function = FUNCTIONS[name]
    assert function([[0.0, 0.0], [5.0, 5.0]], mask=[[True, True], [True, False]]) == [
        [pytest.approx(0.5), pytest.approx(0.5)],
        [pytest.approx(1.0), 0.0],
    ]
    assert function([]) == []
    assert xp.numpy(function(xp.array(np.zeros((3, 0))))).shape == (3, 0)


@BOTH
def test_gradients_agree_with_finite_differences(rng, name):
    torch = pytest.importorskip("torch")
    scores = torch.from_numpy(rng.normal(size=(5, 7))).requires_grad_()
    mask = torch.from_numpy(some_mask(rng, 5, 7))
    function = FUNCTIONS[name]
    assert torch.autograd.gradcheck(function, scores)
    assert torch.autograd.gradcheck(lambda e: function(e, mask=mask), scores)


def test_the_gradient_of_sparsemax_is_that_of_the_paper(rng):
    # Section 2.5: J = diag(s) - s s^T / |S|, s marking the attended keys.
    torch = pytest.importorskip("torch")
    scores = torch.from_numpy(0.3 * rng.normal(size=7))
    got = torch.autograd.functional.jacobian(sparsemax, scores).numpy()
    s = (sparsemax(scores) > 0).double().numpy()
    assert 1 < s.sum() < 7
    np.testing.assert_allclose(got, np.diag(s) - np.outer(s, s) / s.sum(), atol=1e-14)


def test_the_gradient_of_entmax_is_that_of_the_paper(rng):
    # J = diag(s) - s s^T / sum(s), with s the root of the weights.
    torch = pytest.importorskip("torch")
    scores = torch.from_numpy(rng.normal(size=7))
    got = torch.autograd.functional.jacobian(entmax15, scores).numpy()
    s = entmax15(scores).sqrt().numpy()
    np.testing.assert_allclose(got, np.diag(s) - np.outer(s, s) / s.sum(), atol=1e-12)


@BOTH
@pytest.mark.parametrize("poison", [np.nan, 1e30])
def test_poison_and_empty_rows_reach_no_gradient(rng, name, poison):
    torch = pytest.importorskip("torch")
    mask = some_mask(rng, 5, 7)
    scores = torch.from_numpy(np.where(mask, rng.normal(size=(5, 7)), poison)).requires_grad_()
    weights = FUNCTIONS[name](scores, mask=torch.from_numpy(mask))
    (weights**2).sum().backward()
    assert scores.grad.isfinite().all()
    assert not scores.grad[torch.from_numpy(~mask)].any()
    assert scores.grad.any()


@BOTH
def test_half_precision_is_normalised_in_float32(name):
    torch = pytest.importorskip("torch")
    weights = FUNCTIONS[name](torch.zeros(2003, dtype=torch.float16))
    assert weights.dtype == torch.float16
    torch.testing.assert_close(weights, torch.full((2003,), 1 / 2003).half())


@BOTH
def test_it_runs_under_jit_and_has_a_gradient_there(rng, name):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    torch = pytest.importorskip("torch")
    scores, upstream = rng.normal(size=(3, 7)), rng.normal(size=(3, 7))
    function = FUNCTIONS[name]
    got = jax.jit(jax.grad(lambda e: (function(e) * upstream).sum()))(scores)
    leaf = torch.from_numpy(scores).requires_grad_()
    (function(leaf) * torch.from_numpy(upstream)).sum().backward()
    np.testing.assert_allclose(got, leaf.grad.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", list(NORMALIZERS))
def test_attend_takes_a_normalizer_by_name(xp, rng, name):
    query, key, value, _ = case("dot", rng)
    mask = some_mask(rng, BATCH, T_DEC, T_ENC)
    arrays = [xp.array(each) for each in (query, key, value)]
    got = rg.attend(*arrays, mask=xp.array(mask), normalizer=name)
    scores = query @ key.swapaxes(-1, -2)
    expected = NORMALIZERS[name](scores, mask=mask)
    np.testing.assert_allclose(xp.numpy(got.weights), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(xp.numpy(got.context), expected @ value, rtol=0, atol=1e-12)


def test_the_default_normalizer_is_the_softmax_bit_for_bit(rng):
    query, key, value, _ = case("dot", rng)
    assert np.array_equal(
        rg.attend(query, key, value).weights, rg.softmax(query @ key.swapaxes(-1, -2))
    )


def test_every_head_uses_the_normalizer(xp, rng):
    query, key = rng.normal(size=(2, 3, 10)), rng.normal(size=(2, 13, 10))
    options = {"heads": 2, "score": "dot"}
    got = rg.multi_head(xp.array(query), xp.array(key), normalizer="sparsemax", **options)
    for head in range(2):
        part = slice(5 * head, 5 * head + 5)
        expected = sparsemax(query[..., part] @ key[..., part].swapaxes(-1, -2))
        np.testing.assert_allclose(xp.numpy(got.weights)[:, head], expected, rtol=0, atol=1e-12)


def test_a_function_of_scores_and_mask_can_be_the_normalizer(rng):
    query, key, value, _ = case("dot", rng)
    seen = []

    def first(scores, mask):
        seen.append(mask)
        weights = np.zeros_like(scores)
        weights[..., 0] = 1
        return weights

    got = rg.attend(query, key, value, normalizer=first)
    np.testing.assert_array_equal(got.context, np.repeat(value[:, :1], T_DEC, axis=1))
    assert seen == [None]


def test_an_unknown_normalizer_is_refused_with_the_names_that_exist():
    with pytest.raises(rg.ConventionError) as caught:
        normalizer_of("sigmoid")
    assert str(caught.value) == (
        "there is no normalizer 'sigmoid'\n"
        "  expected  one of `softmax`, `sparsemax`, `entmax15`, `smoothed`, or a function of "
        "scores and mask\n"
        "  got       'sigmoid'"
    )


def test_a_normalizer_that_changes_the_shape_is_refused(rng):
    query, key, value, _ = case("dot", rng)
    with pytest.raises(rg.ShapeError) as caught:
        rg.attend(query, key, value, normalizer=lambda scores, mask: scores.sum(-1))
    assert str(caught.value) == (
        "the normalizer's weights do not fit its scores\n"
        "  expected  weights (2, 3, 13), the shape of the scores\n"
        "  got       weights (2, 3)"
    )
    with pytest.raises(rg.ShapeError, match="got       NoneType"):
        rg.attend(query, key, value, normalizer=lambda scores, mask: None)


@BOTH
def test_scores_and_mask_of_two_shapes_are_refused(name):
    with pytest.raises(rg.ShapeError, match=rf"{name}\(\): `mask` does not fit"):
        FUNCTIONS[name](np.zeros((3, 13)), mask=np.ones((3, 11), dtype=bool))
