import numpy as np
import pytest
from attention_cases import BATCH, D_ATTN, SCORES, T_DEC, T_ENC, some_mask

import regard as rg
from regard.attention import reference

HEADS, D_HEAD = 3, 5
D_MODEL = HEADS * D_HEAD


def _case(score, rng, heads=HEADS):
    query = rng.normal(size=(BATCH, T_DEC, heads * D_HEAD))
    key = rng.normal(size=(BATCH, T_ENC, heads * D_HEAD))
    value = rng.normal(size=(BATCH, T_ENC, heads * 7))
    shapes = {
        "additive": {"W_a": (D_ATTN, D_HEAD), "U_a": (D_ATTN, D_HEAD), "v_a": (D_ATTN,)},
        "general": {"W": (D_HEAD, D_HEAD)},
        "concat": {"W_c": (D_ATTN, 2 * D_HEAD), "v_c": (D_ATTN,)},
    }.get(score, {})
    params = {name: rng.normal(size=(heads, *shape)) for name, shape in shapes.items()}
    return query, key, value, params


def _arrays(xp, params):
    return {name: xp.array(value) for name, value in params.items()}


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("score", SCORES)
def test_multi_head_agrees_with_the_plain_list_reference(xp, rng, score, masked):
    query, key, value, params = _case(score, rng)
    projections = {
        "W_q": rng.normal(size=(HEADS * D_HEAD, D_MODEL)),
        "W_k": rng.normal(size=(HEADS * D_HEAD, D_MODEL)),
        "W_v": rng.normal(size=(HEADS * 2, HEADS * 7)),
        "W_o": rng.normal(size=(11, HEADS * 2)),
    }
    mask = some_mask(rng, BATCH, T_DEC, T_ENC) if masked else None
    got = rg.multi_head(
        *(xp.array(a) for a in (query, key, value)),
        heads=HEADS,
        score=score,
        mask=None if mask is None else xp.array(mask),
        **_arrays(xp, {**projections, **params}),
    )
    context, weights = xp.numpy(got.context), xp.numpy(got.weights)
    assert weights.shape == (BATCH, HEADS, T_DEC, T_ENC)
    lists = {name: value.tolist() for name, value in {**projections, **params}.items()}
    for b in range(BATCH):
        expected = reference.multi_head(
            query[b].tolist(),
            key[b].tolist(),
            value[b].tolist(),
            heads=HEADS,
            score=score,
            mask=None if mask is None else mask[b].tolist(),
            **lists,
        )
        np.testing.assert_allclose(context[b], expected[0], rtol=0, atol=2e-12)
        np.testing.assert_allclose(weights[b], expected[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_one_head_is_the_single_head_result_exactly(xp, rng, score):
    query, key, value, params = _case(score, rng, heads=1)
    arrays = [xp.array(a) for a in (query, key, value)]
    many = rg.multi_head(*arrays, heads=1, score=score, **_arrays(xp, params))
    single = {name: xp.array(p[0]) for name, p in params.items()}
    one = rg.attend(*arrays, score=score, **single)
    np.testing.assert_array_equal(xp.numpy(many.context), xp.numpy(one.context))
    np.testing.assert_array_equal(xp.numpy(many.weights)[:, 0], xp.numpy(one.weights))


@pytest.mark.parametrize("score", SCORES)
def test_joined_heads_are_each_head_computed_alone(xp, rng, score):
    query, key, value, params = _case(score, rng)
    arrays = [xp.array(a) for a in (query, key, value)]
    together = rg.multi_head(*arrays, heads=HEADS, score=score, **_arrays(xp, params))
    for head in range(HEADS):
        alone = rg.attend(
            xp.array(query[..., head * D_HEAD : (head + 1) * D_HEAD].copy()),
            xp.array(key[..., head * D_HEAD : (head + 1) * D_HEAD].copy()),
            xp.array(value[..., head * 7 : (head + 1) * 7].copy()),
            score=score,
            **{name: xp.array(p[head]) for name, p in params.items()},
        )
        part = xp.numpy(together.context)[..., head * 7 : (head + 1) * 7]
        np.testing.assert_allclose(part, xp.numpy(alone.context), rtol=0, atol=1e-13)


def test_each_head_can_have_its_own_mask(xp, rng):
    query, key, value, _ = _case("dot", rng)
    mask = some_mask(rng, BATCH, HEADS, T_DEC, T_ENC)
    got = rg.multi_head(
        *(xp.array(a) for a in (query, key, value)),
        heads=HEADS,
        score="dot",
        mask=xp.array(mask),
    )
    np.testing.assert_array_equal(xp.numpy(got.weights) > 0, mask)


def test_splitting_keeps_each_position_whole_and_merging_undoes_it(xp, rng):
    x = rng.normal(size=(BATCH, T_ENC, D_MODEL))
    split = rg.split_heads(xp.array(x), HEADS)
    for head in range(HEADS):
        part = x[..., head * D_HEAD : (head + 1) * D_HEAD]
        np.testing.assert_array_equal(xp.numpy(split)[:, head], part)
    np.testing.assert_array_equal(xp.numpy(rg.merge_heads(split)), x)


def test_features_that_do_not_divide_are_refused(rng):
    query, key, value, _ = _case("dot", rng)
    with pytest.raises(rg.ShapeError) as caught:
        rg.multi_head(query, key, value, heads=2, score="dot")
    assert str(caught.value) == (
        "`query` cannot be cut into 2 heads\n"
        "  expected  a number of features that 2 divides\n"
        "  got       15 features"
    )


def test_a_parameter_without_an_axis_of_heads_is_refused(rng):
    query, key, value, params = _case("general", rng)
    with pytest.raises(rg.ShapeError, match="`W` has no leading axis of 3 heads"):
        rg.multi_head(query, key, value, heads=HEADS, score="general", W=params["W"][0])


def test_a_mask_for_another_number_of_heads_is_refused(rng):
    query, key, value, _ = _case("dot", rng)
    mask = np.ones((BATCH, HEADS + 2, T_DEC, T_ENC), dtype=bool)
    with pytest.raises(rg.ShapeError, match="`mask` does not fit `heads`"):
        rg.multi_head(query, key, value, heads=HEADS, score="dot", mask=mask)
