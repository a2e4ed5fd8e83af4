import math

import pytest

from regard.errors import InputError
from regard.seq2seq.job import describe
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.recipes import g2p
from regard.seq2seq.recipes.pairs import held_out_count, settings_for


def _pairs(count: int) -> Pairs:
    return Pairs(tuple((f"{i:05}", "A B") for i in range(count)))


@pytest.mark.parametrize(("count", "steps"), [(11, 600), (2003, 721), (200_003, 4000)])
def test_more_data_trains_longer_between_two_bounds(count, steps):
    # 2,003 pairs of 5 + 4 symbols are 40 * 18.027 = 721.08 batches of 1,000.
    found = settings_for(_pairs(count)).train.steps
    assert found == (722 if steps == 721 else steps)


def test_epochs_are_counted_in_the_symbols_that_are_trained_on():
    by_chars = settings_for(_pairs(2003), epochs=2.5)
    by_spaces = settings_for(_pairs(2003), epochs=2.5, target_symbols="spaces")
    assert by_chars.train.steps == math.ceil(2.5 * 2003 * (5 + 3 + 1) / 1000)
    assert by_spaces.train.steps == math.ceil(2.5 * 2003 * (5 + 2 + 1) / 1000)


def test_a_single_step_can_be_asked_for():
    train = settings_for(_pairs(11), steps=1).train
    assert (train.steps, train.warm_up, train.evaluate_every) == (1, 1, 1)


@pytest.mark.parametrize("attention", ["none", "bahdanau", "dot", "general", "concat"])
def test_every_attention_has_sizes_that_fit(attention):
    settings = settings_for(_pairs(11), attention=attention, d_hidden=7)
    assert describe(_pairs(11), settings).model.d_s == (14 if attention == "dot" else 11)


def test_little_data_gets_more_dropout():
    small, large = (settings_for(_pairs(n)).model["dropout"] for n in (9_999, 10_000))
    assert small > large


@pytest.mark.parametrize(
    ("count", "length", "dropout"),
    [
        (49_999, {"steps": 100}, 0.1),
        (50_000, {"steps": 100}, 0.0),
        (50_000, {"epochs": 14.9}, 0.0),
        (50_000, {"epochs": 15.1}, 0.1),
        (50_000, {"seconds": 60.0}, 0.0),
        (50_000, {"seconds": 600.0}, 0.1),
        (9_999, {"steps": 1}, 0.3),
    ],
)
def test_much_data_that_is_read_seldom_gets_no_dropout(count, length, dropout):
    assert settings_for(_pairs(count), **length).model["dropout"] == dropout
    assert settings_for(_pairs(count), **length, dropout=0.2).model["dropout"] == 0.2


def test_much_data_and_minutes_get_what_the_recipe_of_cmudict_has():
    recipe = g2p.recipe().job(300.0, 0)
    settings = settings_for(_pairs(50_000), seconds=300.0, dropout=0.0)
    assert settings.model == recipe.model
    for name in ("learning_rate", "label_smoothing", "decay", "final_share"):
        assert getattr(settings.train, name) == getattr(recipe.train, name)


@pytest.mark.parametrize(
    ("count", "given"),
    [
        (49_999, {"seconds": 300.0}),
        (50_000, {"seconds": 179.0}),
        (50_000, {"steps": 4000}),
        (50_000, {"seconds": 300.0, "d_hidden": 96}),
    ],
)
def test_others_get_the_usual_model(count, given):
    settings = settings_for(_pairs(count), **given)
    assert "layers" not in settings.model
    assert (settings.model["d_hidden"], settings.model["d_s"]) == (96, 160)
    assert settings.train.learning_rate == 5e-3


@pytest.mark.parametrize(
    "options",
    [{"steps": 3, "epochs": 2.0}, {"epochs": 0.0}, {"epochs": math.inf}, {"steps": 0}],
)
def test_a_length_that_does_not_hold_is_refused(options):
    with pytest.raises(InputError):
        settings_for(_pairs(11), **options)


@pytest.mark.parametrize(("count", "held"), [(2, 1), (11, 1), (107, 10), (50_000, 2000)])
def test_a_tenth_of_the_sources_is_held_out_within_bounds(count, held):
    assert held_out_count(_pairs(count)) == held
