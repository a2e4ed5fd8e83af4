import os
from pathlib import Path

import pytest

from regard.check.settings import Settings, read_settings
from regard.errors import InputError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "src" / "model").mkdir(parents=True)
    (tmp_path / "src" / "decoder.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(text):
    Path("pyproject.toml").write_text(text, encoding="utf-8")


def _refused(text):
    _write(text)
    with pytest.raises(InputError) as caught:
        read_settings(".")
    return str(caught.value)


def test_every_setting_is_read_from_the_nearest_file_above(folder):
    _write(
        '[tool.regard]\ntargets = ["src/decoder.py:attend", "src", "models.core:attend"]\n'
        'select = ["RG2"]\nignore = ["all-masked-row"]\nroles = {memory = "key"}\n'
        'mask = "drop"\npaper = "luong"\n'
    )
    found = read_settings("src/model")
    assert found == Settings(
        targets=(os.path.join("src", "decoder.py") + ":attend", "src", "models.core:attend"),
        select=("RG2",),
        ignore=("all-masked-row",),
        roles={"memory": "key"},
        mask="drop",
        paper="luong",
        path=str(folder / "pyproject.toml"),
    )


def test_targets_hold_from_where_the_command_runs(monkeypatch):
    _write('[tool.regard]\ntargets = ["src/decoder.py:attend"]\n')
    monkeypatch.chdir("src/model")
    assert read_settings(".").targets == (os.path.join("..", "decoder.py") + ":attend",)


def test_a_nearer_file_hides_the_farther_one_as_a_whole():
    _write('[tool.regard]\nmask = "drop"\n')
    Path("src/pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert read_settings("src/model").mask is None


def test_no_table_and_no_file_are_no_settings(tmp_path_factory):
    assert read_settings(tmp_path_factory.mktemp("bare")) == Settings()
    _write("tool = 3\n")
    assert read_settings(".").targets == ()


def test_an_unknown_key_is_refused_with_the_nearest():
    text = _refused('[tool.regard]\nignores = ["RG205"]\n')
    assert "expected  one of targets, select, ignore, roles, mask, paper" in text
    assert "got       ignores" in text
    assert "did you mean `ignore`?" in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('mask = "true"', '"keep" or "drop"'),
        ('paper = "vaswani"', '"bahdanau" or "luong"'),
        ('select = "RG2"', "a list of texts"),
        ("ignore = [205]", "a list of texts"),
        ('targets = [""]', "a list of texts"),
        ('roles = ["key"]', "a table of texts"),
        ("roles = {memory = 1}", "a table of texts"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_its_name(line, expected):
    text = _refused(f"[tool.regard]\n{line}\n")
    assert f"`{line.partition(' ')[0]}` of [tool.regard]" in text
    assert expected in text


def test_a_file_that_is_no_toml_is_refused():
    assert "expected  TOML" in _refused("[tool.regard\n")
    assert "[tool.regard]` of" in _refused("[tool]\nregard = 3\n")
    Path("pyproject.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="TOML"):
        read_settings(".")


def test_what_is_said_of_a_target_goes_before_the_project_and_what_is_typed_before_both():
    project = Settings(mask="drop", paper="luong", roles={"memory": "key"})
    whole = {"mask": "drop", "convention": "luong", "roles": {"memory": "key"}}
    assert project.flags() == whole
    assert project.flags({"convention": None, "score": "dot"}) == whole
    assert project.flags({"mask": "keep"}) == {k: whole[k] for k in ("convention", "roles")}
    assert project.flags({"mask": "keep"}, {"mask": "drop", "score": "dot"}) == {
        **whole,
        "score": "dot",
    }
    assert Settings().flags() == {}
