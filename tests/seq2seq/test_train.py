import dataclasses
import math
import os
import signal

import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.batch import PairBatches
from regard.seq2seq.events import DivergedError, InterruptedRun
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.search import greedy
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.train import Trainer, new_model, train

SIZES = ModelConfig(17, 19, d_in=5, d_hidden=7, d_s=11, d_attn=13, dropout=0.3)
CONFIG = TrainConfig(steps=13, warm_up=3, seed=5)


def _batches(seed: int = 0) -> PairBatches:
    generator = torch.Generator().manual_seed(7)
    draws = [torch.randint(4, 17, (2, 11), generator=generator) for _ in range(23)]
    examples = [
        (d[0, : 2 + i % 5].tolist(), d[1, : 1 + i % 7].tolist()) for i, d in enumerate(draws)
    ]
    return PairBatches(examples, batch_tokens=53, seed=seed)


def _same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


class _Rates:
    """An evaluation with a given course, so that what follows from it can be told."""

    def __init__(self, *rates: float) -> None:
        self.rates = list(rates)
        self.weights: list[dict] = []

    def __call__(self, model) -> float:
        self.weights.append({k: v.clone() for k, v in model.state_dict().items()})
        return self.rates[len(self.weights) - 1]


@pytest.mark.parametrize(("attention", "enough"), [("none", 20), ("bahdanau", 28), ("dot", 28)])
def test_a_tiny_model_learns_to_reverse(attention, enough):
    generator = torch.Generator().manual_seed(11)
    words = [
        torch.randint(4, 11, (1 + i % 4,), generator=generator).tolist() for i in range(307)
    ]
    sizes = dataclasses.replace(
        SIZES,
        attention=attention,
        source_symbols=11,
        target_symbols=11,
        dropout=0.0,
        d_in=16,
        d_hidden=24,
        d_s=48,
    )
    batches = PairBatches([(word, word[::-1]) for word in words[31:]], batch_tokens=211)
    config = TrainConfig(steps=300, learning_rate=1e-2, warm_up=20)
    model, result = train(sizes, batches, config)
    found = [greedy(model, torch.tensor([word]), max_length=5)[0].ids for word in words[:31]]
    right = sum(ids == tuple(word[::-1]) for ids, word in zip(found, words, strict=False))
    assert right >= enough
    assert result.steps == 300


def test_the_same_seed_gives_the_same_weights_and_another_others():
    one, two = (train(SIZES, _batches(), CONFIG)[0].state_dict() for _ in range(2))
    assert _same(one, two)
    other = train(SIZES, _batches(), dataclasses.replace(CONFIG, seed=6))[0].state_dict()
    assert not _same(one, other)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"clip": 0.05},
        {"label_smoothing": 0.2},
        {"weight_decay": 0.3},
        {"optimizer": "adam", "weight_decay": 0.3},
        {"betas": (0.5, 0.7)},
        {"decay": "linear", "final_share": 0.5},
    ],
)
def test_a_run_is_the_plain_loop_that_its_settings_describe(change):
    config = dataclasses.replace(CONFIG, **change)
    sizes = dataclasses.replace(SIZES, dropout=0.0)
    found = train(sizes, _batches(), config)[0].state_dict()

    model = new_model(sizes, seed=5)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    optimizer = kind(
        model.parameters(), lr=1.0, betas=config.betas, weight_decay=config.weight_decay
    )
    batches = _batches()
    for step in range(13):
        rise, fall = min(1, (step + 1) / 3), max(0, (step - 2) / 10)
        fall = 0.5 * (1 + math.cos(math.pi * fall)) if config.decay == "cosine" else 1 - fall
        share = config.final_share
        optimizer.param_groups[0]["lr"] = 3e-3 * rise * (share + (1 - share) * fall)
        batch = batches.at(step)
        scores = model(batch.source, batch.inputs, batch.source_lengths).symbol_scores
        log_probs = scores.log_softmax(-1)
        right = log_probs.gather(-1, batch.targets[..., None])[..., 0]
        smooth = config.label_smoothing
        each = -(1 - smooth) * right - smooth * log_probs.mean(-1)
        loss = each[batch.targets != 0].mean()
        optimizer.zero_grad()
        loss.backward()
        norm = sum(p.grad.square().sum() for p in model.parameters()).sqrt()
        for parameter in model.parameters():
            parameter.grad *= min(1.0, config.clip / norm.item())
        optimizer.step()
    wanted = model.state_dict()
    for name in wanted:
        torch.testing.assert_close(found[name], wanted[name], rtol=1e-3, atol=2e-5)


def test_training_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(3)
    wanted = torch.rand(5)
    torch.manual_seed(3)
    train(SIZES, _batches(), CONFIG)
    assert torch.equal(torch.rand(5), wanted)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
