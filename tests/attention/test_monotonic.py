import itertools

import numpy as np
import pytest
from attention_cases import BATCH, D_ATTN, D_H, D_S, T_DEC, T_ENC, some_mask

import regard as rg
from regard.attention import reference_variants as reference
from regard.attention.monotonic import (
    expected_alignment,
    expected_alignments,
    hard_alignment,
    monotonic_energy,
)

EXACT = pytest.mark.parametrize("method", ["scan", "recursive"])
ALL = pytest.mark.parametrize("method", ["scan", "recursive", "cumulative"])


def _first(*shape):
    first = np.zeros(shape)
    first[..., 0] = 1
    return first


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@ALL
def test_it_agrees_with_the_plain_list_reference(xp, rng, method, masked):
    p = rng.random((BATCH, T_DEC, T_ENC)) ** 3
    mask = some_mask(rng, BATCH, T_DEC, T_ENC) if masked else np.ones(p.shape, dtype=bool)
    got = expected_alignments(
        xp.array(p), mask=xp.array(mask) if masked else None, method=method
    )
    for n in range(BATCH):
        row = _first(T_ENC).tolist()
        for t in range(T_DEC):
            row = reference.expected_alignment((p * mask)[n, t].tolist(), row)
            np.testing.assert_allclose(xp.numpy(got)[n, t], row, rtol=0, atol=1e-13)


@ALL
@pytest.mark.parametrize("T_enc", [1, 2, 3, 17])
def test_every_length_agrees_with_the_reference(xp, rng, method, T_enc):
    p, previous = rng.random(T_enc) ** 2, rng.dirichlet(np.ones(T_enc))
    got = xp.numpy(expected_alignment(xp.array(p), xp.array(previous), method=method))
    expected = reference.expected_alignment(p.tolist(), previous.tolist())
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)


def test_the_expectation_is_the_mean_over_all_hard_alignments(rng):
    # Every outcome of every choice, weighted by its probability: section 2.2 by brute force.
    T_dec, T_enc = 2, 3
    p, mean = rng.random((T_dec, T_enc)), np.zeros((T_dec, T_enc))
    for choices in itertools.product([0, 1], repeat=T_dec * T_enc):
        z = np.reshape(choices, (T_dec, T_enc))
        probability = np.prod(np.where(z, p, 1 - p))
        start = 0
        for t in range(T_dec):
            start = reference.hard_alignment((z[t] - 0.5).tolist(), start)
            if start is None:
                break
            mean[t, start] += probability
    np.testing.assert_allclose(expected_alignments(p), mean, rtol=0, atol=1e-15)


@EXACT
def test_certain_choices_are_the_hard_alignment(xp, rng, method):
    energies = rng.normal(size=(BATCH, T_DEC, T_ENC))
    got = expected_alignments(xp.array((energies > 0).astype(float)), method=method)
    previous = xp.array(_first(BATCH, T_ENC))
    for t in range(T_DEC):
        previous = hard_alignment(xp.array(energies[:, t]), previous)
        np.testing.assert_array_equal(xp.numpy(got)[:, t], xp.numpy(previous))


def test_hard_alignment_takes_the_first_chosen_key_from_where_it_stopped(xp, rng):
    energies = rng.normal(size=(BATCH, 5, T_ENC)) - 0.5
    mask = some_mask(rng, BATCH, 5, T_ENC)
    mask[:, 0] = True
    starts, previous = [0] * BATCH, xp.array(_first(BATCH, T_ENC))
    for t in range(5):
        previous = hard_alignment(xp.array(energies[:, t]), previous, mask=xp.array(mask[:, t]))
        for n in range(BATCH):
            seen = np.where(mask[n, t], energies[n, t], -1).tolist()
            starts[n] = reference.hard_alignment(seen, starts[n])
            expected = np.arange(T_ENC) == (-1 if starts[n] is None else starts[n])
            np.testing.assert_array_equal(xp.numpy(previous)[n], expected.astype(float))


def test_a_walk_past_the_end_attends_nowhere_and_stays_there(xp):
    first = xp.array(_first(7))
    past = hard_alignment(xp.array(np.full(7, -1.0)), first)
    assert not xp.numpy(past).any()
    assert not xp.numpy(hard_alignment(xp.array(np.full(7, 1.0)), past)).any()


def test_row_sums_are_at_most_one_and_never_grow(rng):
    rows = expected_alignments(rng.random((101, 5, 7)) ** 3).sum(-1)
    assert (rows <= 1 + 1e-12).all()
    assert (np.diff(rows, axis=-1) <= 1e-12).all()
    assert rows.min() < 0.9


@EXACT
def test_long_sources_and_certain_choices_lose_nothing(xp, method):
    # After 500 keys that are all but certainly passed over or chosen, where cumulative products
    # underflow: weight that starts behind them must survive.
    p = np.full(503, 1.0 - 1e-9)
    previous = np.zeros(503)
    previous[500] = 1
    got = xp.numpy(expected_alignment(xp.array(p), xp.array(previous), method=method))
    np.testing.assert_allclose(got[500:], [1 - 1e-9, 1e-9, 1e-18], rtol=1e-6)
    assert not got[:500].any()


def test_the_cumulative_form_loses_that_weight_as_it_says(xp):
    p, previous = np.full(503, 1.0 - 1e-9), np.zeros(503)
    previous[500] = 1
    got = xp.numpy(expected_alignment(xp.array(p), xp.array(previous), method="cumulative"))
    assert np.isfinite(got).all()
    assert got.sum() < 1e-6


