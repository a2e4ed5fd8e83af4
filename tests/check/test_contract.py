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
