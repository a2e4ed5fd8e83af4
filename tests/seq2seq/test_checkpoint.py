import dataclasses
import json
import shutil

import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.checkpoint import (
    FILES,
    Description,
    load_description,
    load_model,
    load_training,
    save_description,
    save_training,
    save_weights,
)
from regard.seq2seq.events import TrainingState
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.tensors import load_tensors, save_tensors
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import Vocab

SOURCE = Vocab.of(["abcdefg"], kind="chars")
TARGET = Vocab.of(["K L M"], kind="spaces")
SIZES = ModelConfig(len(SOURCE), len(TARGET), d_in=5, d_hidden=7, d_s=11, d_attn=13)
DESCRIPTION = Description(
    SIZES, SOURCE, TARGET, 23, 29, {"command": "regard train x", "seed": 3}
)


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    save_description(path, DESCRIPTION)
    save_weights(path, DESCRIPTION, new_model(SIZES, seed=3).state_dict())
    save_training(path, TrainingState({"model.a": torch.arange(5.0)}, {"step": 7}))
    return path


def test_a_model_comes_back_with_what_made_it(directory):
    model, description = load_model(directory)
    assert description == DESCRIPTION
    wanted = new_model(SIZES, seed=3).state_dict()
    found = model.state_dict()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert not model.training
    assert sorted(path.name for path in directory.iterdir()) == sorted({*FILES} - {"log.csv"})


def test_the_state_of_a_run_comes_back_and_can_be_read_by_people(directory):
    state = load_training(directory)
    assert state.info == {"step": 7}
    assert torch.equal(state.tensors["model.a"], torch.arange(5.0))
    assert json.loads((directory / "training.json").read_text()) == {"step": 7}


def test_no_file_needs_pickle(directory):
    for path in directory.iterdir():
        # Pickles begin with their protocol, zip archives of torch.save with PK.
        assert path.read_bytes()[:2] not in (b"\x80\x02", b"\x80\x04", b"PK"), path


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "model.safetensors"])
def test_a_missing_file_is_named(directory, name):
    (directory / name).unlink()
    with pytest.raises(InputError) as caught:
        load_model(directory)
    assert str(directory / name) in str(caught.value)
    assert "help" in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "model.safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_short_is_named(directory, name, share):
    path = directory / name
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * (len(whole) - 2))])
    with pytest.raises(InputError) as caught:
        load_model(directory)
    assert str(path) in str(caught.value)
    assert "damaged" in str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_training_state_that_is_cut_short_is_named(directory, share):
    path = directory / "training.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match=r"training.safetensors: the file is damaged"):
        load_training(directory)


def _rewrite(directory, change):
    path = directory / "model.safetensors"
    tensors, info = load_tensors(path)
    change(tensors)
    save_tensors(path, tensors, info)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_finite_numbers_are_refused_by_name(directory, value):
    def poison(tensors):
        tensors["readout.bias"][2:4] = value

    _rewrite(directory, poison)
    with pytest.raises(InputError) as caught:
        load_model(directory)
    text = str(caught.value)
    assert "model.safetensors: `readout.bias`" in text
    assert f"2 of {len(TARGET)} NaN or infinite" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("readout.bias"), "`readout.bias` is missing"),
        (lambda t: t.update(more=torch.zeros(3)), "`more` is too many"),
        (lambda t: t.update({"readout.bias": torch.zeros(3)}), "wrong shape"),
        (lambda t: t.update({"readout.bias": t["readout.bias"].double()}), "number type"),
    ],
)
def test_weights_of_another_shape_are_refused_by_name(directory, change, said):
    _rewrite(directory, change)
    with pytest.raises(InputError, match=said):
        load_model(directory)


def test_weights_of_another_run_are_refused(directory, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(directory, other)
    made_by = {**DESCRIPTION.made_by, "seed": 4}
    save_description(other, dataclasses.replace(DESCRIPTION, made_by=made_by))
    with pytest.raises(InputError, match=r"belong to another config.json"):
        load_model(other)


def _edit(directory, name, **changes):
    path = directory / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("config.json", {"format": 2, "regard": "9.9"}, "another format(.|\n)*regard 9.9"),
        ("config.json", {"model": {}}, "config.json: ModelConfig"),
        ("config.json", {"model": {**SIZES.to_json(), "d_s": -3}}, "`d_s` is refused"),
        ("config.json", {"model": {**SIZES.to_json(), "source_symbols": 12}}, "does not fit"),
        ("config.json", {"made_by": None}, "`made_by` of type dict"),
        ("config.json", {"longest_source": 0}, "longest source"),
        ("config.json", {"longest_target": "9"}, "`longest_target` of type int"),
        ("vocab.json", {"more": 1}, "not a file of a regard model"),
        ("vocab.json", {"source": {}}, "vocab.json: Vocab.from_json"),
        ("vocab.json", {"target": SOURCE.to_json()}, "target vocabulary does not fit"),
    ],
)
def test_a_description_that_does_not_hold_is_refused_with_its_file(
    directory, name, changes, said
):
    _edit(directory, name, **changes)
    with pytest.raises(InputError, match=said) as caught:
        load_description(directory)
    assert str(directory) in str(caught.value)


@pytest.mark.parametrize("data", ["[]", "3", "{}"])
def test_json_of_another_kind_is_refused(directory, data):
    for name in ("config.json", "vocab.json"):
        (directory / name).write_text(data)
        with pytest.raises(InputError, match="not a file of a regard model"):
            load_description(directory)


def test_a_file_or_nothing_in_place_of_the_directory_is_refused(directory):
    for path, said in (
        (directory / "config.json", "this is a file"),
        (directory / "nothing", "no such directory"),
    ):
        with pytest.raises(InputError, match=said):
            load_model(path)


def test_the_longest_answer_grows_with_the_source():
    assert DESCRIPTION.longest_answer(1) == 34
    assert DESCRIPTION.longest_answer(23) == 34
    assert DESCRIPTION.longest_answer(46) == 63


def test_the_longest_answer_is_bounded_by_a_few_times_the_source():
    tiny = dataclasses.replace(DESCRIPTION, longest_source=1, longest_target=1009)
    assert tiny.longest_answer(2003) == 1009 + 4 * 2003 + 5
