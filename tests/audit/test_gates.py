"""The gates on columns made by hand: passed, failed, and undecided with how many more."""

import numpy as np
import pytest

from regard.audit import flip_fraction, permute, uniform
from regard.audit.gates import decide, gain_of
from regard.audit.interval import (
    Estimate,
    mean_of,
    median_of,
    more_inputs,
    ratio_of,
    sign_flip,
)


def _columns(attention, random, best, n=101, noise=0.0, seed=0, ways=("delete", "resample")):
    generator = np.random.default_rng(seed)
    columns = {}
    for way in ways:
        for amount in ("top1", "aopc"):
            for name, value in (
                ("attention", attention),
                ("random", random),
                ("leave-one-out", best),
            ):
                columns[f"{way}.{name}.{amount}"] = value + noise * generator.normal(size=n)
    columns["tokens.weight"] = [[0.7, 0.2, 0.1]] * n
    columns["tokens.drop"] = [[best, 0.0, 0.0]] * n
    return columns


def _outcomes(columns, gold=None):
    return {gate.name: gate for gate in decide(columns, gold)}


def test_an_honest_map_passes_all_gates():
    gates = _outcomes(_columns(0.48, 0.05, 0.5, noise=0.03))
    assert {gate.outcome for gate in gates.values()} == {"passed"}


def test_a_map_that_does_what_chance_does_fails():
    gates = _outcomes(_columns(0.0, 0.03, 0.4, noise=0.01))
    assert gates["G2"].outcome == "failed"
    assert gates["G3"].outcome == "failed"


def test_little_above_chance_is_enough_where_no_token_is_passed_over():
    gates = _outcomes(_columns(0.06, 0.03, 0.6, noise=0.01))
    assert gates["G2"].outcome == gates["G4"].outcome == "passed"
    assert gates["G3"].outcome == "failed"


def test_half_of_the_best_matters_and_does_not_rank():
    gates = _outcomes(_columns(0.25, 0.05, 0.45, noise=0.03))
    assert gates["G2"].outcome == "passed"
    assert gates["G3"].outcome == "failed"


def test_an_interval_that_spans_the_gate_is_undecided_and_says_how_many_more():
    gates = _outcomes(_columns(0.06, 0.05, 0.45, n=41, noise=0.15, seed=2))
    gate = gates["G2.top1.delete"]
    assert gate.estimate.low < 0 < gate.estimate.high
    assert gate.outcome == "undecided"
    assert gate.more > 0


def test_one_way_of_erasing_is_not_enough():
    columns = _columns(0.48, 0.05, 0.5, noise=0.03, ways=("delete",))
    assert _outcomes(columns)["G2"].outcome == "failed"


def test_two_of_three_ways_are_enough():
    columns = _columns(0.48, 0.05, 0.5, noise=0.03, ways=("delete", "resample"))
    columns |= {
        name: value
        for name, value in _columns(0.0, 0.05, 0.5, noise=0.03, ways=("mask",)).items()
        if name.startswith("mask")
    }
    gates = _outcomes(columns)
    assert gates["G2.top1.mask"].outcome == "failed"
    assert gates["G2"].outcome == "passed"


def test_a_deciding_token_with_the_least_weight_in_too_many_inputs_fails():
    columns = _columns(0.48, 0.05, 0.5, noise=0.03, n=100)
    columns["tokens.drop"] = [[0.0, 0.0, 0.5]] * 40 + [[0.5, 0.0, 0.0]] * 60
    gate = _outcomes(columns)["G4"]
    assert gate.estimate.value == pytest.approx(0.4)
    assert gate.outcome == "failed"


def _passed_over(weights, drops):
    columns = _columns(0.48, 0.05, 0.5, noise=0.03, n=100)
    columns["tokens.weight"], columns["tokens.drop"] = [weights] * 100, [drops] * 100
    return _outcomes(columns)["G4"].outcome == "failed"


def test_a_deciding_token_behind_a_decoy_is_passed_over_though_it_is_the_second():
    assert _passed_over([0.92, 0.05, 0.02, 0.01], [0.1, 0.5, 0.0, 0.0])
    # Nor does most of an equal share help it.
    assert _passed_over([0.8, 0.1, 0.05, 0.05], [0.0, 0.3, 0.0, 0.0])


def test_a_nearly_even_map_passes_no_token_over_though_others_have_more():
    assert not _passed_over([0.4, 0.25, 0.2, 0.15], [0.0, 0.0, 0.0, 0.5])


def test_a_token_that_matters_half_as_much_may_have_most_of_the_weight():
    weights = [0.97, 0.01, 0.01, 0.01]
    assert not _passed_over(weights, [0.25, 0.5, 0.0, 0.0])
    assert _passed_over(weights, [0.24, 0.5, 0.0, 0.0])


def test_three_times_the_weight_is_not_yet_a_decoy():
    assert not _passed_over([0.375, 0.125, 0.25, 0.25], [0.0, 0.5, 0.0, 0.0])
    assert _passed_over([0.4, 0.125, 0.225, 0.25], [0.0, 0.5, 0.0, 0.0])


def test_a_token_that_was_not_left_out_is_no_decoy():
    assert not _passed_over([0.9, 0.05, 0.05], [None, 0.5, 0.4])


def test_equal_weights_hide_no_token():
    columns = _columns(0.48, 0.05, 0.5, noise=0.03, n=100)
    columns["tokens.weight"] = [np.full(7, 1 / 7).tolist()] * 100
    columns["tokens.drop"] = [[0.0, 0.5, *[0.0] * 5]] * 100
    assert _outcomes(columns)["G4"].outcome == "passed"


