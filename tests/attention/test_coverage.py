import numpy as np
import pytest
from attention_cases import BATCH, D_ATTN, D_H, D_S, T_DEC, T_ENC

import regard as rg
from regard.attention import reference_variants as reference
from regard.attention.coverage import coverage_before, coverage_loss, covered


def _params(rng):
    shapes = {"W_s": (D_ATTN, D_S), "W_h": (D_ATTN, D_H), "w_c": (D_ATTN,)}
    shapes |= {"b": (D_ATTN,), "v": (D_ATTN,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def _case(rng):
    query, key = rng.normal(size=(BATCH, T_DEC, D_S)), rng.normal(size=(BATCH, T_ENC, D_H))
    return query, key, rng.random((BATCH, T_DEC, T_ENC)), _params(rng)


def test_coverage_is_the_sum_of_the_rows_before(xp, rng):
    weights = rng.dirichlet(np.ones(T_ENC), size=(BATCH, T_DEC))
    got = xp.numpy(coverage_before(xp.array(weights)))
    for t in range(T_DEC):
        expected = sum((weights[:, n] for n in range(t)), np.zeros((BATCH, T_ENC)))
        np.testing.assert_allclose(got[:, t], expected, rtol=0, atol=1e-15)


def test_the_covered_score_agrees_with_the_plain_list_reference(xp, rng):
    query, key, coverage, params = _case(rng)
    got = covered(
        xp.array(query),
        xp.array(key),
        coverage=xp.array(coverage),
        **{name: xp.array(p) for name, p in params.items()},
    )
    lists = {name: p.tolist() for name, p in params.items()}
    for n, t in np.ndindex(BATCH, T_DEC):
        expected = reference.covered(
            query[n, t].tolist(), key[n].tolist(), coverage[n, t].tolist(), **lists
        )
        np.testing.assert_allclose(xp.numpy(got)[n, t], expected, rtol=0, atol=1e-12)


def test_without_coverage_and_bias_it_is_the_additive_score(rng):
    query, key, coverage, params = _case(rng)
    params |= {"b": np.zeros(D_ATTN)}
    got = covered(query, key, coverage=np.zeros_like(coverage), **params)
    expected = rg.scores.additive(
        query, key, W_a=params["W_s"], U_a=params["W_h"], v_a=params["v"]
    )
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


def test_the_loss_is_the_overlap_with_what_was_covered(xp, rng):
    weights = rng.dirichlet(np.ones(T_ENC), size=(BATCH, T_DEC))
    got = xp.numpy(coverage_loss(xp.array(weights)))
    for n in range(BATCH):
        expected = reference.coverage_loss(weights[n].tolist())
        np.testing.assert_allclose(got[n], expected, rtol=0, atol=1e-14)
    assert not got[:, 0].any()
    assert ((got[:, 1:] > 0) & (got[:, 1:] <= 1)).all()


def test_attending_elsewhere_costs_nothing_and_attending_again_costs_all(xp):
    once = np.eye(5)
    again = np.repeat(once[:1], 3, axis=0)
    np.testing.assert_array_equal(xp.numpy(coverage_loss(xp.array(once))), np.zeros(5))
    np.testing.assert_array_equal(xp.numpy(coverage_loss(xp.array(again))), [0.0, 1.0, 1.0])


def test_no_step_has_no_coverage_and_no_loss(xp):
    assert xp.numpy(coverage_before(xp.array(np.zeros((0, 7))))).shape == (0, 7)
    assert xp.numpy(coverage_loss(xp.array(np.zeros((0, 7))))).shape == (0,)


def test_gradients_agree_with_finite_differences(rng):
    torch = pytest.importorskip("torch")
    query, key, coverage, params = _case(rng)
    given = {"query": query, "key": key, "coverage": coverage, **params}
    leaves = [torch.from_numpy(each).requires_grad_() for each in given.values()]
    assert torch.autograd.gradcheck(
        lambda *own: covered(**dict(zip(given, own, strict=True))), leaves
    )
    weights = torch.from_numpy(rng.dirichlet(np.ones(T_ENC), size=T_DEC)).requires_grad_()
    assert torch.autograd.gradcheck(coverage_loss, weights)


def test_a_coverage_of_another_shape_is_refused(rng):
    query, key, coverage, params = _case(rng)
    with pytest.raises(rg.ShapeError) as caught:
        covered(query, key, coverage=coverage[:, :1], **params)
    assert str(caught.value) == (
        "covered(): `coverage` does not fit `query` on axis T_dec\n"
        "  expected  coverage (2, T_dec=3, T_enc=13)\n"
        "  got       coverage (2, 1, 13)\n"
        "  because   T_dec = 3 comes from `query`"
    )


@pytest.mark.parametrize("poison", [np.nan, 1e30])
def test_as_a_score_of_attend_padding_and_empty_rows_have_no_influence(rng, poison):
    torch = pytest.importorskip("torch")
    query, key, coverage, params = _case(rng)
    coverage[0, :, 5:] = coverage[1] = 0  # as weights are at forbidden keys

    def run(fill):
        states = key.copy()
        states[0, 5:] = states[1] = fill
        given = {"query": query, "key": states, **params}
        leaves = {n: torch.from_numpy(a.copy()).requires_grad_() for n, a in given.items()}
        own = {n: leaves[n] for n in params} | {"coverage": torch.from_numpy(coverage)}
        result = rg.attend(
            leaves["query"],
            leaves["key"],
            score=lambda q, k: covered(q, k, **own),
            key_lengths=torch.tensor([5, 0]),
        )
        result.context.square().sum().backward()
        return [result.weights.detach(), *(leaf.grad for leaf in leaves.values())]

    clean, poisoned = run(0.5), run(poison)
    assert all(torch.equal(a, b) for a, b in zip(clean, poisoned, strict=True))
    assert not clean[0][1].any()
    assert not clean[2][1].any()
    assert clean[2][0, :5].any()
