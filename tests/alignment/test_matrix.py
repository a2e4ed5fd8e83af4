import contextlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment import Alignment, Record
from regard.errors import BackendError, InputError, RegardError, ShapeError

SOURCE = ["p", "h", "o", "n", "e", "s", "!"]
TARGET = ["F", "OW", "N", "Z", "."]


def even(steps=5, states=7):
    return np.full((steps, states), 1 / states)


def one_hot(places, states):
    return np.eye(states)[list(places)]


def made(weights=None, target=TARGET, source=SOURCE, **more):
    return Alignment(even() if weights is None else weights, target, source, **more)


def with_row(row, step=2):
    weights = even()
    weights[step] = row
    return weights


def test_the_weights_are_a_copy_that_cannot_be_written_to():
    weights = even()
    alignment = made(weights)
    weights[0, 0] = 5.0
    assert alignment.weights[0, 0] == 1 / 7
    with pytest.raises(ValueError, match="read-only"):
        alignment.weights[0, 0] = 1.0


def test_fields_cannot_be_replaced():
    with pytest.raises(AttributeError):
        made().source = ()


def test_a_step_that_looked_at_nothing_is_a_row_of_zeros_and_has_no_link():
    alignment = made(with_row(np.zeros(7), step=1))
    assert [step for _, step in alignment.links()] == [0, 2, 3, 4]


def test_links_are_source_first_in_the_order_of_the_target():
    assert made(one_hot([3, 0, 6, 6, 2], 7)).links() == ((3, 0), (0, 1), (6, 2), (6, 3), (2, 4))


def test_the_first_of_equal_weights_is_the_link():
    assert made().links()[0] == (0, 0)


@pytest.mark.parametrize(
    ("places", "share"),
    [([0, 1, 2, 3, 4], 1.0), ([4, 3, 2, 1, 0], 0.0), ([0, 2, 1, 1, 6], 3 / 4), ([5] * 5, 1.0)],
)
def test_monotonicity_counts_the_steps_that_do_not_move_back(places, share):
    assert made(one_hot(places, 7)).monotonicity() == share


def test_monotonicity_passes_over_steps_that_looked_at_nothing():
    weights = one_hot([3, 0, 4, 5, 6], 7)
    assert made(weights).monotonicity() == 3 / 4
    weights[1] = 0
    assert made(weights).monotonicity() == 1.0


def test_monotonicity_of_fewer_than_two_links_is_not_defined():
    assert Alignment([[1.0]], ["a"], ["b"]).monotonicity() is None
    assert made(np.zeros((5, 7))).monotonicity() is None


def test_diagonal_mass_is_all_on_the_diagonal_and_none_on_the_other():
    square = Alignment(np.eye(11), ["t"] * 11, ["s"] * 11)
    turned = Alignment(np.eye(11)[:, ::-1], ["t"] * 11, ["s"] * 11)
    assert square.diagonal_mass() == 1.0
    # The middle three steps of eleven cross the line: places 4, 5, 6 at distances 2, 0, 2.
    assert turned.diagonal_mass() == pytest.approx(1 / 11)


def test_diagonal_mass_equals_its_equation_written_as_loops():
    rng = np.random.default_rng(5)
    weights = rng.random((5, 7))
    weights /= weights.sum(axis=1, keepdims=True)
    near = 0.0
    for t in range(5):
        for i in range(7):
            if abs(i + 0.5 - (t + 0.5) * 7 / 5) <= 1.3:
                near += weights[t, i]
    assert made(weights).diagonal_mass(within=1.3) == pytest.approx(near / 5)


def test_diagonal_mass_of_no_weight_is_not_defined():
    assert made(np.zeros((5, 7))).diagonal_mass() is None


@pytest.mark.parametrize("within", [-0.1, math.nan])
def test_diagonal_mass_refuses_what_is_no_distance(within):
    with pytest.raises(InputError, match="`within` is no distance"):
        made().diagonal_mass(within=within)


