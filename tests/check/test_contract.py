"""The contract's form: what is read, and what is refused with a name."""

import json

import pytest

from regard.check.contract import Contract, read_contract
from regard.errors import InputError

FORM = {
    "target": "layer.py:Layer",
    "init": {"width": "d_model", "n_heads": "heads"},
    "inputs": {"x": "batch T d_model", "keep": "batch T"},
    "kinds": {"keep": "keep"},
    "returns": [
        {"name": "out", "axes": "batch T d_model"},
        {"name": "weights", "axes": "batch heads T T"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "scaled_dot",
    "causal": False,
    "sizes": {"d_head": 6},
}


def test_the_json_form_is_read_whole() -> None:
    contract = Contract.from_mapping(FORM)
    assert contract.axes("x") == ("batch", "T", "d_model")
    assert contract.out_axes("weights") == ("batch", "heads", "T", "T")
    assert (contract.weights, contract.sums_over) == ("weights", (-1,))
    assert (contract.causal, contract.mode, contract.dtype) == (None, "eval", "float32")
    assert contract.every_axis == ("batch", "T", "d_model", "heads")


def test_queries_and_keys_on_one_axis_are_self_attention() -> None:
    assert Contract.from_mapping(FORM).is_self_attention
    cross = Contract.from_mapping(
        {
            "inputs": {"q": "batch T_dec d_h", "k": "batch T_enc d_h"},
            "returns": [{"name": "c", "axes": "batch T_dec d_h"}],
        }
    )
    assert (cross.query_axis, cross.key_axis) == ("T_dec", "T_enc")
    assert not cross.is_self_attention


def test_a_weights_axis_that_is_an_expression_is_the_key_axis() -> None:
    contract = Contract.from_mapping(
        {
            "inputs": {"x": "batch d_h height width"},
            "returns": [{"name": "w", "axes": "batch height*width height*width"}],
            "weights": {"output": "w"},
        }
    )
    assert contract.key_axis == "height*width"


def test_causal_true_means_the_upper_left_corner() -> None:
    assert Contract.from_mapping({**FORM, "causal": True}).causal == "top_left"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inputz": {}}, "did you mean 'inputs'?"),
        ({"kinds": {"keep": "kep"}}, "did you mean 'keep'?"),
        ({"kinds": {"mask": "keep"}}, "kinds of the inputs x, keep"),
        ({"score": "scaled-dot"}, "did you mean 'scaled_dot'?"),
        ({"weights": {"output": "weight"}}, "did you mean 'weights'?"),
        ({"causal": "left"}, "causal one of top_left, bottom_right"),
        ({"window": 0}, "window: a count of keys of at least 1"),
        ({"inputs": {"x": 3}}, "inputs: a table of texts"),
        ({"returns": ["out"]}, "returns: tables"),
        ({"convention": "Bahdanau"}, "did you mean 'bahdanau'?"),
        ({"axes": {}}, "did you mean 'inputs'?"),
        ({"paper": "luong"}, "did you mean 'convention'?"),
        ({"mask": "maybe"}, "mask one of keep, drop"),
        ({"scale": "1/0"}, "`scale` of contract.json is refused"),
        ({"scale": "__import__('os')"}, "`scale` of contract.json is refused"),
        ({"scale": "0*d_head"}, "a number that is not 0"),
        ({"scale": "9**9**9**9"}, "the power is too large"),
        ({"init": {"width": "open('x')"}}, "`init.width` of contract.json is refused"),
        ({"init": {"config": {"width": "1/0"}}}, "`init.config` of contract.json is refused"),
        ({"values": {"step": [1, "heads%2"]}}, "`values.step` of contract.json is refused"),
        ({"inputs": {"x": "batch,T", "keep": "T"}}, "spaces between axes"),
        ({"inputs": {"x": "T-T", "keep": "T"}}, "whole numbers of at least 1"),
        ({"inputs": {"x": "T/2", "keep": "T"}}, "whole numbers of at least 1"),
        ({"returns": [{"name": "weights", "axes": "a,b"}]}, "`returns.weights`"),
        ({"sizes": {"d_head": 0}}, "`sizes.d_head` of contract.json is refused"),
        ({"sizes": {"d_head": "7"}}, "a whole number of at least 1"),
        ({"sizes": [7]}, "a table of whole numbers"),
        ({"weights": {"output": "weights", "sums_to_one_over": 4}}, "of the 4 axes"),
    ],
)
def test_what_is_unknown_is_named(change: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as error:
        Contract.from_mapping({**FORM, **change}, "contract.json")
    assert said in str(error.value)
    assert "contract.json" in str(error.value)


def test_a_file_is_read_by_its_suffix(tmp_path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(FORM))
    (tmp_path / "a.toml").write_text('score = "dot"\n[inputs]\nq = "batch d_h"\n')
    assert read_contract(tmp_path / "a.json").score == "scaled_dot"
    assert read_contract(tmp_path / "a.toml").score == "dot"


@pytest.mark.parametrize("text", ["{", "[1]", '"text"'])
def test_a_file_that_is_no_table_is_refused(tmp_path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=r"a\.json"):
        read_contract(tmp_path / "a.json")


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json"):
        read_contract(tmp_path / "nowhere.json")


def test_free_names_and_a_learned_scale_have_values() -> None:
    form = {**FORM, "scale": "learned", "inputs": {"x": "batch T mine+2", "keep": "batch T"}}
    assert Contract.from_mapping(form).scale == "learned"
    assert Contract.from_mapping({**form, "scale": "1/sqrt(mine)"}).scale == "1/sqrt(mine)"


def test_the_alignment_may_be_one_of_results_that_are_guessed_later() -> None:
    contract = Contract.from_mapping({"weights": {"output": "later"}})
    assert (contract.weights, contract.key_axis) == ("later", None)


def test_what_is_meant_otherwise_than_usual_is_said_by_true() -> None:
    assert Contract.from_mapping({**FORM, "random": True}).random
    assert not Contract.from_mapping({**FORM, "reweighted": None}).reweighted
    assert Contract.from_mapping({**FORM, "sparse": True}).sparse
    with pytest.raises(InputError, match="random: true or false"):
        Contract.from_mapping({**FORM, "random": "weights"})
