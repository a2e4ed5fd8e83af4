import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from regard.alignment import Alignment
from regard.alignment.extract import agreeing, entropic, itermax, mutual, threshold
from regard.errors import BackendError, InputError, ShapeError

MATRICES = arrays(np.float64, (5, 7), elements=st.floats(0, 1))
RULES = (mutual, agreeing, itermax, entropic)


@given(MATRICES, st.floats(0.01, 1))
def test_threshold_takes_exactly_the_weights_at_or_above_it(weights, least) -> None:
    wanted = {
        (s, t) for t, s in itertools.product(range(5), range(7)) if weights[t, s] >= least
    }
    assert threshold(weights, least) == wanted


@given(MATRICES, MATRICES)
def test_mutual_links_are_the_intersection_of_both_argmax_alignments(forward, backward) -> None:
    def argmax(weights):
        sums = weights.sum(axis=1, keepdims=True)
        rows = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
        ours = Alignment(rows, list("abcdefg")[: len(rows)], list("abcdefg")[: rows.shape[1]])
        return ours.links()

    # Divided by its sum a row may make equal what was not: compare the exact weights instead.
    if any((np.sort(m)[:, -1] - np.sort(m)[:, -2] < 1e-9).any() for m in (forward, backward.T)):
        return
    both = set(argmax(forward)) & {(s, t) for t, s in argmax(backward.T)}
    assert mutual(forward, backward) == both


@given(MATRICES, MATRICES)
def test_agreeing_is_the_geometric_mean(forward, backward) -> None:
    wanted = {
        (s, t)
        for t, s in itertools.product(range(5), range(7))
        if np.sqrt(forward[t, s] * backward[t, s]) >= 0.3
    }
    assert agreeing(forward, backward) == wanted


@given(MATRICES, MATRICES)
def test_more_rounds_only_add_links(forward, backward) -> None:
    found = [itermax(forward, backward, rounds=n) for n in (1, 2, 3)]
    assert found[0] <= found[1] <= found[2]
    mean = (forward + backward) / 2
    assert found[0] == mutual(mean, mean)


def test_the_second_round_links_a_free_word_to_a_linked_one() -> None:
    # Source 0 is best for both targets; target 0 is its mutual partner.
    weights = np.array([[0.9, 0.1], [0.8, 0.0]])
    assert itermax(weights, weights, rounds=1) == {(0, 0)}
    assert itermax(weights, weights, rounds=2) == {(0, 0), (0, 1), (1, 0)}
    assert itermax(weights, weights, rounds=2, discount=0) == {(0, 0)}


def test_the_optimal_plan_spreads_over_words_that_argmax_leaves_out() -> None:
    # All three targets look at source 0 most; one to one, each has a partner of its own.
    weights = np.array([[0.6, 0.4, 0.0], [0.55, 0.0, 0.45], [0.9, 0.05, 0.05]])
    assert mutual(weights, weights) <= {(0, 2), (1, 0), (2, 1)}
    found = entropic(weights, weights, 0.5, temperature=0.05)
    assert found == {(0, 2), (1, 0), (2, 1)}


@pytest.mark.parametrize("seed", range(7))
def test_a_sharp_plan_is_the_best_assignment(seed) -> None:
    weights = np.random.default_rng(seed).random((5, 5))
    best = max(
        itertools.permutations(range(5)), key=lambda s: sum(weights[t, s[t]] for t in range(5))
    )
    found = entropic(weights, weights, 0.5, temperature=5e-3, steps=3000)
    assert found == {(s, t) for t, s in enumerate(best)}


@pytest.mark.parametrize("rule", RULES)
def test_no_weight_no_link(rule) -> None:
    zeros = np.zeros((3, 5))
    assert rule(zeros, zeros) == frozenset()


@pytest.mark.parametrize("rule", RULES)
def test_directions_of_different_shapes_are_refused(rule) -> None:
    with pytest.raises(ShapeError, match="the transpose of `backward` would fit"):
        rule(np.ones((3, 5)) / 5, np.ones((5, 3)) / 3)


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        ([[0.5, -0.5]], InputError),
        ([[0.5, np.nan]], InputError),
        ([0.5, 0.5], ShapeError),
        (np.zeros((0, 3)), ShapeError),
        ([[1], [1, 2]], BackendError),
        ("weights", BackendError),
    ],
)
def test_what_is_no_matrix_of_weights_is_refused(weights, error) -> None:
    with pytest.raises(error, match="threshold\\(\\): `weights`"):
        threshold(weights, 0.5)


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        (agreeing, {"least": 0}),
        (itermax, {"rounds": 0}),
        (itermax, {"discount": 2}),
        (entropic, {"least": 1.5}),
        (entropic, {"temperature": 0}),
        (entropic, {"steps": 0}),
    ],
)
def test_an_option_outside_its_range_is_refused(rule, wrong) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}` is refused"):
        rule(np.eye(3), np.eye(3), **wrong)