WRONG = {
    "no matrix": (lambda: made([0.5, 0.5]), ShapeError, "`weights` has 1 axes, not 2"),
    "a batch": (lambda: made(even()[None]), ShapeError, "out of a batch"),
    "no step": (lambda: made(np.zeros((0, 7)), target=[]), ShapeError, "has an empty axis"),
    "ragged": (lambda: made([[1.0], [0.5, 0.5]]), BackendError, "no array of numbers"),
    "text": (lambda: made("weights"), BackendError, "got       str:"),
    "target": (
        lambda: made(target=TARGET[:3]),
        ShapeError,
        "`target` does not fit `weights` on axis T_dec",
    ),
    "source": (
        lambda: made(source=SOURCE[:3]),
        ShapeError,
        "because   T_enc = 7 comes from `weights` (5, 7)",
    ),
    "characters": (lambda: made(source="phones!"), InputError, "list(source) makes every"),
    "ids": (lambda: made(target=[1, 2, 3, 4, 5]), InputError, "got       int '1' in the list"),
    "negative": (
        lambda: made(with_row([1.5, -0.5, 0, 0, 0, 0, 0])),
        InputError,
        "weights[2, 1] = -0.5",
    ),
    "nan": (lambda: made(with_row(np.nan)), InputError, "weights[2, 0] = nan"),
    "infinite": (
        lambda: made(with_row([np.inf, -np.inf, 0, 0, 0, 0, 0])),
        InputError,
        "a weight is not finite",
    ),
    "too little": (lambda: made(even() * 0.9), InputError, "weights[0] sums to 0.9"),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_mistake_has_one_error_that_names_it(case):
    make, kind, words = WRONG[case]
    with pytest.raises(kind) as caught:
        make()
    assert words in str(caught.value)


def test_the_error_of_a_wrong_count_reads_in_full():
    with pytest.raises(ShapeError) as caught:
        made(target=[*TARGET, "</s>"])
    assert str(caught.value) == (
        "Alignment(): `target` does not fit `weights` on axis T_dec\n"
        "  expected  target of 5 tokens\n"
        "  got       target of 6 tokens\n"
        "  because   T_dec = 5 comes from `weights` (5, 7)"
    )


@pytest.mark.parametrize("side", ["target", "source"])
def test_counts_are_checked_for_each_side_where_both_axes_have_one_size(side):
    tokens = {"target": ["t"] * 5, "source": ["s"] * 5}
    Alignment(np.eye(5), **tokens)
    tokens[side] = tokens[side][:3]
    with pytest.raises(ShapeError, match=f"`{side}` does not fit"):
        Alignment(np.eye(5), **tokens)


def test_the_transpose_is_recommended_only_where_it_would_sum_to_one():
    turned = np.array([[0.9, 0.2, 0.3], [0.1, 0.8, 0.7]])
    with pytest.raises(InputError, match="pass the transpose"):
        Alignment(turned, ["a", "b"], ["c", "d", "e"])
    Alignment(turned.T, ["c", "d", "e"], ["a", "b"])
    with pytest.raises(InputError) as caught:
        Alignment(turned * 0.7, ["a", "b"], ["c", "d", "e"])
    assert "transpose" not in str(caught.value)


def test_rounded_weights_are_within_the_tolerance():
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(151), size=3)
    Alignment(weights.round(4), ["t"] * 3, ["s"] * 151)


def test_json_gives_back_every_bit_and_every_token():
    weights = np.random.default_rng(1).dirichlet(np.ones(7), size=5)
    before = made(
        weights, target=["中", "שלום", '"', "\n", ""], made_by={"seed": 3, "model": "x"}
    )
    after = Alignment.from_json(before.to_json())
    assert after == before
    assert np.array_equal(after.weights, weights)
    assert hash(after) == hash(before)


def test_alignments_that_differ_anywhere_are_not_equal():
    assert made() != made(source=[*SOURCE[:-1], "?"])
    assert made() != made(made_by={"seed": 1})
    assert made() != made(one_hot([0, 1, 2, 3, 4], 7))
    assert made() != "an alignment"


def test_made_by_is_optional_in_a_dict_and_unknown_keys_are_passed_over():
    data = {"weights": even().tolist(), "target": TARGET, "source": SOURCE, "length": 20}
    assert Alignment.from_dict(data) == made()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "target and source and weights missing"),
        ('{"target": [], "source": []}', "weights missing"),
        ("7", "got       int without keys"),
    ],
)
def test_text_that_is_no_alignment_is_refused(text, words):
    with pytest.raises(InputError) as caught:
        Alignment.from_json(text)
    assert words in str(caught.value)


def test_made_by_must_go_into_json():
    with pytest.raises(InputError, match="`made_by` does not go into JSON"):
        made(made_by={"model": object()}).to_json()


@given(st.recursive(st.none() | st.floats() | st.text(max_size=3), st.lists, max_leaves=12))
def test_any_json_weights_are_an_alignment_or_one_of_our_errors(weights):
    text = json.dumps({"weights": weights, "target": ["a", "b"], "source": ["c", "d"]})
    with contextlib.suppress(RegardError):
        assert Alignment.from_json(text).weights.shape == (2, 2)


def test_the_module_needs_no_plotting_library():
    import subprocess
    import sys

    code = (
        "import sys, regard.alignment\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules), 'imported too much'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("weights", "kind", "said"),
    [
        (np.array([[1 + 2j, 0]]), BackendError, "elements of type complex128"),
        ([["1", "0"]], BackendError, "elements of type <U1"),
        (np.array([["2020-01-01", "2020-01-02"]], "M8[D]"), BackendError, "datetime64"),
        ([[10**400, 0]], BackendError, "no array of numbers"),
        ([[1e308, 1e308]], InputError, "sums to inf"),
    ],
)
def test_what_numpy_would_quietly_read_as_numbers_is_refused(weights, kind, said):
    with pytest.raises(kind, match=said):
        Alignment(weights, ["a"], ["x", "y"])
    with pytest.raises(kind, match=said):
        Record(weights, ["a"], ["x", "y"])
