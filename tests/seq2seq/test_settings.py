import dataclasses

import pytest

from regard.errors import InputError
from regard.seq2seq.settings import TrainConfig


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("optimizer", "sgd"),
        ("betas", (0.9, 1.0)),
        ("weight_decay", -0.1),
        ("warm_up", 1001),
        ("decay", "step"),
        ("final_share", 1.5),
        ("clip", 0.0),
        ("label_smoothing", 1.0),
        ("time_budget", -1.0),
        ("time_budget", float("inf")),
        ("clock", "sun"),
        ("accumulate", 0),
        ("precision", "float16"),
        ("sampling", 1.5),
        ("looks", 0),
        ("average", -1),
        ("ema", 1.0),
        ("evaluate_every", -1),
        ("patience", -1),
        ("seed", -1),
    ],
)
def test_a_value_outside_its_range_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"`{name}` is refused"):
        dataclasses.replace(TrainConfig(), **{name: value})


def test_the_json_form_gives_the_same_settings_back():
    settings = TrainConfig(steps=7, warm_up=3, betas=(0.8, 0.95), seed=11)
    assert TrainConfig.from_json(settings.to_json()) == settings


@pytest.mark.parametrize("change", [{"more": 1}, {"steps": "7"}, {"betas": 0.9}, None])
def test_a_form_that_is_no_settings_is_refused(change):
    form = None if change is None else {**TrainConfig().to_json(), **change}
    with pytest.raises(InputError, match="TrainConfig"):
        TrainConfig.from_json(form)
