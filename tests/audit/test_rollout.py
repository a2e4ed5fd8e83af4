"""Rollout by its definition, flow against cuts, both against worked examples."""

import itertools

import numpy as np
import pytest

from regard.audit.flow import max_flow
from regard.audit.rollout import flow, rollout, with_residual


def _layers(depth, heads, T, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(T, 0.8), size=(depth, heads, T))


def _least_cut(layers, start, end):
    """The smallest capacity of all cuts, by trying every set of nodes on the start's side."""
    depth, T, _ = layers.shape
    nodes = [(level, place) for level in range(depth + 1) for place in range(T)]
    free = [node for node in nodes if node not in ((0, start), (depth, end))]
    least = np.inf
    for size in range(len(free) + 1):
        for chosen in itertools.combinations(free, size):
            side = {(0, start), *chosen}
            cut = sum(
                layers[depth - 1 - level][o, i]
                for level, o in side
                if level < depth
                for i in range(T)
                if (level + 1, i) not in side
            )
            least = min(least, cut)
    return least


def test_rollout_is_the_product_with_half_of_each_layer_the_residual():
    layers = _layers(3, 2, 5)
    halves = [0.5 * layer.mean(0) + 0.5 * np.eye(5) for layer in layers]
    np.testing.assert_allclose(rollout(layers), halves[2] @ halves[1] @ halves[0])
    np.testing.assert_allclose(rollout(layers).sum(-1), 1)


def test_flow_through_one_layer_is_its_row():
    layers = _layers(1, 3, 5)
    np.testing.assert_allclose(flow(layers, 2), with_residual(layers)[0][2])


def test_flow_through_two_layers_is_the_sum_of_the_narrower_edges():
    joined = with_residual(_layers(2, 1, 5))
    for start, end in ((0, 0), (3, 1), (4, 2)):
        expected = np.minimum(joined[1][start], joined[0][:, end]).sum()
        assert max_flow(joined, start, end) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_flow_through_three_layers_is_the_least_cut(seed):
    joined = with_residual(_layers(3, 1, 3, seed))
    for start, end in ((0, 2), (1, 1)):
        assert max_flow(joined, start, end) == pytest.approx(_least_cut(joined, start, end))


def test_a_causal_model_of_equal_attention_prefers_no_token():
    equal = np.tril(np.ones((7, 7)))
    layers = np.repeat((equal / equal.sum(-1, keepdims=True))[None, None], 3, 0)
    plain, corrected = rollout(layers)[-1], rollout(layers, receptive=True)[-1]
    assert plain[0] > 3 * plain[5]
    np.testing.assert_allclose(corrected, 1 / 7)
