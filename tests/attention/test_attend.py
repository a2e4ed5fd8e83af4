import numpy as np
import pytest
from attention_cases import BATCH, D_V, SCORES, T_DEC, T_ENC, case, some_mask

import regard as rg
from regard.attention import reference


def _run(xp, query, key, value, params, **options):
    options = {k: xp.array(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    params = {name: xp.array(p) for name, p in params.items()}
    result = rg.attend(xp.array(query), xp.array(key), xp.array(value), **options, **params)
    return xp.numpy(result.context), xp.numpy(result.weights)


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("score", SCORES)
def test_attend_agrees_with_the_plain_list_reference(xp, rng, score, masked):
    query, key, value, params = case(score, rng)
    mask = some_mask(rng, BATCH, T_DEC, T_ENC) if masked else None
    bias = rng.normal(size=(BATCH, T_DEC, T_ENC))
    context, weights = _run(
        xp, query, key, value, params, score=score, mask=mask, bias=bias, scale=0.7
    )
    assert context.shape == (BATCH, T_DEC, D_V)
    scale = 0.7
    if score == "scaled_dot":
        scale, score = 0.7, "dot"  # an explicit scale takes the place of 1/sqrt(d)
    for b in range(BATCH):
        expected = reference.attend(
            query[b].tolist(),
            key[b].tolist(),
            value[b].tolist(),
            score=score,
            mask=None if mask is None else mask[b].tolist(),
            bias=bias[b].tolist(),
            scale=scale,
            **{name: p.tolist() for name, p in params.items()},
        )
        np.testing.assert_allclose(context[b], expected[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(weights[b], expected[1], rtol=0, atol=1e-12)


def test_the_reference_computes_the_weighted_mean_of_the_values():
    context, weights = reference.attend(
        [[1.0, 0.0]], [[0.0, 5.0], [0.0, 7.0]], [[2.0], [4.0]], score="dot"
    )
    assert weights == [[0.5, 0.5]]
    assert context == [[3.0]]


def test_lengths_a_mask_and_causality_hold_together(xp, rng):
    query, key, value, params = case("dot", rng)
    mask = some_mask(rng, BATCH, T_DEC, T_ENC)
    lengths = np.array([5, 2])
    _, weights = _run(
        xp, query, key, value, params, mask=mask, key_lengths=lengths, causal="bottom_right"
    )
    real = np.arange(T_ENC) < lengths[:, None, None]
    past = np.arange(T_ENC) <= np.arange(T_DEC)[:, None] + T_ENC - T_DEC
    np.testing.assert_array_equal(weights > 0, mask & real & past)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("poison", [np.nan, 1e30])
def test_poison_in_padding_changes_nothing(xp, rng, score, poison):
    query, key, value, params = case(score, rng)
    lengths = np.array([5, 2])
    clean = _run(xp, query, key, value, params, score=score, key_lengths=lengths)
    padding = np.arange(T_ENC) >= lengths[:, None]
    key, value = key.copy(), value.copy()
    key[padding], value[padding] = poison, poison
    got = _run(xp, query, key, value, params, score=score, key_lengths=lengths)
    np.testing.assert_array_equal(got[0], clean[0])
    np.testing.assert_array_equal(got[1], clean[1])


@pytest.mark.parametrize("score", SCORES)
def test_a_sentence_alone_equals_the_same_sentence_in_a_padded_batch(xp, rng, score):
    query, key, value, params = case(score, rng)
    context, weights = _run(
        xp, query, key, value, params, score=score, key_lengths=np.array([5, T_ENC])
    )
    alone = _run(xp, query[:1], key[:1, :5], value[:1, :5], params, score=score)
    np.testing.assert_allclose(context[:1], alone[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(weights[:1, :, :5], alone[1], rtol=0, atol=1e-12)


def test_an_example_with_no_keys_has_zero_weights_and_context(xp, rng):
    query, key, value, params = case("additive", rng)
    context, weights = _run(
        xp, query, key, value, params, score="additive", key_lengths=np.array([0, 5])
    )
    assert not context[0].any()
    assert not weights[0].any()
    assert context[1].any()


@pytest.mark.parametrize("score", SCORES)
def test_reordering_keys_and_values_reorders_weights_and_leaves_the_context(xp, rng, score):
    query, key, value, params = case(score, rng)
    order = rng.permutation(T_ENC)
    before = _run(xp, query, key, value, params, score=score)
    after = _run(xp, query, key[:, order], value[:, order], params, score=score)
    np.testing.assert_allclose(after[0], before[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(after[1], before[1][..., order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_the_context_is_bit_identical_without_the_weights(xp, rng, score):
    query, key, value, params = case(score, rng)
    arrays = [xp.array(a) for a in (query, key, value)]
    params = {name: xp.array(p) for name, p in params.items()}
    looked = rg.attend(*arrays, score=score, **params)
    blind = rg.attend(*arrays, score=score, need_weights=False, **params)
    assert blind.weights is None
    np.testing.assert_array_equal(xp.numpy(looked.context), xp.numpy(blind.context))


def test_inputs_are_never_written_to(rng):
    query, key, value, params = case("additive", rng)
    mask = some_mask(rng, BATCH, T_DEC, T_ENC)
    kept = [a.copy() for a in (query, key, value, mask)]
    rg.attend(query, key, value, score="additive", mask=mask, **params)
    for before, after in zip(kept, (query, key, value, mask), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_value_defaults_to_the_key(rng):
    query, key, _, _ = case("dot", rng)
    given = rg.attend(query, key, key)
    np.testing.assert_array_equal(rg.attend(query, key).context, given.context)


def test_any_function_of_query_and_key_can_be_the_score(xp, rng):
    query, key, value, _ = case("general", rng)

    def nothing_matters(q, k):
        return xp.module.zeros((*q.shape[:-1], k.shape[-2]), dtype=q.dtype)

    context, weights = _run(xp, query, key, value, {}, score=nothing_matters)
    np.testing.assert_allclose(weights, 1 / T_ENC)
    np.testing.assert_allclose(context[:, 0], value.mean(axis=1))


def test_self_attention_is_attend_on_three_projections(xp, rng):
    x = rng.normal(size=(2, 7, 5))
    W_q, W_k, W_v = (rng.normal(size=(n, 5)) for n in (3, 3, 11))
    got = rg.self_attention(
        xp.array(x), W_q=xp.array(W_q), W_k=xp.array(W_k), W_v=xp.array(W_v), causal=True
    )
    assert xp.numpy(got.weights).shape == (2, 7, 7)
    for b in range(2):
        projected = [
            [[float(np.dot(row, w)) for w in W] for row in x[b]] for W in (W_q, W_k, W_v)
        ]
        context, weights = reference.attend(
            *projected, score="scaled_dot", mask=reference.causal(7, 7)
        )
        np.testing.assert_allclose(xp.numpy(got.context)[b], context, rtol=0, atol=1e-12)
        np.testing.assert_allclose(xp.numpy(got.weights)[b], weights, rtol=0, atol=1e-12)


def test_padding_in_self_attention_reaches_neither_result_nor_gradient(rng):
    torch = pytest.importorskip("torch")
    x, lengths = rng.normal(size=(2, 7, 5)), torch.tensor([4, 7])
    projections = {name: rng.normal(size=(3, 5)) for name in ("W_q", "W_k", "W_v")}

    def run(padding):
        given = x.copy()
        given[0, 4:] = padding
        leaves = {
            n: torch.from_numpy(W.copy()).requires_grad_() for n, W in projections.items()
        }
        context, weights = rg.self_attention(
            torch.from_numpy(given), key_lengths=lengths, **leaves
        )
        context[0, :4].square().sum().backward()
        return [context[0, :4], weights[0, :4], *(leaf.grad for leaf in leaves.values())]

    for clean, poisoned in zip(run(0.5), run(np.nan), strict=True):
        np.testing.assert_array_equal(poisoned.detach().numpy(), clean.detach().numpy())
        assert clean.any()


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("score", SCORES)
def test_gradients_agree_with_finite_differences(rng, score, masked):
    torch = pytest.importorskip("torch")
    query, key, value, params = case(score, rng)
    mask = torch.from_numpy(some_mask(rng, BATCH, T_DEC, T_ENC)) if masked else None
    names = list(params)
    inputs = [
        torch.from_numpy(a).requires_grad_() for a in (query, key, value, *params.values())
    ]

    def both(q, k, v, *own):
        result = rg.attend(
            q, k, v, score=score, mask=mask, **dict(zip(names, own, strict=True))
        )
        return result.context, result.weights

    assert torch.autograd.gradcheck(both, inputs)


@pytest.mark.parametrize("score", SCORES)
def test_poison_in_padding_and_empty_rows_reach_no_gradient(rng, score):
    torch = pytest.importorskip("torch")
    query, key, value, params = case(score, rng)
    mask = some_mask(rng, BATCH, T_DEC, T_ENC)
    mask[:, :, 7:] = False

    def gradients(poison):
        q, k, v = query.copy(), key.copy(), value.copy()
        k[:, 7:], v[:, 7:], q[:, 0] = poison, poison, poison
        inputs = {"q": q, "k": k, "v": v, **params}
        leaves = {n: torch.from_numpy(a.copy()).requires_grad_() for n, a in inputs.items()}
        own = {n: leaves[n] for n in params}
        result = rg.attend(
            leaves["q"],
            leaves["k"],
            leaves["v"],
            score=score,
            mask=torch.from_numpy(mask),
            **own,
        )
        (result.context**2).sum().backward()
        return {n: leaf.grad.numpy() for n, leaf in leaves.items()}

    clean, poisoned = gradients(0.5), gradients(np.nan)
    for name in clean:
        np.testing.assert_array_equal(poisoned[name], clean[name], err_msg=name)
    assert not clean["q"][:, 0].any()
    assert not clean["k"][:, 7:].any()
    assert clean["k"][:, :7].any()


def test_attend_runs_under_jit_and_keeps_its_result(rng):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    query, key, value, params = case("additive", rng)
    lengths = np.array([5, 2])

    @jax.jit
    def jitted(q, k, v, n, own):
        return rg.attend(q, k, v, score="additive", key_lengths=n, **own).context

    expected = rg.attend(query, key, value, score="additive", key_lengths=lengths, **params)
    got = jitted(query, key, value, lengths, params)
    np.testing.assert_allclose(got, expected.context, rtol=0, atol=1e-12)
