"""The exact adversary against brute force, and against the published search."""

import itertools

import numpy as np
import pytest

from regard.audit.adversary_exact import band, farthest
from regard.audit.adversary_search import search
from regard.audit.distances import LN2, jensen_shannon


def _problem(seed, length):
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(length, 0.7))
    scores = random.normal(0.0, 2.0, length)
    bias = float(random.normal())
    p = 1 / (1 + np.exp(-(scores @ weights + bias)))
    return weights, scores, bias, p


def _grid(length, parts):
    """All distributions over `length` tokens in multiples of 1/parts."""
    for cuts in itertools.combinations(range(parts + length - 1), length - 1):
        edges = (-1, *cuts, parts + length - 1)
        yield np.diff(edges) - 1


def _vertices(scores, low, high):
    """All vertices of the simplex between two planes, from any choice of tight constraints."""
    n = len(scores)
    planes = [(scores, plane) for plane in (low, high) if np.isfinite(plane)]
    tight = [*((row, 0.0) for row in np.eye(n)), *planes]
    for chosen in itertools.combinations(tight, n - 1):
        rows = np.array([np.ones(n), *(row for row, _ in chosen)])
        if abs(np.linalg.det(rows)) < 1e-12:
            continue
        found = np.linalg.solve(rows, np.array([1.0, *(value for _, value in chosen)]))
        inside = found.min() >= -1e-9 and low - 1e-9 <= scores @ found <= high + 1e-9
        if inside:
            yield np.clip(found, 0.0, None)


def test_it_is_the_farthest_of_all_vertices_and_never_below_the_search_on_300_problems():
    problems = [_problem(seed, 3 + seed % 3) for seed in range(300)]
    exact = np.array([farthest(w, s, *band(p, b))[1] for w, s, b, p in problems])
    brute = [
        max(jensen_shannon(w, vertex) for vertex in _vertices(s, *band(p, b)))
        for w, s, b, p in problems
    ]
    np.testing.assert_allclose(exact, brute, atol=1e-6)
    generators = [np.random.default_rng(seed) for seed in range(300)]
    found = search([(w, s, b) for w, s, b, _ in problems], generators, epsilon=0.01)
    assert (exact >= found - 1e-9).all()
    assert (found > 0.1).mean() > 0.5  # the search does find something


@pytest.mark.parametrize("block", range(6))
def test_no_admissible_weights_of_a_fine_grid_lie_farther_on_300_problems(block):
    # 50 problems a block; four tokens, every distribution in steps of 1/23.
    grid = np.array(list(_grid(4, 23))) / 23
    met = 0
    for seed in range(50 * block, 50 * block + 50):
        weights, scores, bias, p = _problem(seed, 4)
        low, high = band(p, bias)
        other, divergence = farthest(weights, scores, low, high)
        assert divergence == pytest.approx(jensen_shannon(weights, other), abs=1e-9)
        moved = abs(1 / (1 + np.exp(-(scores @ other + bias))) - p)
        assert moved <= 0.01 + 1e-9
        assert other.sum() == pytest.approx(1)
        inside = (grid @ scores >= low) & (grid @ scores <= high)
        met += bool(inside.any())
        if inside.any():
            assert jensen_shannon(weights, grid[inside]).max() <= divergence + 1e-9
    assert met > 25  # of the 50: the grid does reach between the planes


def test_no_random_admissible_mixture_of_vertices_lies_farther():
    random = np.random.default_rng(5)
    for seed in range(20):
        weights, scores, bias, p = _problem(1000 + seed, 7)
        low, high = band(p, bias)
        _, divergence = farthest(weights, scores, low, high)
        drawn = random.dirichlet(np.full(7, 0.3), size=20_000)
        inside = (drawn @ scores >= low) & (drawn @ scores <= high)
        assert inside.sum() > 10
        assert jensen_shannon(weights, drawn[inside]).max() <= divergence + 1e-12


def test_weights_on_one_of_two_equal_tokens_can_move_all_the_way_to_the_other():
    other, divergence = farthest(np.array([1.0, 0.0]), np.array([2.0, 2.0]), 1.9, 2.1)
    assert divergence == pytest.approx(LN2)
    assert other.tolist() == [0.0, 1.0]


def test_without_room_the_weights_stay_where_they_are():
    weights = np.array([1.0, 0.0])
    other, divergence = farthest(weights, np.array([3.0, -3.0]), 3.0, 3.0)
    assert divergence == 0.0
    assert other.tolist() == weights.tolist()


def test_the_band_opens_where_the_probability_may_reach_its_end():
    low, high = band(0.995, 0.5, 0.01)
    assert high == np.inf
    assert low == pytest.approx(np.log(0.985 / 0.015) - 0.5)
