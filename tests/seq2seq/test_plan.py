import itertools

import pytest

from regard.seq2seq.clock import Clock
from regard.seq2seq.plan import Plan, Planner


class _Time:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _run(
    *,
    budget: float,
    pace,
    look: float = 0.0,
    looks: int = 0,
    finals: int = 0,
    begin: float = 0.0,
) -> tuple[float, list[Plan], list[int]]:
    """Follow a run whose steps and looks take a known time; return its length, plans, looks."""
    time = _Time()
    clock = Clock(read=time)
    time.now = begin
    planner = Planner(budget, looks=looks, most=10**9, finals=finals)
    plan, step, seen, looked = planner.first(), 0, [], 0
    plans = []
    while step < plan.total:
        with clock.during("steps"):
            time.now += pace(step)
        step += 1
        if planner.is_due(clock, step, len(seen)):
            new = planner.replan(plan, step, clock, looks=len(seen), looked=looked)
            if new != plan:
                plans.append(new)
            plan = new
        if looks and plan.is_look(step):
            with clock.during("looks"):
                time.now += look
            seen.append(step)
            looked = step
    time.now += finals * look
    return time.now, plans, seen


@pytest.mark.parametrize("budget", [7.0, 61.0, 307.0])
@pytest.mark.parametrize(("look", "looks", "finals"), [(0.0, 0, 0), (0.23, 7, 1), (2.3, 11, 1)])
def test_a_run_of_even_pace_takes_its_budget(budget, look, looks, finals):
    length, plans, _ = _run(
        budget=budget, pace=lambda _: 0.031, look=look, looks=looks, finals=finals
    )
    assert length == pytest.approx(budget, rel=0.03, abs=2 * look if budget < 10 else 0.1)
    assert len(plans) <= 11


def test_a_run_whose_pace_changes_takes_its_budget():
    for pace in (
        lambda step: 0.02 if step < 1000 else 0.05,
        lambda step: 0.05 if step < 1000 else 0.02,
        lambda step: 0.02 + 0.013 * (step % 7),
    ):
        length, _, _ = _run(budget=101.0, pace=pace, look=0.3, looks=8, finals=1)
        assert length == pytest.approx(101.0, rel=0.03)


def test_time_that_has_passed_before_the_first_step_counts():
    length, _, _ = _run(budget=61.0, pace=lambda _: 0.02, begin=23.0)
    assert length == pytest.approx(61.0, rel=0.03)


def test_looks_are_spread_over_the_run_and_the_last_one_is_at_its_end():
    _, plans, seen = _run(budget=101.0, pace=lambda _: 0.02, look=0.1, looks=8)
    assert 7 <= len(seen) <= 10
    assert seen[-1] == plans[-1].total
    gaps = [after - before for before, after in zip([0, *seen], seen, strict=False)]
    assert max(gaps) < 3 * min(gaps[:-1])


def test_looks_that_are_slow_are_fewer():
    length, _, seen = _run(budget=101.0, pace=lambda _: 0.02, look=5.0, looks=31)
    assert 2 <= len(seen) <= 7
    assert length == pytest.approx(101.0, rel=0.05)


def test_the_share_that_is_done_never_jumps():
    _, plans, _ = _run(
        budget=101.0, pace=lambda step: 0.02 if step < 1000 else 0.05, look=0.3, looks=8
    )
    assert len(plans) >= 3
    for before, after in itertools.pairwise(plans):
        assert after.share_done(after.step) == pytest.approx(before.share_done(after.step))
    assert plans[-1].share_done(plans[-1].total) == pytest.approx(1.0)


def test_a_budget_that_is_used_up_ends_the_run_at_once():
    _, plans, _ = _run(budget=1.0, pace=lambda _: 3.0)
    assert (plans[-1].step, plans[-1].total) == (1, 1)


def test_a_plan_comes_back_from_its_json_form():
    plan = Plan(7, 101, 13, 0.23, 5)
    assert Plan.from_json(plan.to_json()) == plan


def test_the_steps_of_a_plan_that_holds_from_the_start_are_their_own_positions():
    plan = Plan(0, 1013, 0)
    assert [plan.position(step) for step in range(1013)] == list(range(1013))
