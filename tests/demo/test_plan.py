import pytest

import regard as rg
from regard.demo.plan import WORDS, Plan
from regard.seq2seq.recipes import g2p


def test_there_is_one_job_for_every_kind_and_seed_and_one_for_the_letters():
    plan = Plan(seed=5, seeds=2, attentions=("none", "dot"))
    names = {job.name for job in plan.jobs()}
    assert names == {"letters", "copy-none-5", "copy-none-6", "copy-dot-5", "copy-dot-6"}


def test_the_longest_job_comes_first():
    costs = [job.cost for job in Plan().jobs()]
    assert costs == sorted(costs, reverse=True)


def test_the_default_plan_has_three_seeds_and_the_lengths_of_the_claim():
    plan = Plan()
    assert plan.seeds >= 3
    assert {5, 10, 20, 40, 80, 120, 160} <= set(plan.lengths)
    assert plan.longest == 80


@pytest.mark.parametrize(
    "changed",
    [
        {"seeds": 0},
        {"steps": 0},
        {"lengths": (5, 0)},
        {"attentions": ("cosine",)},
        {"seed": -1},
    ],
    ids=str,
)
def test_an_impossible_plan_is_refused_by_name(changed):
    with pytest.raises(rg.InputError, match=f"`{next(iter(changed))}` is refused"):
        Plan(**changed)


def test_the_shown_words_are_held_out_and_listed():
    test = g2p.load().test.references()
    assert all(word in test for word in WORDS)