@ALL
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_choices_of_certainty_have_finite_values_and_gradients(method, value):
    torch = pytest.importorskip("torch")
    p = torch.full((5, 7), value, dtype=torch.float64, requires_grad=True)
    weights = expected_alignments(p, method=method)
    weights.square().sum().backward()
    assert weights.isfinite().all()
    assert p.grad.isfinite().all()


@ALL
def test_gradients_agree_with_finite_differences(rng, method):
    torch = pytest.importorskip("torch")
    p = torch.from_numpy(rng.uniform(0.1, 0.9, (2, 3, 5))).requires_grad_()
    previous = torch.from_numpy(rng.dirichlet(np.ones(5), size=3)).requires_grad_()
    mask = torch.from_numpy(some_mask(rng, 3, 5))
    assert torch.autograd.gradcheck(lambda p: expected_alignments(p, method=method), p)
    assert torch.autograd.gradcheck(
        lambda p, a: expected_alignment(p[0], a, mask=mask, method=method), (p, previous)
    )


@ALL
@pytest.mark.parametrize("poison", [np.nan, 1e30])
def test_a_forbidden_key_is_passed_whatever_it_holds(rng, method, poison):
    torch = pytest.importorskip("torch")
    mask = some_mask(rng, 3, 7)
    values, previous, found = rng.random((3, 7)), torch.from_numpy(_first(3, 7)), []
    for fill in (0.5, poison):
        p = torch.from_numpy(np.where(mask, values, fill)).requires_grad_()
        weights = expected_alignment(p, previous, mask=torch.from_numpy(mask), method=method)
        weights.square().sum().backward()
        found.append((weights.detach(), p.grad))
        hard = hard_alignment(p.detach(), previous, mask=torch.from_numpy(mask))
        assert not hard[torch.from_numpy(~mask)].any()
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert not found[1][0][0].any()
    assert not found[1][1][torch.from_numpy(~mask)].any()
    assert found[1][1].any()


def test_the_energy_agrees_with_the_plain_list_reference(xp, rng):
    query, key = rng.normal(size=(BATCH, T_DEC, D_S)), rng.normal(size=(BATCH, T_ENC, D_H))
    shapes = {"W": (D_ATTN, D_S), "V": (D_ATTN, D_H), "b": (D_ATTN,), "v": (D_ATTN,)}
    params = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    params |= {"g": np.array(1.7), "r": np.array(-2.3)}
    got = monotonic_energy(
        xp.array(query), xp.array(key), **{name: xp.array(p) for name, p in params.items()}
    )
    lists = {name: p.tolist() for name, p in params.items()}
    for n, t in np.ndindex(BATCH, T_DEC):
        expected = reference.monotonic_energy(query[n, t].tolist(), key[n].tolist(), **lists)
        np.testing.assert_allclose(xp.numpy(got)[n, t], expected, rtol=0, atol=1e-12)


def test_the_length_of_v_does_not_matter_to_the_energy(rng):
    query, key = rng.normal(size=(3, D_S)), rng.normal(size=(13, D_H))
    W, V = rng.normal(size=(D_ATTN, D_S)), rng.normal(size=(D_ATTN, D_H))
    rest = {"W": W, "V": V, "b": np.zeros(D_ATTN), "g": np.array(1.0), "r": np.array(0.0)}
    v = rng.normal(size=D_ATTN)
    one, other = (monotonic_energy(query, key, v=v * f, **rest) for f in (1.0, 31.0))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)


def test_the_gradients_of_the_energy_agree_with_finite_differences(rng):
    torch = pytest.importorskip("torch")
    shapes = {"query": (2, 3), "key": (5, 2), "W": (7, 3), "V": (7, 2), "b": (7,), "v": (7,)}
    given = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    given |= {"g": np.array(1.7), "r": np.array(-2.3)}
    leaves = [torch.from_numpy(each).requires_grad_() for each in given.values()]
    assert torch.autograd.gradcheck(
        lambda *own: monotonic_energy(**dict(zip(given, own, strict=True))), leaves
    )


def test_it_runs_under_jit(rng):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    p = rng.random((3, 7))
    np.testing.assert_allclose(
        jax.jit(expected_alignments)(p), expected_alignments(p), rtol=0, atol=1e-15
    )


def test_no_keys_and_no_steps_give_nothing(xp):
    for shape in ((0, 7), (3, 0)):
        assert xp.numpy(expected_alignments(xp.array(np.zeros(shape)))).shape == shape
    empty = xp.array(np.zeros((3, 0)))
    assert xp.numpy(hard_alignment(empty, empty)).shape == (3, 0)


def test_an_unknown_method_is_refused():
    with pytest.raises(rg.ConventionError) as caught:
        expected_alignment(np.zeros(7), _first(7), method="parallel")
    assert str(caught.value) == (
        "expected_alignment(): `method` has no such value\n"
        '  expected  one of "scan", "recursive", "cumulative"\n'
        "  got       method='parallel'"
    )


def test_two_sources_are_refused():
    with pytest.raises(rg.ShapeError, match=r"hard_alignment\(\): `previous` does not fit"):
        hard_alignment(np.zeros((3, 7)), np.zeros((3, 5)))
