"""What was answered: counted, joined, saved, and refused where it is something else."""

import json

import pytest

from regard.errors import InputError
from regard.learn.quiz.progress import Progress, place


def test_answers_are_counted_and_known_by_the_last():
    found = Progress()
    for right in (True, False):
        found.note("one", right)
    assert found.answers == {"one": {"right": 1, "wrong": 1, "last": "wrong"}}
    assert not found.known("one")
    assert not found.known("other")
    found.note("one", True)
    assert found.known("one")


def test_it_comes_back_from_its_file_and_joining_twice_is_joining_once(tmp_path):
    mine, other = Progress(), Progress()
    mine.note("a", True)
    other.note("a", False)
    other.note("a", False)
    other.note("b", True)
    path = tmp_path / "deep" / "quiz.json"
    other.save(path)
    read = Progress.load(path)
    assert read == other
    once = mine.joined(read)
    assert once.answers == {
        "a": {"right": 0, "wrong": 2, "last": "wrong"},
        "b": {"right": 1, "wrong": 0, "last": "right"},
    }
    assert once.joined(read) == once
    assert mine.answers == {"a": {"right": 1, "wrong": 0, "last": "right"}}


def test_a_file_that_is_not_there_is_empty(tmp_path):
    assert Progress.load(tmp_path / "none.json") == Progress()


GOOD = {"format": "regard quiz", "version": 1, "answers": {}}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "cannot be read"),
        ("[]", "another file"),
        (json.dumps({**GOOD, "format": "x"}), "another file"),
        (json.dumps({**GOOD, "version": 2}), "version 2"),
        (json.dumps({**GOOD, "answers": [1]}), "no answers"),
        (
            json.dumps({**GOOD, "answers": {"q": {"right": -1, "wrong": 0, "last": "right"}}}),
            "q",
        ),
        (json.dumps({**GOOD, "answers": {"q": {"right": 1, "wrong": 0, "last": "?"}}}), "q"),
        (json.dumps({**GOOD, "answers": {"q": 3}}), "q: 3"),
    ],
)
def test_another_file_is_refused_and_stays(tmp_path, content, told):
    path = tmp_path / "quiz.json"
    path.write_text(content)
    with pytest.raises(InputError, match=told):
        Progress.load(path)
    assert path.read_text() == content


def test_its_place_is_where_the_system_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert place() == tmp_path / "regard" / "quiz.json"
