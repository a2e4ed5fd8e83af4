import math

import pytest

from regard.errors import InputError
from regard.seq2seq.job import describe
from regard.seq2seq.pairs import Pairs
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
    "options",
    [{"steps": 3, "epochs": 2.0}, {"epochs": 0.0}, {"epochs": math.inf}, {"steps": 0}],
)
def test_a_length_that_does_not_hold_is_refused(options):
    with pytest.raises(InputError):
        settings_for(_pairs(11), **options)


@pytest.mark.parametrize(("count", "held"), [(2, 1), (11, 1), (107, 10), (50_000, 2000)])
def test_a_tenth_of_the_sources_is_held_out_within_bounds(count, held):
    assert held_out_count(_pairs(count)) == held