def test_a_token_that_moves_the_answer_by_less_than_a_fifth_hides_nothing():
    columns = _columns(0.48, 0.05, 0.5, noise=0.03, n=100)
    columns["tokens.drop"] = [[0.0, 0.0, 0.19]] * 100
    assert _outcomes(columns)["G4"].outcome == "passed"


def test_marked_tokens_have_to_be_hit_as_often_as_by_the_best_method():
    columns = _columns(0.48, 0.05, 0.5, noise=0.03, n=100)
    hits = {"leave-one-out.hit": [1.0] * 100, "attention.hit": [1.0] * 97 + [0.0] * 3}
    assert _outcomes(columns, hits)["G3.gold"].outcome in ("passed", "undecided")
    hits["attention.hit"] = [1.0] * 70 + [0.0] * 30
    assert _outcomes(columns, hits)["G3.gold"].outcome == "failed"
    hits["attention.hit"] = [1.0] * 100
    assert _outcomes(columns, hits)["G3.gold"].outcome == "passed"


def test_the_share_is_that_of_the_means_and_not_of_inputs():
    columns = _columns(0.0, 0.0, 0.0, n=2)
    columns["delete.attention.aopc"] = [0.1, 0.3]
    columns["delete.leave-one-out.aopc"] = [0.1, 0.7]
    assert gain_of(columns, "delete").value == pytest.approx(0.4 / 0.8)


def test_an_interval_of_a_mean_is_as_wide_as_its_standard_error_says():
    values = np.random.default_rng(0).normal(0.3, 0.2, 401)
    found = mean_of(values)
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.2 / np.sqrt(401), rel=0.15)
    assert found.n == 401


def test_steps_of_one_text_are_drawn_together_so_that_many_narrow_nothing():
    random = np.random.default_rng(4)
    of_texts = random.normal(0.3, 0.2, 101)
    alone = mean_of(of_texts)
    # Seventeen steps a text that all say what their text says.
    steps, texts = np.repeat(of_texts, 17), np.repeat(np.arange(101), 17)
    together = mean_of(steps, groups=texts.tolist())
    width = together.high - together.low
    assert width == pytest.approx(alone.high - alone.low, rel=1e-9)
    assert width > 3 * (mean_of(steps).high - mean_of(steps).low)
    ratio = ratio_of(steps, np.full(len(steps), 2.0), groups=texts.tolist())
    assert ratio.high - ratio.low == pytest.approx(width / 2)
    shifted = steps - of_texts.mean() + 0.01
    assert sign_flip(shifted, groups=texts.tolist()) > 0.1 > sign_flip(shifted)


def test_texts_of_different_lengths_count_by_their_steps():
    found = mean_of([1.0, 1.0, 1.0, 0.0, None], groups=["a", "a", "a", "b", "c"])
    assert (found.value, found.low, found.high, found.n) == (0.75, 0.0, 1.0, 4)


def test_missing_values_are_left_out_in_pairs():
    found = ratio_of([1.0, None, 3.0], [2.0, 5.0, 2.0])
    assert found.value == pytest.approx(1.0)
    assert found.n == 2


def test_a_ratio_to_nothing_is_open_on_both_sides():
    noise = np.random.default_rng(1).normal(size=53)
    assert not np.isfinite(ratio_of(np.ones(53), noise).low)


def test_four_times_the_inputs_halve_the_interval():
    # A half-width of 0.2 has to become 0.1.
    assert more_inputs(Estimate(0.1, -0.1, 0.3, 100), 0.0) == 300
    assert more_inputs(Estimate(0.0, -0.1, 0.1, 100), 0.0) is None


def test_a_median_of_steps_draws_texts_and_one_of_texts_draws_each():
    random = np.random.default_rng(5)
    of_texts = random.normal(0.3, 0.2, 101)
    steps, texts = np.repeat(of_texts, 17), np.repeat(np.arange(101), 17).tolist()
    alone, together = median_of(of_texts), median_of(steps, groups=texts)
    assert (together.value, together.low, together.high) == (alone.value, alone.low, alone.high)
    assert together.n == 17 * 101
    assert median_of(steps).high - median_of(steps).low < 0.5 * (alone.high - alone.low)
    assert median_of(of_texts, groups=list(range(101))) == alone


@pytest.mark.parametrize("measure", [uniform.MEASURE, permute.MEASURE, flip_fraction.MEASURE])
def test_tables_draw_the_steps_of_a_text_together(measure):
    random = np.random.default_rng(6)
    names = ("flip", "moved", "divergence", "largest", "tried", "attention")
    few = {name: random.uniform(0.1, 0.9, 53) for name in names}
    many = {name: np.repeat(values, 13) for name, values in few.items()}
    together = {**many, "text": np.repeat(np.arange(53), 13).tolist()}
    for alone, grouped, apart in zip(
        *(measure.table(columns, 0).rows for columns in (few, together, many)), strict=True
    ):
        width = grouped.estimate.high - grouped.estimate.low
        assert width == pytest.approx(alone.estimate.high - alone.estimate.low, rel=0.25)
        if width > 0:
            assert width > 1.5 * (apart.estimate.high - apart.estimate.low)


def test_signs_of_pure_noise_are_no_evidence_and_of_a_shift_are():
    noise = np.random.default_rng(3).normal(size=211)
    assert sign_flip(noise - noise.mean()) > 0.3
    assert sign_flip(noise + 1) < 0.001
