"""The mathematics of the figures against the Python reference, on shared vectors."""

import itertools
import math

import numpy as np
import pytest

from node import NODE, WHY, Modules
from regard.attention import reference
from regard.learn.figures.figure import SCRIPTS

pytestmark = pytest.mark.skipif(NODE is None, reason=WHY)

T_DEC, T_ENC, D_S, D_H, D_ATTN = 3, 5, 7, 11, 13
RNG = np.random.default_rng(17)


def normal(*shape):
    return RNG.normal(0, 1, shape).tolist()


QUERY, KEY, VALUE = normal(T_DEC, D_S), normal(T_ENC, D_H), normal(T_ENC, 2)
SAME = normal(T_ENC, D_S)
PARAMS = {"W_a": normal(D_ATTN, D_S), "U_a": normal(D_ATTN, D_H), "v_a": normal(D_ATTN)}
W = normal(D_S, D_H)


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    return Modules(SCRIPTS, tmp_path_factory.mktemp("modules"))


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_scores_are_those_of_the_reference(modules):
    found = modules.run(
        """
        say(numbers.additive(query, key, params));
        say(numbers.general(query, key, { W }));
        say(numbers.dot(query, same));
        say(numbers.scaledDot(query, same));
        """,
        "numbers",
        query=QUERY,
        key=KEY,
        same=SAME,
        params=PARAMS,
        W=W,
    )
    close(found[0], reference.additive(QUERY, KEY, **PARAMS))
    close(found[1], reference.general(QUERY, KEY, W=W))
    close(found[2], reference.dot(QUERY, SAME))
    close(found[3], reference.scaled_dot(QUERY, SAME))


def test_weights_and_context_are_those_of_the_reference_under_every_mask(modules):
    masks = {
        "none": None,
        "padding": reference.from_lengths(2, T_dec=T_DEC, T_enc=T_ENC),
        "causal": reference.causal(T_DEC, T_ENC),
        "window": reference.window(T_DEC, T_ENC, left=1, right=0),
        "nothing": [[False] * T_ENC, *reference.causal(T_DEC - 1, T_ENC)],
    }
    built = modules.run(
        "say(numbers.fromLengths(2, 3, 5)); say(numbers.causal(3, 5));"
        "say(numbers.band(3, 5, 1, 0));",
        "numbers",
    )
    assert built == [masks["padding"], masks["causal"], masks["window"]]
    for mask in masks.values():
        (found,) = modules.run(
            "say(numbers.attend(query, same, value, numbers.dot, mask));",
            "numbers",
            query=QUERY,
            same=SAME,
            value=VALUE,
            mask=mask,
        )
        context, weights = reference.attend(QUERY, SAME, VALUE, mask=mask)
        close(found["weights"], weights)
        close(found["context"], context)


def test_large_scores_stay_finite(modules):
    found = modules.run(
        "say(numbers.softmax([1e6, 0, -1e6])); say(numbers.softmax([1, 2], [false, false]));",
        "numbers",
    )
    assert found == [[1, 0, 0], [0, 0]]


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_heads_are_those_of_the_reference(modules, heads):
    states = normal(T_ENC, 12)
    (found,) = modules.run(
        "say(numbers.multiHead(states, heads));", "numbers", states=states, heads=heads
    )
    context, weights = reference.multi_head(states, states, heads=heads)
    close(found["weights"], weights)
    close(found["context"], context)


def divergence(p, q):
    """By its definition, term by term."""
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]

    def from_middle(x):
        return sum(a * math.log(a / m) for a, m in zip(x, middle, strict=True) if a)

    return (from_middle(p) + from_middle(q)) / 2


def test_entropy_and_divergence_are_by_their_definitions(modules):
    p, q = RNG.dirichlet([1.0] * 7), np.append(RNG.dirichlet([1.0] * 6), 0.0)
    found = modules.run(
        "say(numbers.entropy(q)); say(numbers.divergence(p, q));say(numbers.divergence(p, p));",
        "numbers",
        p=p.tolist(),
        q=q.tolist(),
    )
    assert found[0] == pytest.approx(-sum(a * math.log(a) for a in q if a), abs=1e-12)
    assert found[1] == pytest.approx(divergence(p, q), abs=1e-12)
    assert found[2] == pytest.approx(0, abs=1e-12)


def test_no_weights_on_a_fine_grid_are_farther_than_the_farthest(modules):
    steps = 40
    grid = [
        [a / steps for a in parts]
        for parts in itertools.product(range(steps + 1), repeat=4)
        if sum(parts) == steps
    ]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        start, offers = rng.dirichlet([1.0] * 4).tolist(), rng.normal(0, 2, 4).tolist()
        bias, least = float(rng.normal()), 0.05
        (found,) = modules.run(
            "say(numbers.farthest(start, offers, bias, least));",
            "numbers",
            start=start,
            offers=offers,
            bias=bias,
            least=least,
        )

        def answer(weights):
            return 1 / (1 + math.exp(-(np.dot(weights, offers) + bias)))  # noqa: B023

        assert sum(found) == pytest.approx(1)
        assert min(found) >= 0
        assert abs(answer(found) - answer(start)) <= least + 1e-9
        allowed = [w for w in grid if abs(answer(w) - answer(start)) <= least]
        assert len(allowed) > 50
        assert divergence(start, found) >= max(divergence(start, w) for w in allowed) - 1e-9


def test_a_token_gets_its_weight_and_the_others_keep_their_proportions(modules):
    found = modules.run(
        "say(permutation.shared([0.5, 0.3, 0.2], 0, 0.75));"
        "say(permutation.shared([1, 0, 0], 0, 0.5));",
        "permutation",
    )
    close(found[0], [0.75, 0.15, 0.1])
    close(found[1], [0.5, 0.25, 0.25])
