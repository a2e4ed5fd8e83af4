import dataclasses

import pytest

from regard.errors import InputError, ShapeError
from regard.nn.recurrence import CELLS
from regard.seq2seq.architecture import ATTENTIONS, ModelConfig

# As the first version wrote it.
OLD = {
    "source_symbols": 17,
    "target_symbols": 19,
    "attention": "general",
    "d_in": 5,
    "d_hidden": 7,
    "d_s": 11,
    "d_attn": 13,
    "d_readout": 0,
    "bidirectional": True,
    "layers": 1,
    "dropout": 0.25,
    "v_scale": 4.0,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attention", "luong"),
        ("source_symbols", 4),
        ("target_symbols", 0),
        ("d_in", 0),
        ("d_s", -3),
        ("layers", 0),
        ("decoder_layers", 0),
        ("d_readout", -1),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("v_scale", 0.0),
        ("v_scale", float("nan")),
        ("cell", "rnn"),
    ],
)
def test_a_value_outside_its_range_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"`{name}` is refused"):
        dataclasses.replace(ModelConfig(17, 19), **{name: value})


@pytest.mark.parametrize(
    ("attention", "name", "value"),
    [
        ("local-m", "reach", 0.0),
        ("local-p", "reach", float("inf")),
        ("local-p", "score", "additive"),
        ("location", "filters", 0),
        ("location", "filter_width", 4),
        ("location", "filter_width", -1),
    ],
)
def test_a_particular_entry_outside_its_range_is_refused_by_name(attention, name, value):
    with pytest.raises(InputError, match=f"`{name}` is refused"):
        ModelConfig(17, 19, attention=attention, **{name: value})


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize(
    ("name", "value", "homes"),
    [
        ("input_feeding", True, ("dot", "general", "concat")),
        ("score", "general", ("local-m", "local-p")),
        ("reach", 3.0, ("local-m", "local-p")),
        ("filters", 3, ("location",)),
        ("filter_width", 3, ("location",)),
    ],
)
def test_an_entry_is_refused_where_it_says_nothing(attention, name, value, homes):
    if attention in homes:
        assert getattr(ModelConfig(17, 19, attention=attention, **{name: value}), name) == value
        return
    with pytest.raises(InputError) as caught:
        ModelConfig(17, 19, attention=attention, **{name: value})
    text = str(caught.value)
    assert text.startswith(f"ModelConfig(): `{name}` is refused")
    assert f"attention={attention!r}" in text
    assert all(home in text.splitlines()[-1] for home in homes)


def test_no_input_feeding_may_be_said_where_there_is_none():
    assert ModelConfig(17, 19, input_feeding=False) == ModelConfig(17, 19)


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_that_a_decoder_takes_may_be_asked_for(cell):
    assert ModelConfig(17, 19, cell=cell).cell == cell


@pytest.mark.parametrize(
    ("name", "value"),
    [("cell", "lstm"), ("decoder_layers", 2), ("bidirectional", False), ("tied", True)],
)
def test_the_papers_own_decoder_is_refused_what_the_paper_has_not(name, value):
    paper = ModelConfig(17, 19, attention="bahdanau-paper")
    with pytest.raises(InputError, match=f"`{name}` is refused"):
        dataclasses.replace(paper, **{name: value})


def test_the_papers_maxout_layer_has_half_the_state_unless_told_otherwise():
    assert ModelConfig(17, 19, attention="bahdanau-paper", d_s=22).d_readout == 11
    assert ModelConfig(17, 19, attention="bahdanau-paper", d_readout=7).d_readout == 7


def test_a_tied_output_layer_needs_a_readout_of_the_embeddings_size():
    with pytest.raises(InputError) as caught:
        ModelConfig(17, 19, d_in=5, d_readout=7, tied=True)
    assert "d_readout = d_in = 5" in str(caught.value)
    assert ModelConfig(17, 19, d_in=5, d_readout=5, tied=True).tied


def test_dot_attention_refuses_states_of_two_sizes_and_says_what_fits():
    with pytest.raises(ShapeError) as caught:
        ModelConfig(17, 19, attention="dot", d_hidden=7, d_s=11)
    assert str(caught.value) == (
        "ModelConfig(): `d_s` does not fit `d_h`, which dot attention needs\n"
        "  expected  d_s = d_h = 14\n"
        "  got       d_s = 11\n"
        "  because   d_h = 14 comes from d_hidden = 7 in two directions\n"
        '  help      set d_s to 14, or use attention="general"'
    )
    with pytest.raises(ShapeError, match='set d_s to 14, or use score="general"'):
        ModelConfig(17, 19, attention="local-p", score="dot", d_hidden=7, d_s=11)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_json_form_gives_the_same_configuration_back(attention):
    sizes = ModelConfig(17, 19, attention=attention, dropout=0.25, d_hidden=96, d_s=192)
    assert ModelConfig.from_json(sizes.to_json()) == sizes


def test_a_form_of_the_first_version_describes_the_model_that_it_described():
    config = ModelConfig.from_json(OLD)
    assert {name: getattr(config, name) for name in OLD} == OLD
    assert (config.cell, config.decoder_layers, config.input_feeding) == ("gru", 1, False)
    assert config.to_json() == OLD


def test_an_option_that_is_used_stands_in_the_form_whatever_is_usual_later():
    form = ModelConfig(17, 19, attention="local-p", cell="lstm").to_json()
    assert {key: form[key] for key in form if key not in OLD} == {
        "cell": "lstm",
        "score": "general",
        "reach": 10.0,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"d_s": "11"},
        {"d_s": True},
        {"d_s": 11.0},
        {"d_s": None},
        {"bidirectional": 1},
        {"cell": None},
        {"reach": "3"},
        {"tied": None},
        {"input_feeding": 0},
        {"more": 1},
        None,
    ],
)
def test_a_form_that_is_no_configuration_is_refused(change):
    form = ModelConfig(17, 19, attention="local-m", d_readout=5).to_json()
    with pytest.raises(InputError, match="ModelConfig"):
        ModelConfig.from_json(None if change is None else {**form, **change})


@pytest.mark.parametrize("name", OLD)
def test_a_form_that_lacks_an_entry_of_the_first_version_is_refused(name):
    with pytest.raises(InputError, match="`form` is refused"):
        ModelConfig.from_json({key: value for key, value in OLD.items() if key != name})
