"""What the context does not notice: dimensions, vertices, and that nothing changes."""

import numpy as np
import pytest

from regard.audit.distances import jensen_shannon
from regard.audit.null_space import farthest_unnoticed, free_directions


def test_as_many_directions_as_tokens_beyond_the_rank_with_one():
    random = np.random.default_rng(0)
    assert len(free_directions(random.normal(size=(11, 5)))) == 11 - 5 - 1
    assert len(free_directions(random.normal(size=(5, 7)))) == 0
    # Two equal tokens can trade weight, however many features they have.
    values = random.normal(size=(5, 17))
    values[3] = values[1]
    assert len(free_directions(values)) == 1


def test_moving_along_a_direction_changes_neither_context_nor_sum():
    random = np.random.default_rng(1)
    values, weights = random.normal(size=(11, 3)), random.dirichlet(np.ones(11))
    for direction in free_directions(values):
        np.testing.assert_allclose(values.T @ (weights + direction), values.T @ weights)
        assert direction.sum() == pytest.approx(0)


def test_no_unnoticed_weights_lie_farther_than_the_vertices():
    random = np.random.default_rng(2)
    for _ in range(7):
        values, weights = random.normal(size=(7, 2)), random.dirichlet(np.ones(7))
        found, exact = farthest_unnoticed(weights, values, random)
        assert exact
        directions = free_directions(values)
        steps = random.normal(size=(5000, len(directions))) @ directions
        others = weights + steps * random.uniform(0, 0.5, (5000, 1))
        inside = others[(others >= 0).all(1)]
        assert len(inside) > 50
        assert jensen_shannon(weights, inside).max() <= found + 1e-9


def test_two_equal_tokens_can_trade_all_their_weight():
    values = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    weights = np.array([0.5, 0.0, 0.5])
    found, exact = farthest_unnoticed(weights, values, np.random.default_rng(0))
    assert exact
    assert found == pytest.approx(jensen_shannon(weights, np.array([0.0, 0.5, 0.5])))


def test_where_vertices_are_too_many_the_bound_is_below_the_maximum():
    random = np.random.default_rng(3)
    values, weights = random.normal(size=(23, 11)), random.dirichlet(np.ones(23))
    found, exact = farthest_unnoticed(weights, values, random)
    assert not exact
    assert 0 < found <= np.log(2)
