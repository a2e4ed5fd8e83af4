import pytest

from regard.demo.copy_results import CopyResults, percent
from regard.errors import InputError


def tiny(**changes):
    """Two models and two seeds whose means can be checked in the head."""
    copy = {
        "chance": 0.25,
        "trained_lengths": [3, 11],
        "lengths": [2, 3, 11, 13],
        "seeds": [0, 1],
        "models": {
            "dot": {"token_accuracy": {"3": [0.8, 1.0], "11": [0.7, 0.9], "13": [0.4, 0.6]}},
            "none": {"token_accuracy": {"3": [0.5, 0.7], "11": [0.2, 0.4], "13": [0.1, 0.3]}},
        },
    }
    return copy | changes


def test_a_cell_is_the_mean_the_lowest_and_the_highest_seed():
    assert CopyResults.read(tiny()).cell("dot", 3) == pytest.approx((0.9, 0.8, 1.0, 2))


def test_what_was_not_measured_is_none():
    results = CopyResults.read(tiny())
    assert results.cell("dot", 2) is None
    assert results.cell("dot", 3, "exact_match") is None
    assert results.cell("general", 3) is None
    assert results.gap(2) is None


def test_no_attention_comes_first_and_the_others_keep_their_order():
    models = {name: {} for name in ("general", "dot", "none", "bahdanau")}
    results = CopyResults.read(tiny(models=models))
    assert list(results.models) == ["none", "general", "dot", "bahdanau"]


def test_lengths_outside_the_range_are_extrapolation_and_its_ends_are_not():
    results = CopyResults.read(tiny())
    assert [n for n in (2, 3, 5, 11, 13) if results.extrapolates(n)] == [2, 13]


def test_the_gap_is_the_best_attention_minus_none():
    models = tiny()["models"] | {"bahdanau": {"token_accuracy": {"11": [0.9, 0.9]}}}
    results = CopyResults.read(tiny(models=models))
    assert results.gap(3) == pytest.approx(0.9 - 0.6)
    assert results.gap(11) == pytest.approx(0.9 - 0.3)
    assert results.best(11)[0] == "bahdanau"


def test_the_finding_is_computed_from_the_figures():
    assert CopyResults.read(tiny()).finding() == (
        "At length 11, the longest trained length measured, the model without attention gets"
        " 30.0 % of the tokens right; chance is 25 %. With attention: Luong dot 80.0 %."
        " The gap between the best attention and none widens from 30.0 points at length 3"
        " to 50.0 at length 11. At length 13, longer than anything in training, the best of"
        " them, Luong dot, gets 50.0 %."
    )


def test_a_gap_that_narrows_is_said_to_narrow():
    models = {
        "none": {"token_accuracy": {"3": [0.1], "11": [0.5]}},
        "dot": {"token_accuracy": {"3": [0.9], "11": [0.6]}},
    }
    assert "narrows from 80.0 points" in CopyResults.read(tiny(models=models)).finding()


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ({}, "nothing is found"),
        ({"dot": {"token_accuracy": {"13": [0.5]}}}, "nothing is found"),
        ({"none": {"token_accuracy": {"3": [0.5]}}}, "without attention gets 50.0 %"),
        (
            {"dot": {"token_accuracy": {"3": [0.5]}}},
            "With attention at length 3: Luong dot 50.0",
        ),
    ],
)
def test_a_finding_of_few_models_claims_nothing_about_the_others(models, words):
    finding = CopyResults.read(tiny(models=models)).finding()
    assert words in finding
    assert "gap" not in finding


@pytest.mark.parametrize(
    "figure", [1.5, -0.1, float("nan"), "0.5", None], ids=["high", "low", "nan", "text", "none"]
)
def test_a_figure_that_is_no_share_is_refused_by_name(figure):
    models = {"dot": {"token_accuracy": {"3": [0.5, figure]}}}
    with pytest.raises(InputError, match=r"dot\.token_accuracy at length 3 is no share"):
        CopyResults.read(tiny(models=models))


@pytest.mark.parametrize("trained", [None, [3], "3 to 11"])
def test_trained_lengths_must_be_a_range(trained):
    with pytest.raises(InputError, match="`trained_lengths` is no range"):
        CopyResults.read(tiny(trained_lengths=trained))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0"),
        (0.0004, "<0.1"),
        (0.001, "0.1"),
        (0.9994, "99.9"),
        (0.9996, ">99.9"),
        (1, "100.0"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_to_none(share, text):
    assert percent(share) == text
