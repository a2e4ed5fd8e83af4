import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.search import Ranking


def test_penalties_are_those_of_equation_14():
    # (5 + 7)^0.2 / 6^0.2 = 2^0.2; the source symbols got 0.5, 1.5 and 0.25 of attention.
    ranking = Ranking(length=0.2, coverage=0.3)
    score = ranking.score(torch.tensor(-3.0), 7, torch.tensor([0.5, 1.5, 0.25]), None)
    # -3 / 1.148698 = -2.611653; log(0.5) + log(1) + log(0.25) = -2.079442
    assert score.item() == pytest.approx(-2.611653 - 0.3 * 2.079442, abs=1e-5)


def test_padding_costs_no_coverage():
    ranking = Ranking(coverage=1.0)
    looked = torch.tensor([[0.5, 0.0, 0.0]])
    real = torch.tensor([[True, False, False]])
    assert ranking.score(torch.zeros(1), 1, looked, real).item() == pytest.approx(-0.693147)


@pytest.mark.parametrize("length", ["none", "average", 0.0, 0.6, 2.0])
def test_no_continuation_scores_above_the_bound(length):
    ranking = Ranking(length=length, coverage=0.2)
    log_prob = torch.tensor([[-2.0, -0.3]])
    bound = ranking.bound(log_prob, torch.tensor([11]))
    for more in range(1, 12):
        looked = torch.rand(1, 2, 3, generator=torch.Generator().manual_seed(more))
        assert bool((ranking.score(log_prob, more, looked, None) <= bound + 1e-6).all())
    full = torch.ones(1, 2, 3)
    torch.testing.assert_close(ranking.score(log_prob, 11, full, None), bound)


@pytest.mark.parametrize(
    "given", [{"length": "long"}, {"length": -0.1}, {"length": True}, {"coverage": -1.0}]
)
def test_a_penalty_that_makes_no_sense_is_refused(given):
    with pytest.raises(InputError, match=r"Ranking\(\)"):
        Ranking(**given)
