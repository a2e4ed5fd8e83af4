"""Inputs whose examples, padding and features can be told apart."""

import numpy as np
import pytest

from regard.check.contract import Contract
from regard.check.probe import Probe
from regard.check.sizes import Sizes


def probe(**form: object) -> Probe:
    return Probe(Contract.from_mapping(form), Sizes())


@pytest.mark.parametrize(
    ("kind", "truth"),
    [
        ("keep", lambda m: m),
        ("drop", lambda m: ~m),
        ("keep_int", lambda m: m == 1),
        ("drop_int", lambda m: m == 0),
        ("keep_uint8", lambda m: m == 1),
        ("keep_float01", lambda m: m == 1.0),
        ("drop_float01", lambda m: m == 0.0),
    ],
)
def test_every_form_of_a_mask_says_the_same(kind: str, truth: object) -> None:
    made = probe(inputs={"x": "batch T_enc d_h", "m": "batch 1 T_enc"}, kinds={"m": kind})
    real = truth(made.args["m"])[:, 0]  # type: ignore[operator]
    np.testing.assert_array_equal(real, made.masks["m"].real)
    assert real[1].all()
    assert len({int(row.sum()) for row in real}) == 3


def test_padding_comes_first_where_that_is_declared() -> None:
    made = probe(inputs={"m": "batch T_enc"}, kinds={"m": "keep"}, padding="left")
    assert made.args["m"][0].tolist() == [False] * 2 + [True] * 5


def test_lengths_and_token_lists_agree_with_their_masks() -> None:
    made = probe(
        inputs={"x": "batch T_enc d_h", "n": "batch", "ids": "batch T_enc"},
        kinds={"n": "lengths", "ids": "token_lists"},
    )
    np.testing.assert_array_equal(made.args["n"], made.masks["n"].real.sum(-1))
    assert [len(row) for row in made.args["ids"]] == made.masks["ids"].real.sum(-1).tolist()


def test_padded_ids_are_zero_and_no_real_one_is() -> None:
    made = probe(inputs={"ids": "batch T"}, kinds={"ids": "token_ids_pad0"})
    np.testing.assert_array_equal(made.args["ids"] != 0, made.masks["ids"].real)


def test_rows_of_zeros_are_the_padding_of_a_zero_padded_input() -> None:
    made = probe(inputs={"x": "batch T_enc d_h"}, kinds={"x": "zero_padded"})
    np.testing.assert_array_equal((made.args["x"] != 0).any(-1), made.masks["x"].real)


def test_an_additive_mask_of_a_causal_layer_forbids_what_comes_later() -> None:
    made = probe(inputs={"b": "1 1 T T"}, kinds={"b": "additive"}, causal="top_left")
    np.testing.assert_array_equal(made.args["b"][0, 0] == 0, np.tri(13, dtype=bool))


def test_learned_arrays_are_known_by_their_axes() -> None:
    made = probe(inputs={"x": "batch T_enc d_h", "W": "d_attn d_h", "v": "d_attn"})
    assert [n for n in made.args if made.is_parameter(n)] == ["W", "v"]


def test_values_that_are_lists_take_each_value_in_turn() -> None:
    contract = Contract.from_mapping(
        {"inputs": {"x": "batch d_h", "offset": ""}, "values": {"offset": [0, "d_h"]}}
    )
    assert [Probe(contract, Sizes(), choice=i).args["offset"] for i in (0, 1)] == [0, 38]


def test_another_seed_changes_the_numbers_and_keeps_the_masks() -> None:
    contract = Contract.from_mapping(
        {"inputs": {"x": "batch T_enc d_h", "m": "batch T_enc"}, "kinds": {"m": "keep"}}
    )
    one, other = (Probe(contract, Sizes(), seed=s) for s in (0, 1))
    assert not np.allclose(one.args["x"], other.args["x"])
    np.testing.assert_array_equal(one.args["m"], other.args["m"])
