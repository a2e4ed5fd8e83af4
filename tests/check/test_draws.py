"""What is drawn is its mean while draws are held, and drawn again afterwards."""

# ruff: noqa: NPY002 - code under check may draw from the global generator
import random
import types

import numpy as np
import pytest

from regard.check.draws import held


def test_numpy_gives_means_of_the_shape_asked_for_and_draws_again_afterwards() -> None:
    with held():
        assert np.array_equal(np.random.rand(3, 5), np.full((3, 5), 0.5))
        assert np.array_equal(np.random.uniform(1.0, 4.0, size=3), np.full(3, 2.5))
        assert np.array_equal(np.random.normal([1.0, 2.0], 3.0), [1.0, 2.0])
        assert np.random.default_rng(7).exponential(3.0) == 3.0
        assert np.array_equal(np.random.permutation(5), np.arange(5))
    assert np.random.rand(64).std() > 0.1


def test_pythons_own_generator_is_held_under_its_own_names() -> None:
    with held():
        assert random.random() == random.uniform(0.0, 1.0) == 0.5
        assert random.choice("abc") == "a"
        assert sorted(random.sample(range(5), 2)) != [0.5, 0.5]
    assert len({random.random() for _ in range(7)}) == 7


def test_a_generator_that_a_module_or_object_keeps_is_held_and_given_back() -> None:
    module = types.ModuleType("mine")
    module.rng = np.random.default_rng(3)  # type: ignore[attr-defined]
    before = module.rng
    with held(module):
        assert np.array_equal(module.rng.gumbel(size=5), np.full(5, module.rng.gumbel()))
    assert module.rng is before


def test_pytorch_is_held_below_what_calls_it() -> None:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    scores = torch.arange(12.0).reshape(3, 4)
    with held():
        weights = functional.gumbel_softmax(scores, dim=-1)
        kept = functional.dropout(scores, 0.3, training=True)
        noise = torch.randn(5) + torch.empty(5).normal_(2.0, 3.0)
        index = torch.multinomial(torch.tensor([0.1, 0.7, 0.2]), 2)
        coin = torch.empty(4, dtype=torch.bool).bernoulli_(0.7)
    assert torch.allclose(weights, scores.softmax(-1))
    assert torch.allclose(kept, scores)
    assert torch.equal(noise, torch.full((5,), 2.0))
    assert index.tolist() == [1, 2]
    assert coin.all()
    assert torch.randn(64).std() > 0.1


def test_what_is_drawn_and_held_still_has_gradients() -> None:
    torch = pytest.importorskip("torch")
    scores = torch.zeros(3, 5, requires_grad=True)
    with held():
        weights = torch.nn.functional.gumbel_softmax(scores, dim=-1)
    weights[:, 0].sum().backward()
    assert scores.grad is not None
    # d softmax_0 / d score_0 = w (1 - w) at w = 1/5
    assert torch.allclose(scores.grad[:, 0], torch.full((3,), 0.16))