@pytest.mark.parametrize("stop", [1, 4, 6, 12])
def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(stop, optimizer):
    config = dataclasses.replace(
        CONFIG, evaluate_every=3, optimizer=optimizer, weight_decay=0.1, label_smoothing=0.1
    )
    rates = [0.5, 0.3, 0.4, 0.35, 0.31]
    whole = Trainer(new_model(SIZES, seed=5), _batches(), config, evaluate=_Rates(*rates))
    wanted = whole.run()

    looks = _Rates(*rates)
    states = []

    def interrupt(progress):
        if progress.step == stop:
            os.kill(os.getpid(), signal.SIGINT)

    first = Trainer(
        new_model(SIZES, seed=5),
        _batches(),
        config,
        evaluate=looks,
        on_progress=interrupt,
        save=lambda trainer: states.append(trainer.state()),
    )
    with pytest.raises(InterruptedRun) as caught:
        first.run()
    assert (caught.value.step, caught.value.signal) == (stop, signal.SIGINT)
    assert states[-1].info["step"] == stop

    torch.manual_seed(99)
    second = Trainer(new_model(SIZES, seed=12345), _batches(), config, evaluate=looks)
    second.load_state(states[-1])
    result = second.run()
    assert _same(second.model.state_dict(), whole.model.state_dict())
    assert _same(second.state().tensors, whole.state().tensors)
    assert result.history == wanted.history
    assert (result.best_step, result.steps) == (wanted.best_step, 13) == (6, 13)


def test_the_weights_of_the_best_look_remain():
    rates = _Rates(0.5, 0.2, 0.4, 0.2, 0.3)
    config = dataclasses.replace(CONFIG, evaluate_every=3)
    model, result = train(SIZES, _batches(), config, evaluate=rates)
    assert [look.step for look in result.history] == [3, 6, 9, 12, 13]
    assert (result.best_step, result.best_error_rate) == (6, 0.2)
    assert _same(model.state_dict(), rates.weights[1])
    assert not model.training


@pytest.mark.parametrize(("rate", "chosen"), [(0.1, True), (0.2, False), (0.3, False)])
def test_the_mean_of_the_best_looks_is_taken_only_if_it_scores_better(rate, chosen):
    rates = _Rates(0.5, 0.2, 0.4, 0.3, 0.6, rate)
    config = dataclasses.replace(CONFIG, evaluate_every=3, average=3)
    model, result = train(SIZES, _batches(), config, evaluate=rates)
    kept = [rates.weights[place] for place in (1, 2, 3)]  # of steps 6, 9 and 12
    mean = {k: torch.stack([w[k] for w in kept]).double().mean(0).float() for k in kept[0]}
    assert all(torch.allclose(rates.weights[-1][k], mean[k], atol=1e-7) for k in mean)
    assert _same(model.state_dict(), rates.weights[5 if chosen else 1])
    assert result.averaged == ((6, 9, 12) if chosen else ())
    assert result.error_rate == min(rate, 0.2)
    assert (result.best_step, result.best_error_rate) == (6, 0.2)


def test_with_a_running_average_looks_score_it_and_training_goes_on_from_the_weights():
    seen = []
    config = dataclasses.replace(CONFIG, evaluate_every=5, ema=0.6)
    rates = _Rates(0.5, 0.4, 0.3)
    model = new_model(SIZES, seed=5)
    average = {k: v.clone() for k, v in model.state_dict().items()}

    def show(event):
        share = min(0.6, (1 + event.step) / (10 + event.step))
        for name, value in model.state_dict().items():
            average[name] = share * average[name] + (1 - share) * value
        seen.append({k: v.clone() for k, v in average.items()})

    Trainer(model, _batches(), config, evaluate=rates, on_progress=show).run()
    for look, step in enumerate((5, 10, 13)):
        for name, value in rates.weights[look].items():
            torch.testing.assert_close(value, seen[step - 1][name])
    plain = dataclasses.replace(CONFIG, evaluate_every=5)
    others = _Rates(0.5, 0.4, 0.3)
    train(SIZES, _batches(), plain, evaluate=others)
    assert not _same(others.weights[-1], rates.weights[-1])
    assert _same(model.state_dict(), rates.weights[-1])


def test_several_error_rates_are_recorded_and_the_first_one_decides():
    rates = iter([(0.5, 0.1), (0.3, 0.3), (0.3, 0.2), (0.4, 0.0), (0.6, 0.0)])
    looks = []

    def evaluate(model):
        looks.append({k: v.clone() for k, v in model.state_dict().items()})
        return dict(zip(("words", "symbols"), next(rates), strict=True))

    config = dataclasses.replace(CONFIG, evaluate_every=3)
    model, result = train(SIZES, _batches(), config, evaluate=evaluate)
    assert result.history[1].scores == (("words", 0.3), ("symbols", 0.3))
    assert result.best_step == 9
    assert _same(model.state_dict(), looks[2])


