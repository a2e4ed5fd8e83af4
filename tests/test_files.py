import json
import os
import stat
from pathlib import Path

import pytest

from regard.errors import InputError
from regard.files import read_json, replacing, write_atomically, write_json
from regard.seq2seq import files
from regard.seq2seq.claim import claim_directory


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a.bin"
    for data in (b"old", b"new"):
        write_atomically(path, data)
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_new_file_has_the_rights_that_any_file_gets(tmp_path):
    write_atomically(tmp_path / "ours", b"x")
    (tmp_path / "any").write_bytes(b"x")
    rights = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "any")}
    assert len(rights) == 1


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_failure_half_way_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "a.bin"
    write_atomically(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(InputError) as caught:
        write_atomically(path, b"new")
    assert "No space left on device" in str(caught.value)
    assert "make room" in str(caught.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_json_comes_back(tmp_path):
    form = {"a": [1, 2.5, "\u00e9"], "b": None}
    write_json(tmp_path / "a.json", form)
    assert read_json(tmp_path / "a.json") == form
    assert "\u00e9" in (tmp_path / "a.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_damaged_json_file_is_refused_by_name(tmp_path, data):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"config.json: the file is damaged"):
        read_json(path)


def test_a_missing_json_file_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"vocab.json: there is no such file"):
        read_json(tmp_path / "vocab.json")


def test_a_new_directory_is_made_with_those_above_it(tmp_path):
    claim_directory(tmp_path / "a" / "b", names=["x"])
    assert os.listdir(tmp_path / "a" / "b") == []


def test_a_directory_with_content_is_refused_and_left_alone(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(InputError, match=r"not empty(.|\n)*--resume(.|\n)*--force"):
        claim_directory(tmp_path, names=["x"], is_ours=lambda path: True)
    for force in (False, True):
        with pytest.raises(InputError, match=r"not empty(.|\n)*choose another --out"):
            claim_directory(tmp_path, names=["x"], force=force)
    assert (tmp_path / "x").read_text() == "mine"


def test_force_removes_our_files_and_no_others(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).write_text(name)
    claim_directory(tmp_path, names=["x", "z"], is_ours=lambda path: True, force=True)
    assert os.listdir(tmp_path) == ["y"]


def test_resuming_keeps_everything(tmp_path):
    (tmp_path / "x").write_text("mine")
    claim_directory(tmp_path, names=["x"], resume=True)
    claim_directory(tmp_path, names=["x"], resume=True, force=True)
    assert json.dumps(os.listdir(tmp_path)) == '["x"]'


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "x").write_text("mine")
    for path in (tmp_path / "x", tmp_path / "x" / "below"):
        with pytest.raises(InputError, match="this is a file"):
            claim_directory(path, names=[])


def test_a_place_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    # Root may write anywhere, so the refusal is made here.
    monkeypatch.setattr(files.tempfile, "mkstemp", denied)
    with pytest.raises(InputError, match=r"cannot be written(.|\n)*Permission denied"):
        claim_directory(tmp_path, names=[])
    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(InputError, match=r"cannot be written(.|\n)*Permission denied"):
        claim_directory(tmp_path / "new", names=[])


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that refuses")
def test_a_file_system_that_refuses_is_refused():
    with pytest.raises(InputError, match="/proc"):
        claim_directory(Path("/proc/regard"), names=[])


def test_what_a_killed_process_left_is_removed_and_in_nobody_s_way(tmp_path):
    for name in (".x.abcd_123", "..room.abcd_123", ".room"):
        (tmp_path / name).write_text("half")
    claim_directory(tmp_path, names=["x"])
    assert os.listdir(tmp_path) == []
    (tmp_path / ".y.abcd_123").write_text("another program's")
    with pytest.raises(InputError, match="not empty"):
        claim_directory(tmp_path, names=["x"])
    assert os.listdir(tmp_path) == [".y.abcd_123"]


def test_what_the_block_raises_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as stream:
        stream.write(bytes(1 // stream.write(b"")))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_file_without_the_right_to_read_it_is_not_called_damaged(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    # Root may read anything, so the refusal is made here.
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(InputError, match=r"cannot be read(.|\n)*permission denied") as caught:
        read_json(tmp_path / "config.json")
    assert "damaged" not in str(caught.value)
