"""Runs with a time budget, on a clock that steps and looks move."""

import dataclasses
import os
import signal

import pytest
import torch

from regard.seq2seq.batch import PairBatches
from regard.seq2seq.clock import Clock
from regard.seq2seq.events import InterruptedRun
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.train import Trainer, new_model

SIZES = ModelConfig(17, 19, d_in=5, d_hidden=7, d_s=11, d_attn=13, dropout=0.3)
CONFIG = TrainConfig(
    steps=10**9, time_budget=13.0, looks=5, average=2, ema=0.7, warm_up=3, seed=5
)


def _batches() -> PairBatches:
    generator = torch.Generator().manual_seed(7)
    draws = [torch.randint(4, 17, (2, 11), generator=generator) for _ in range(23)]
    examples = [
        (d[0, : 2 + i % 5].tolist(), d[1, : 1 + i % 7].tolist()) for i, d in enumerate(draws)
    ]
    return PairBatches(examples, batch_tokens=53)


class _Run:
    """A trainer whose steps take an eighth of a second, and whose looks take half of one."""

    def __init__(self, config: TrainConfig = CONFIG, *, stop: int = 0) -> None:
        self.now = 0.0
        self.states = []
        self.rates = []
        self.stop = stop
        batches = _batches()
        at = batches.at

        def slow(number):
            self.now += 0.125
            return at(number)

        batches.at = slow
        self.trainer = Trainer(
            new_model(SIZES, seed=5),
            batches,
            config,
            evaluate=self._evaluate,
            on_progress=self._show,
            save=lambda trainer: self.states.append(trainer.state()),
            clock=Clock(read=lambda: self.now),
        )

    def _evaluate(self, model) -> float:
        self.now += 0.5
        return float(model.readout.weight.detach().abs().sum()) % 0.1

    def _show(self, event) -> None:
        self.rates.append(event.rate)
        if event.step == self.stop:
            os.kill(os.getpid(), signal.SIGINT)


def test_a_run_takes_its_budget_and_its_learning_rate_falls_to_the_end():
    run = _Run()
    result = run.trainer.run()
    assert run.now == pytest.approx(CONFIG.time_budget, rel=0.03)
    assert not result.stopped_early
    assert 60 < result.steps < 110
    assert 3 <= len(result.history) <= 7  # half a second each: fewer than were asked for
    assert result.history[-1].step == result.steps
    assert max(run.rates) <= CONFIG.learning_rate
    assert run.rates[-1] < 0.1 * CONFIG.learning_rate
    steps = [abs(b - a) for a, b in zip(run.rates[3:], run.rates[4:], strict=False)]
    assert max(steps) < 0.13 * CONFIG.learning_rate  # no great jump where the plan changed


def test_a_number_of_steps_bounds_a_budget():
    run = _Run(dataclasses.replace(CONFIG, steps=31))
    assert run.trainer.run().steps == 31
    assert run.now < CONFIG.time_budget


@pytest.mark.parametrize("stop", [7, 13, 29, 53])
def test_a_resumed_run_repeats_the_plans_and_ends_with_the_same_bits(stop):
    whole = _Run()
    wanted = whole.trainer.run()
    first = _Run(stop=stop)
    with pytest.raises(InterruptedRun):
        first.trainer.run()
    second = _Run()
    second.trainer.load_state(first.states[-1])
    result = second.trainer.run()
    assert second.trainer.plan == whole.trainer.plan
    assert result.history == wanted.history
    assert result.averaged == wanted.averaged
    one, two = whole.trainer.state().tensors, second.trainer.state().tensors
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_every_plan_is_saved_before_a_step_depends_on_it():
    run = _Run()
    plans = {}

    def show(event):
        plans[event.step] = run.trainer.plan

    run.trainer._on_progress = show
    run.trainer.run()
    saved = {state.info["step"]: state.info["plan"] for state in run.states}
    changed = [step for step in plans if step > 1 and plans[step] != plans[step - 1]]
    assert len(changed) >= 3
    assert all(saved[step] == plans[step].to_json() for step in changed)
