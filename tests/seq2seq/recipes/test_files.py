import io
import tarfile

import pytest

from regard.errors import InputError
from regard.seq2seq.recipes.files import located

NAMES = ("xx_train.tsv", "xx_dev.tsv")
SAID = {"what": "A data set", "home": "the shelf"}


def _archive(path, members) -> None:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w:xz") as opened:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            opened.addfile(info, io.BytesIO(text))


@pytest.mark.parametrize("place", [".", "data/train"])
def test_files_are_found_wherever_they_lie_in_the_directory(tmp_path, place):
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (tmp_path / place / name).write_text(name)
    with located(tmp_path, NAMES, **SAID) as paths:
        assert {name: path.read_text() for name, path in paths.items()} == {
            name: name for name in NAMES
        }


@pytest.mark.parametrize("name", ["data.tar.xz", "data.tar.gz"])
def test_an_archive_is_read_in_place_or_named_itself(tmp_path, name):
    _archive(tmp_path / name, {f"sig/{n}": n.encode() for n in (*NAMES, "other.tsv")})
    for given in (tmp_path, tmp_path / name):
        with located(given, NAMES, **SAID) as paths:
            assert [paths[n].read_text() for n in NAMES] == list(NAMES)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_member_cannot_write_outside(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    _archive(inside / "data.tgz", {f"../../{name}": b"x" for name in NAMES})
    with located(inside, NAMES, **SAID) as paths:
        assert not any(path.is_relative_to(tmp_path) for path in paths.values())
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def _refusal(data_dir) -> str:
    with pytest.raises(InputError) as refused, located(data_dir, NAMES, **SAID):
        pass
    return str(refused.value)


def test_without_a_directory_the_error_says_what_to_get_from_where():
    said = _refusal(None)
    assert "--data-dir" in said
    assert "the shelf" in said
    assert all(name in said for name in NAMES)


def test_a_missing_file_is_named(tmp_path):
    (tmp_path / NAMES[0]).write_text("x")
    assert _refusal(tmp_path).startswith(f"{tmp_path}: {NAMES[1]} is not there")


def test_two_files_of_one_name_are_not_chosen_between(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        for name in NAMES:
            (tmp_path / place / name).write_text("x")
    said = _refusal(tmp_path)
    assert "there 2 times" in said
    assert f"a/{NAMES[0]}, b/{NAMES[0]}" in said


def test_a_hint_tells_two_years_of_one_name_apart(tmp_path):
    for year in ("2020", "2021"):
        _archive(tmp_path / f"task-{year}.tar.xz", {f"d/{n}": year.encode() for n in NAMES})
    with located(tmp_path, NAMES, **SAID, hint="2021") as paths:
        assert {path.read_text() for path in paths.values()} == {"2021"}
    with (
        pytest.raises(InputError, match="there 2 times"),
        located(tmp_path, NAMES, **SAID, hint="2019"),
    ):
        pass


def test_what_is_no_directory_is_refused(tmp_path):
    (tmp_path / "file.tsv").write_text("x")
    assert "neither a directory nor" in _refusal(tmp_path / "file.tsv")
    assert "nothing there" in _refusal(tmp_path / "absent")


def test_a_damaged_archive_is_an_error_of_its_own(tmp_path):
    (tmp_path / "data.tar.xz").write_bytes(b"no archive")
    assert "the archive cannot be read" in _refusal(tmp_path)
