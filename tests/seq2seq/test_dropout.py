import pytest
import torch

from regard.seq2seq.dropout import Dropout


@pytest.fixture(autouse=True)
def _own_numbers():
    with torch.random.fork_rng():
        yield


@pytest.mark.parametrize("p", [0.1, 0.3, 0.87, 1e-6])
def test_as_many_are_dropped_as_was_said_and_the_rest_is_scaled(p):
    torch.manual_seed(3)
    values = torch.full((101, 997), 3.0)
    left = Dropout(p)(values)
    dropped = (left == 0).double().mean().item()
    # Five standard deviations, and the steps in which a probability comes.
    error = 5 * (p * (1 - p) / values.numel()) ** 0.5 + 0.5 / 65536
    assert dropped == pytest.approx(p, abs=error)
    assert left[left != 0].unique().tolist() == [pytest.approx(3 / (1 - p), rel=1e-4)]


def test_neighbours_are_dropped_independently():
    torch.manual_seed(5)
    kept = Dropout(0.5)(torch.ones(40_009)) > 0
    for lag in range(1, 9):  # four elements share a number
        together = (kept[:-lag] & kept[lag:]).double().mean().item()
        assert together == pytest.approx(0.25, abs=5 * (0.1875 / 40_000) ** 0.5)
    for place in range(4):
        share = kept[place::4].double().mean().item()
        assert share == pytest.approx(0.5, abs=5 * (0.25 / 10_000) ** 0.5)


def test_a_seed_drops_the_same_again_and_gradients_pass_where_values_do():
    values = torch.randn(7, 11, 13, requires_grad=True)
    dropout = Dropout(0.3)
    found = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        found.append(dropout(values))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    (gradient,) = torch.autograd.grad(found[0].sum(), values)
    torch.testing.assert_close(gradient * values, found[0])


@pytest.mark.parametrize("shape", [(), (1,), (3, 0, 5), (2, 3)])
def test_every_shape_has_its_own(shape):
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


def test_nothing_is_dropped_or_drawn_outside_training():
    values = torch.randn(5, 7)
    before = torch.get_rng_state()
    assert Dropout(0.9).eval()(values) is values
    assert Dropout(0.0)(values) is values
    assert torch.equal(torch.get_rng_state(), before)
