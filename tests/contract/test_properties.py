"""Where a property is the statement: any lengths, orders, poisoned places, sizes of scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard as rg
from contract_subjects import SCORES
from regard.testing import Subject
from regard.testing.inputs import inputs_for, padding_for, sizes_for
from regard.testing.run import run

SUBJECTS = {score: Subject.of(rg.attend, score=score) for score in SCORES}
few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**31)


def _draw(score, seed):
    subject = SUBJECTS[score]
    return subject, inputs_for(subject, np.random.default_rng(seed))


@pytest.mark.parametrize("score", SCORES)
@few
@given(seed=seeds, density=st.floats(0, 1), size=st.floats(-3, 3))
def test_a_row_is_a_distribution_over_what_it_may_attend(score, seed, density, size):
    subject, inputs = _draw(score, seed)
    sizes = sizes_for(subject)
    shape = (sizes.batch, sizes.T_dec, sizes.T_enc)
    mask = np.random.default_rng(seed).random(shape) < density
    weights = run(subject, inputs.scaled(10**size).with_mask(mask)).weights[:, 0]
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    np.testing.assert_allclose(weights.sum(-1), mask.any(-1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
@few
@given(seed=seeds, order=st.permutations(range(13)))
def test_any_order_of_keys_gives_the_same_context(score, seed, order):
    subject, inputs = _draw(score, seed)
    order = (
        np.array(order)[: inputs.T_enc]
        if inputs.T_enc == 13
        else np.argsort(order[: inputs.T_enc])
    )
    before, after = run(subject, inputs), run(subject, inputs.reordered(order, queries=False))
    np.testing.assert_allclose(after.context, before.context, rtol=0, atol=1e-12)
    np.testing.assert_allclose(after.weights, before.weights[..., order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
@few
@given(
    seed=seeds,
    places=st.lists(st.integers(0, 10), min_size=1, max_size=11, unique=True),
    poison=st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e30, -1e30]),
)
def test_poison_anywhere_no_query_may_look_changes_no_bit(score, seed, places, poison):
    subject, inputs = _draw(score, seed)
    forbidden = np.zeros(inputs.key.shape[:2], dtype=bool)
    forbidden[0, [place % inputs.T_enc for place in places]] = True
    inputs = inputs.with_mask(np.repeat(~forbidden[:, None], inputs.T_dec, axis=1))
    clean, got = (
        run(subject, inputs),
        run(subject, inputs.filled(forbidden, poison, queries=False)),
    )
    np.testing.assert_array_equal(got.context, clean.context)
    np.testing.assert_array_equal(got.weights, clean.weights)


@pytest.mark.parametrize("score", SCORES)
@few
@given(seed=seeds, length=st.integers(1, 7))
def test_any_length_alone_equals_itself_padded(score, seed, length):
    subject, inputs = _draw(score, seed)
    lengths = np.full(len(inputs.query), inputs.T_enc)
    lengths[1] = length
    padded = run(subject, inputs.with_mask(padding_for(lengths, inputs)))
    alone = run(subject, inputs.example(1, length, whole=True))
    np.testing.assert_allclose(padded.context[1], alone.context[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        padded.weights[1, :, :, :length], alone.weights[0], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("score", SCORES)
@few
@given(seed=seeds, order=st.permutations(range(2)))
def test_examples_of_a_batch_do_not_see_each_other(score, seed, order):
    subject, inputs = _draw(score, seed)
    turned = type(inputs)(inputs.query[order], inputs.key[order], inputs.value[order])
    before, after = run(subject, inputs), run(subject, turned)
    np.testing.assert_allclose(after.context, before.context[order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(after.weights, before.weights[order], rtol=0, atol=1e-12)
