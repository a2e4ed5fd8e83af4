import numpy as np
import pytest
from attention_cases import BATCH, SCORES, T_DEC, T_ENC, case

import regard as rg
from regard.attention import reference, scores
from regard.attention.scores import named


def _arrays(xp, params):
    return {name: xp.array(value) for name, value in params.items()}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("batch", [(), (BATCH,), (BATCH, 3)], ids=str)
def test_every_score_agrees_with_the_plain_list_reference(xp, rng, score, batch):
    query, key, _, params = case(score, rng, batch)
    got = getattr(scores, score)(xp.array(query), xp.array(key), **_arrays(xp, params))
    got = xp.numpy(got)
    assert got.shape == (*batch, T_DEC, T_ENC)
    lists = {name: value.tolist() for name, value in params.items()}
    for index in np.ndindex(*batch):
        expected = reference.SCORES[score](query[index].tolist(), key[index].tolist(), **lists)
        np.testing.assert_allclose(got[index], expected, rtol=0, atol=1e-12)


def test_concat_is_additive_with_the_two_matrices_side_by_side(xp, rng):
    query, key, _, params = case("additive", rng)
    W_c = np.concatenate([params["W_a"], params["U_a"]], axis=1)
    joined = scores.concat(
        xp.array(query), xp.array(key), W_c=xp.array(W_c), v_c=xp.array(params["v_a"])
    )
    apart = scores.additive(xp.array(query), xp.array(key), **_arrays(xp, params))
    np.testing.assert_allclose(xp.numpy(joined), xp.numpy(apart), rtol=0, atol=1e-12)


def test_general_with_the_identity_is_dot(xp, rng):
    query, key, _, _ = case("dot", rng)
    general = scores.general(xp.array(query), xp.array(key), W=xp.array(np.eye(5)))
    dot = scores.dot(xp.array(query), xp.array(key))
    np.testing.assert_allclose(xp.numpy(general), xp.numpy(dot), rtol=0, atol=1e-12)


def test_general_projects_the_query_and_never_the_keys():
    torch = pytest.importorskip("torch")

    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        numel = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            # Views are no work: only what is a product's result counts.
            if "mm" in str(func):
                self.numel = max(self.numel, out.numel())
            return out

    query, key, W = torch.ones(1, 3, 5), torch.ones(1, 101, 7), torch.ones(5, 7)
    with Largest() as largest:
        scores.general(query, key, W=W)
    assert largest.numel == 3 * 101  # the scores; projected keys would be 5 * 101


def test_an_additive_score_never_exceeds_the_sum_of_the_absolute_weights(xp, rng):
    query, key, _, params = case("additive", rng)
    got = scores.additive(xp.array(1e6 * query), xp.array(key), **_arrays(xp, params))
    assert np.abs(xp.numpy(got)).max() <= np.abs(params["v_a"]).sum() * (1 + 1e-12)


@pytest.mark.parametrize(
    ("alias", "score"),
    [("bahdanau", "additive"), ("mlp", "additive"), ("bilinear", "general")],
)
def test_an_alias_is_the_same_function(alias, score):
    assert scores.SCORES[alias] is scores.SCORES[score]


def test_an_unknown_score_is_refused_with_the_names_that_exist():
    with pytest.raises(rg.ConventionError) as caught:
        named("cosine", {})
    assert str(caught.value) == (
        "there is no score 'cosine'\n"
        "  expected  one of `additive`, `bahdanau`, `mlp`, `dot`, `general`, `bilinear`, "
        "`multiplicative`, `concat`, `scaled_dot`, or a function of query and key\n"
        "  got       'cosine'"
    )


def test_a_score_without_its_parameters_says_which_it_takes():
    with pytest.raises(rg.ConventionError) as caught:
        rg.attend(np.zeros((3, 5)), np.zeros((13, 7)), score="additive", W_a=np.zeros((11, 5)))
    assert str(caught.value) == (
        "score 'additive' does not fit its parameters\n"
        "  expected  `W_a`, `U_a`, `v_a`\n"
        "  got       `W_a`"
    )


def test_a_function_as_score_takes_no_parameters_beside_it():
    with pytest.raises(rg.ConventionError, match="cannot take `W`"):
        named(lambda query, key: query, {"W": 1})