def test_the_chance_of_reading_its_own_answer_rises_over_the_run(monkeypatch):
    found = []
    forward = Seq2Seq.forward

    def watched(self, *args, sampling=0.0, **kwargs):
        found.append(sampling)
        return forward(self, *args, sampling=sampling, **kwargs)

    monkeypatch.setattr(Seq2Seq, "forward", watched)
    train(SIZES, _batches(), dataclasses.replace(CONFIG, sampling=0.5))
    assert found == pytest.approx([0.5 * step / 13 for step in range(13)])


def test_bfloat16_is_for_the_forward_pass_only():
    config = dataclasses.replace(CONFIG, precision="bfloat16")
    model, _ = train(SIZES, _batches(), config)
    wanted, _ = train(SIZES, _batches(), CONFIG)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    pairs = zip(model.state_dict().values(), wanted.state_dict().values(), strict=True)
    worst = max(float((one - two).abs().max()) for one, two in pairs)
    assert 0 < worst < 0.05


def test_a_run_saves_every_few_seconds_without_a_look():
    steps = []
    trainer = Trainer(
        new_model(SIZES, seed=5),
        _batches(),
        CONFIG,
        save=lambda trainer: steps.append(trainer.step),
        save_every=0.0,
    )
    trainer.run()
    assert steps == [*range(1, 14), 13]


def test_a_run_ends_early_when_the_error_rate_stops_falling():
    config = dataclasses.replace(CONFIG, evaluate_every=2, patience=2)
    rates = _Rates(0.5, 0.4, 0.45, 0.4, 0.1)
    _, result = train(SIZES, _batches(), config, evaluate=rates)
    assert result.stopped_early
    assert (result.steps, result.best_step) == (8, 4)


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_what_was_saved():
    saved = []

    model = new_model(SIZES, seed=5)

    def poison(progress):
        if progress.step == 7:
            with torch.no_grad():
                model.readout.weight[0, 0] = torch.nan

    trainer = Trainer(
        model,
        _batches(),
        dataclasses.replace(CONFIG, evaluate_every=3),
        evaluate=lambda _: 0.5,
        on_progress=poison,
        save=lambda trainer: saved.append(trainer.state()),
    )
    with pytest.raises(DivergedError) as caught:
        trainer.run()
    text = str(caught.value)
    assert "at step 8" in text
    assert "saved after step 6 is kept" in text
    assert "smaller learning rate" in text
    assert saved[-1].info["step"] == 6
    assert all(torch.isfinite(value).all() for value in saved[-1].tensors.values())


def test_progress_tells_step_total_loss_rate_and_looks():
    events = []
    config = dataclasses.replace(CONFIG, evaluate_every=5)
    train(SIZES, _batches(), config, evaluate=lambda _: 0.25, on_progress=events.append)
    assert [event.step for event in events] == list(range(1, 14))
    assert {event.total for event in events} == {13}
    assert [event.step for event in events if event.evaluation] == [5, 10, 13]
    assert [event.best for event in events] == [None] * 4 + [0.25] * 9
    assert max(event.rate for event in events) == config.learning_rate
    first = sum(event.loss for event in events[:5]) / 5
    assert events[4].evaluation.loss == pytest.approx(first)


def test_padding_has_no_part_in_the_loss():
    losses = []
    for ending in (0, 3):
        batches = _batches()
        at = batches.at

        def padded(step, at=at, ending=ending):
            batch = at(step)
            grow = torch.zeros(len(batch.inputs), ending, dtype=torch.int64)
            return dataclasses.replace(
                batch,
                inputs=torch.cat([batch.inputs, grow], 1),
                targets=torch.cat([batch.targets, grow], 1),
            )

        batches.at = padded
        sizes = dataclasses.replace(SIZES, dropout=0.0)
        train(sizes, batches, CONFIG, on_progress=lambda e: losses.append(e.loss))
    assert losses[:13] == pytest.approx(losses[13:], rel=1e-4)


def test_early_stopping_without_an_evaluation_is_refused():
    for change in ({"patience": 2}, {"evaluate_every": 2}):
        with pytest.raises(InputError, match="`evaluate` is missing"):
            train(SIZES, _batches(), dataclasses.replace(CONFIG, **change))


def test_a_state_of_other_settings_or_another_model_is_refused():
    trainer = Trainer(new_model(SIZES, seed=5), _batches(), CONFIG)
    trainer.run()
    state = trainer.state()
    other = Trainer(new_model(SIZES, seed=5), _batches(), dataclasses.replace(CONFIG, seed=6))
    with pytest.raises(InputError, match="other settings"):
        other.load_state(state)
    wider = Trainer(new_model(dataclasses.replace(SIZES, d_s=12), seed=5), _batches(), CONFIG)
    with pytest.raises(InputError, match="does not belong to this model"):
        wider.load_state(state)
