import numpy as np
import pytest
from attention_cases import BATCH, D_S, T_DEC, T_ENC, case, some_mask

import regard as rg
from regard.attention import reference, reference_variants
from regard.attention.local import gaussian, local_attend, predicted_positions, within

D_P, D = 19, 2
LENGTHS = np.array([11, 5])


def _predictor(rng):
    return {"W_p": rng.normal(size=(D_P, D_S)), "v_p": rng.normal(size=D_P)}


def _run(xp, query, key, value, **options):
    options = {k: xp.array(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    result = local_attend(xp.array(query), xp.array(key), xp.array(value), D=D, **options)
    return xp.numpy(result.context), xp.numpy(result.weights)


def _by_hand(query, key, value, lengths, mask, params, predictor):
    """One query at a time, from the plain-list reference."""
    rows = []
    for b, t in np.ndindex(BATCH, T_DEC):
        S, s = int(lengths[b]), query[b, t].tolist()
        p = t if predictor is None else reference_variants.predicted_position(
            s, S, **{name: each.tolist() for name, each in predictor.items()}
        )  # fmt: skip
        may = [i < S and abs(i - p) <= D and bool(mask[b, t, i]) for i in range(T_ENC)]
        scores = reference.general([s], key[b].tolist(), W=params["W"].tolist())[0]
        weights = reference.softmax(scores, may)
        if predictor is not None:
            factor = reference_variants.gaussian(p, T_ENC, D=D)
            weights = [a * f for a, f in zip(weights, factor, strict=True)]
        rows.append((np.array(weights) @ value[b], weights))
    context, weights = (np.array(each) for each in zip(*rows, strict=True))
    return context.reshape(BATCH, T_DEC, -1), weights.reshape(BATCH, T_DEC, T_ENC)


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("kind", ["m", "p"])
def test_local_attention_computes_the_papers_equations(xp, rng, kind, masked):
    query, key, value, params = case("general", rng)
    predictor = _predictor(rng) if kind == "p" else None
    mask = some_mask(rng, BATCH, T_DEC, T_ENC)
    lengths = LENGTHS if masked else np.full(BATCH, T_ENC)
    options = {"mask": mask, "key_lengths": LENGTHS} if masked else {}
    got = _run(xp, query, key, value, score="general", **params, **(predictor or {}), **options)
    seen = mask if masked else np.ones_like(mask)
    expected = _by_hand(query, key, value, lengths, seen, params, predictor)
    np.testing.assert_allclose(got[0], expected[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(got[1], expected[1], rtol=0, atol=1e-12)


def test_local_m_follows_the_diagonal_and_its_rows_sum_to_one(xp, rng):
    query, key, value, params = case("general", rng)
    _, weights = _run(xp, query, key, value, score="general", **params)
    reach = abs(np.arange(T_ENC) - np.arange(T_DEC)[:, None]) <= D
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(reach, weights.shape))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-14)


def test_local_p_multiplies_normalised_weights_and_leaves_them(xp, rng):
    query, key, value, params = case("general", rng)
    predictor = _predictor(rng)
    _, weights = _run(xp, query, key, value, score="general", **params, **predictor)
    rows = weights.sum(-1)
    assert (rows < 1).all()
    assert (rows > np.exp(-2)).all()  # the factor at the edge of the window


def test_a_query_beyond_the_source_has_an_empty_window_and_attends_nowhere(xp):
    query, key = np.ones((1, 7, 3)), np.ones((1, 2, 3))
    context, weights = _run(xp, query, key, key)
    assert (weights[0, : 2 + D].sum(-1) > 0).all()
    assert not weights[0, 2 + D :].any()
    assert not context[0, 2 + D :].any()


def test_positions_are_shares_of_each_examples_own_length(xp, rng):
    query, predictor = rng.normal(size=(BATCH, T_DEC, D_S)), _predictor(rng)
    arrays = {name: xp.array(each) for name, each in predictor.items()}
    got = xp.numpy(predicted_positions(xp.array(query), xp.array(LENGTHS), **arrays))
    for b, t in np.ndindex(BATCH, T_DEC):
        expected = reference_variants.predicted_position(
            query[b, t].tolist(),
            int(LENGTHS[b]),
            **{name: each.tolist() for name, each in predictor.items()},
        )
        np.testing.assert_allclose(got[b, t], expected, rtol=0, atol=1e-12)
    assert ((got > 0) & (got < LENGTHS[:, None])).all()


def test_an_extreme_prediction_lies_at_an_end_of_the_source(xp):
    query = xp.array(np.array([[[1e30], [-1e30]]]))
    got = predicted_positions(
        query,
        xp.array(np.array([7])),
        W_p=xp.array(np.array([[1.0]])),
        v_p=xp.array(np.array([1e5])),
    )
    np.testing.assert_array_equal(xp.numpy(got), [[7.0, 0.0]])


def test_the_gaussian_is_one_at_the_position_and_two_deviations_wide(xp):
    factor = xp.numpy(gaussian(xp.array(np.array([3.0])), D=2, T_enc=7))
    np.testing.assert_allclose(
        factor, [np.exp([-4.5, -2.0, -0.5, 0.0, -0.5, -2.0, -4.5])], atol=1e-15
    )


@pytest.mark.parametrize("kind", ["m", "p"])
@pytest.mark.parametrize("poison", [np.nan, 1e30])
def test_poison_in_padding_and_empty_rows_reaches_no_result_and_no_gradient(rng, kind, poison):
    torch = pytest.importorskip("torch")
    query, key, value, params = case("general", rng)
    predictor = _predictor(rng) if kind == "p" else {}
    mask = some_mask(rng, BATCH, T_DEC, T_ENC)
    lengths = np.array([5, 0])

    def run(fill):
        q, k, v = query.copy(), key.copy(), value.copy()
        k[0, 5:] = v[0, 5:] = k[1] = v[1] = q[0, 0] = q[1] = fill
        given = {"query": q, "key": k, "value": v, **params, **predictor}
        leaves = {n: torch.from_numpy(a.copy()).requires_grad_() for n, a in given.items()}
        masks = {"mask": torch.from_numpy(mask), "key_lengths": torch.from_numpy(lengths)}
        result = local_attend(**leaves, D=D, score="general", **masks)
        (result.context**2).sum().backward()
        grads = {n: leaf.grad.numpy() for n, leaf in leaves.items()}
        return {**grads, "c": result.context.detach(), "a": result.weights.detach()}

    clean, poisoned = run(0.5), run(poison)
    for name in clean:
        np.testing.assert_array_equal(poisoned[name], clean[name], err_msg=name)
    assert not clean["query"][0, 0].any()
    assert not clean["a"][1].any()
    assert clean["key"].any()


@pytest.mark.parametrize("kind", ["m", "p"])
def test_gradients_agree_with_finite_differences(rng, kind):
    torch = pytest.importorskip("torch")
    query, key, value, params = case("general", rng)
    given = {"query": query, "key": key, "value": value, **params}
    given |= _predictor(rng) if kind == "p" else {}
    leaves = [torch.from_numpy(each).requires_grad_() for each in given.values()]
    mask = torch.from_numpy(some_mask(rng, BATCH, T_DEC, T_ENC))

    def both(*own):
        return tuple(
            local_attend(**dict(zip(given, own, strict=True)), D=D, score="general", mask=mask)
        )

    assert torch.autograd.gradcheck(both, leaves)


def test_the_context_is_the_same_without_the_weights(rng):
    query, key, value, params = case("general", rng)
    options = {"D": D, "score": "general", **params, **_predictor(rng)}
    looked = local_attend(query, key, value, **options)
    blind = local_attend(query, key, value, need_weights=False, **options)
    assert blind.weights is None
    np.testing.assert_array_equal(blind.context, looked.context)


def test_a_window_without_width_is_refused():
    with pytest.raises(rg.ConventionError) as caught:
        within(np.zeros(3), D=0, T_enc=7)
    assert str(caught.value) == (
        "within(): `D` is no reach\n  expected  D above 0\n  got       D=0"
    )


def test_half_a_predictor_is_refused():
    with pytest.raises(rg.ConventionError) as caught:
        local_attend(np.zeros((3, 5)), np.zeros((7, 5)), D=2, v_p=np.zeros(19))
    assert str(caught.value) == (
        "local_attend(): `W_p` and `v_p` belong together\n"
        "  expected  both, for a predicted position (local-p), or neither (local-m)\n"
        "  got       `v_p` alone"
    )
