"""The algebra by itself: what a group of features makes of queries, keys and weights."""

import math

import numpy as np
import pytest

from regard.kernels.grouped import (
    coefficients,
    exponentials,
    products,
    ranges_of,
    survey,
    unit_of,
)


@pytest.mark.parametrize("group", [1, 2, 3, 4])
def test_a_groups_quotient_is_the_sum_of_its_weighted_tangents(rng, group):
    E, F, v = (
        rng.uniform(0.1, 7, (group, 1)),
        rng.uniform(0.1, 7, (group, 1)),
        rng.normal(size=(group, 1)),
    )
    shared = products(E) * products(F)  # one query, one key
    found = (coefficients(v) * shared).sum() / shared.sum()
    expected = sum(v[i, 0] * math.tanh(0.5 * math.log(E[i, 0] * F[i, 0])) for i in range(group))
    assert found == pytest.approx(expected, rel=0, abs=1e-14)


def test_products_are_those_of_the_bits_of_their_index(xp):
    factors = [2.0, 3.0, 5.0]
    found = xp.numpy(products(xp.array(np.array(factors)[:, None])))[:, 0]
    expected = [
        math.prod(each for i, each in enumerate(factors) if n >> i & 1) for n in range(8)
    ]
    assert found.tolist() == expected


def test_exponentials_of_keys_follow_those_of_queries_and_stop_at_the_limit():
    query = np.arange(2 * 3 * 5, dtype=np.float64).reshape(2, 3, 5) / 7
    key = np.full((2, 7, 5), -0.75)
    shift, limit = np.full((2, 1, 5), -1.0), np.full((2, 1, 5), 2.5)
    found = exponentials(query, key, shift, limit)
    assert found.shape == (2, 3 + 7, 5)
    assert found[1, 2, 3] == pytest.approx(math.exp(2 * 2.5))  # 28/7 - 1 = 3 is beyond
    assert found[0, 1, 4] == pytest.approx(math.exp(2 * (9 / 7 - 1)))
    assert found[1, 3:, :] == pytest.approx(math.exp(2 * 0.25))  # away from the shift


def test_ranges_follow_the_narrower_side_and_clamp_the_wider():
    query = np.array([[[-60.0], [-57.0]]])
    key = np.array([[[50.0], [59.0], [300.0]]])
    ranges = ranges_of(query, key)
    assert ranges.shift.item() == 58.5  # the middle of the queries, turned
    assert ranges.limit.item() == 1.5 + 12
    # 300 - 58.5 is clamped to 13.5, and -57 + 58.5 = 1.5.
    assert ranges.above.item() == 2 * (13.5 + 1.5)
    assert ranges.below.item() == 2 * (8.5 + 1.5)


def _spread(width, rows=5, d_attn=8):
    x = np.zeros((1, rows, d_attn), np.float32)
    x[:, 0], x[:, 1] = width, -width
    return x


@pytest.mark.parametrize(
    ("width", "groups", "squares"),
    [
        (0.1, 0, False),  # |q + k| stays below 0.5: the tangent itself
        (0.3, 4, False),
        (5.2, 4, True),  # 4 features x 2 x 10.4 = 83.2
        (5.4, 2, True),  # 4 features would make 86.4
        (10.5, 2, True),  # 2 features, or one squared, x 2 x 21 = 84
        (10.8, 0, False),
    ],
)
def test_the_group_is_as_large_as_the_exponents_allow(width, groups, squares):
    found = survey(_spread(width), _spread(width))
    assert (found.groups, found.squares) == ([groups], [squares])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_example_with_nan_or_infinity_takes_tangents_and_leaves_the_others_alone(bad):
    query, key = np.repeat(_spread(2), 3, 0), np.repeat(_spread(2), 3, 0)
    key[1, 2, 3] = bad
    with np.errstate(invalid="ignore"):
        assert survey(query, key).groups == [4, 0, 4]


@pytest.mark.parametrize(
    ("v", "expected"),
    [
        ([3.0] * 37, 3.0),
        ([3.0] * 31, None),
        ([3.0] * 36 + [np.nan], None),
        ([3.0] * 36 + [np.inf], None),
        ([0.0] * 37, None),
        ([1e37] * 37, 1e37),
        ([], None),
    ],
)
def test_too_few_weights_to_average_over_have_no_unit(v, expected):
    with np.errstate(invalid="ignore"):
        found = unit_of(np.array(v, np.float32))
    assert found == (None if expected is None else np.float32(expected))
