import pytest
import torch
from torch import nn

from regard.seq2seq.averaging import BestLooks, RunningAverage, copy_weights, mean_weights
from regard.seq2seq.events import Evaluation


def _look(step: int, *rates: float) -> Evaluation:
    return Evaluation(step, 1.0, rates[0], tuple((f"r{i}", r) for i, r in enumerate(rates)))


def _weights(value: float) -> dict[str, torch.Tensor]:
    return {"a": torch.full((2, 3), float(value)), "count": torch.tensor(int(value))}


def test_the_best_looks_are_kept_best_first():
    looks = BestLooks(3)
    rates = {7: 0.5, 11: 0.3, 13: 0.4, 17: 0.6, 19: 0.2}
    best = [looks.offer(_look(s, r), lambda s=s: _weights(s)) for s, r in rates.items()]
    assert best == [True, True, False, False, True]
    assert looks.steps() == [19, 11, 13]
    assert looks.best()["a"][0, 0] == 19
    assert torch.allclose(looks.mean()["a"], torch.full((2, 3), (19 + 11 + 13) / 3))


def test_of_equals_the_first_is_better_and_a_second_rate_breaks_ties():
    looks = BestLooks(2)
    looks.offer(_look(7, 0.3, 0.2), lambda: _weights(7))
    assert not looks.offer(_look(11, 0.3, 0.2), lambda: _weights(11))
    assert looks.offer(_look(13, 0.3, 0.1), lambda: _weights(13))
    assert looks.steps() == [13, 7]


def test_a_look_that_is_not_kept_costs_no_copy():
    looks = BestLooks(1)
    looks.offer(_look(7, 0.3), lambda: _weights(7))
    looks.offer(_look(11, 0.4), lambda: pytest.fail("copied"))


def test_what_is_kept_comes_back_from_its_tensors():
    looks = BestLooks(2)
    history = [_look(7, 0.5), _look(11, 0.3), _look(13, 0.4)]
    for look in history:
        looks.offer(look, lambda look=look: _weights(look.step))
    again = BestLooks(2)
    again.restore(looks.steps(), history, looks.tensors())
    assert again.steps() == [11, 13]
    assert torch.equal(again.mean()["a"], looks.mean()["a"])
    with pytest.raises(KeyError):
        again.restore([11, 13], history, {})


def test_a_mean_is_of_floating_point_numbers_only():
    mean = mean_weights([_weights(2.0), _weights(5.0)])
    assert torch.equal(mean["a"], torch.full((2, 3), 3.5))
    assert mean["count"] == 2


def test_a_running_average_is_the_recurrence_that_it_says():
    torch.manual_seed(3)
    model = nn.Linear(5, 7)
    average = RunningAverage(model, 0.8)
    wanted = copy_weights(model)
    for step in range(1, 42):
        with torch.no_grad():
            model.weight += torch.randn_like(model.weight)
        average.update(step)
        share = min(0.8, (1 + step) / (10 + step))
        wanted["weight"] = share * wanted["weight"] + (1 - share) * model.weight.detach()
    torch.testing.assert_close(average.weights["weight"], wanted["weight"])
    assert torch.equal(average.weights["bias"], model.bias)
