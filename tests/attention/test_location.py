import numpy as np
import pytest
from attention_cases import BATCH, D_ATTN, D_H, D_S, T_DEC, T_ENC

import regard as rg
from regard.attention import reference_variants as reference
from regard.attention.location import location, location_features

K, R = 2, 5


def _params(rng):
    shapes = {"W": (D_ATTN, D_S), "V": (D_ATTN, D_H), "U": (D_ATTN, K), "F": (K, R)}
    shapes |= {"b": (D_ATTN,), "w": (D_ATTN,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def _case(rng):
    query, key = rng.normal(size=(BATCH, T_DEC, D_S)), rng.normal(size=(BATCH, T_ENC, D_H))
    return query, key, rng.dirichlet(np.ones(T_ENC), size=(BATCH, T_DEC)), _params(rng)


@pytest.mark.parametrize("T_enc", [3, 13])
def test_features_are_a_centred_convolution(xp, rng, T_enc):
    previous, F = rng.random((BATCH, T_DEC, T_enc)), rng.normal(size=(K, R))
    got = xp.numpy(location_features(xp.array(previous), F=xp.array(F)))
    assert got.shape == (BATCH, T_DEC, T_enc, K)
    for n, t in np.ndindex(BATCH, T_DEC):
        full = np.stack([np.convolve(previous[n, t], taps) for taps in F], axis=-1)
        centred = full[R // 2 : R // 2 + T_enc]
        np.testing.assert_allclose(got[n, t], centred, rtol=0, atol=1e-14)
        lists = reference.location_features(previous[n, t].tolist(), F=F.tolist())
        np.testing.assert_allclose(lists, centred, rtol=0, atol=1e-14)


def test_the_location_score_agrees_with_the_plain_list_reference(xp, rng):
    query, key, previous, params = _case(rng)
    got = rg.scores.location(
        xp.array(query),
        xp.array(key),
        previous=xp.array(previous),
        **{name: xp.array(p) for name, p in params.items()},
    )
    lists = {name: p.tolist() for name, p in params.items()}
    for n, t in np.ndindex(BATCH, T_DEC):
        expected = reference.location(
            query[n, t].tolist(), key[n].tolist(), previous[n, t].tolist(), **lists
        )
        np.testing.assert_allclose(xp.numpy(got)[n, t], expected, rtol=0, atol=1e-12)


def test_without_features_and_bias_it_is_the_additive_score(rng):
    query, key, previous, params = _case(rng)
    params |= {"b": np.zeros(D_ATTN), "U": np.zeros((D_ATTN, K))}
    expected = rg.scores.additive(query, key, W_a=params["W"], U_a=params["V"], v_a=params["w"])
    np.testing.assert_allclose(
        location(query, key, previous=previous, **params), expected, rtol=0, atol=1e-13
    )


def test_gradients_agree_with_finite_differences(rng):
    torch = pytest.importorskip("torch")
    query, key, previous, params = _case(rng)
    given = {"query": query, "key": key, "previous": previous, **params}
    leaves = [torch.from_numpy(each).requires_grad_() for each in given.values()]
    assert torch.autograd.gradcheck(
        lambda *own: location(**dict(zip(given, own, strict=True))), leaves
    )


@pytest.mark.parametrize("poison", [np.nan, 1e30])
def test_as_a_score_of_attend_padding_and_empty_rows_have_no_influence(rng, poison):
    torch = pytest.importorskip("torch")
    query, key, previous, params = _case(rng)
    previous[0, :, 5:] = previous[1] = 0  # as weights are at forbidden keys

    def run(fill):
        states = key.copy()
        states[0, 5:] = states[1] = fill
        given = {"query": query, "key": states, **params}
        leaves = {n: torch.from_numpy(a.copy()).requires_grad_() for n, a in given.items()}
        own = {n: leaves[n] for n in params} | {"previous": torch.from_numpy(previous)}
        result = rg.attend(
            leaves["query"],
            leaves["key"],
            score=lambda q, k: location(q, k, **own),
            key_lengths=torch.tensor([5, 0]),
        )
        result.context.square().sum().backward()
        return [result.weights.detach(), *(leaf.grad for leaf in leaves.values())]

    clean, poisoned = run(0.5), run(poison)
    assert all(torch.equal(a, b) for a, b in zip(clean, poisoned, strict=True))
    assert not clean[0][1].any()
    assert not clean[2][1].any()
    assert clean[2][0, :5].any()


def test_filters_without_a_middle_are_refused():
    with pytest.raises(rg.ConventionError) as caught:
        location_features(np.zeros((3, 13)), F=np.zeros((2, 4)))
    assert str(caught.value) == (
        "location_features(): filters of width 4 have no middle\n"
        "  expected  an odd width r\n"
        "  got       r=4"
    )


def test_features_that_do_not_fit_their_projection_are_refused(rng):
    query, key, previous, params = _case(rng)
    with pytest.raises(rg.ShapeError, match=r"location\(\): `.` does not fit `.` on axis k"):
        location(query, key, previous=previous, **params | {"U": np.zeros((D_ATTN, 3))})
