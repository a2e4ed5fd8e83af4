import pytest
import torch
from safetensors.torch import save_file

from regard.errors import InputError
from regard.seq2seq.tensors import load_tensors, save_tensors

TENSORS = {
    "a": torch.arange(15.0).reshape(3, 5),
    "b.c": torch.tensor(7),
    "e": torch.zeros(0, 2),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors(path, TENSORS, {"step": 3, "name": "\u00e9"})
    return path


def test_tensors_and_information_come_back(path):
    tensors, info = load_tensors(path)
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert info == {"step": 3, "name": "\u00e9"}


def test_a_tensor_that_is_no_block_in_memory_is_saved_as_it_looks(tmp_path):
    save_tensors(tmp_path / "t", {"a": TENSORS["a"].t()}, {})
    assert torch.equal(load_tensors(tmp_path / "t")[0]["a"], TENSORS["a"].t())


def test_a_file_cut_anywhere_is_refused(path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 17), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"model.safetensors: the file is damaged"):
            load_tensors(path)


def test_a_changed_byte_anywhere_is_refused(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError, match="damaged"):
            load_tensors(path)


def test_added_bytes_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(InputError, match="damaged"):
        load_tensors(path)


def test_another_programs_file_is_refused(path):
    save_file(TENSORS, path)
    with pytest.raises(InputError, match="check sum"):
        load_tensors(path)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    (tmp_path / "directory").mkdir()
    for name, said in (("nothing", "no such file"), ("directory", "this is a directory")):
        with pytest.raises(InputError, match=said):
            load_tensors(tmp_path / name)
