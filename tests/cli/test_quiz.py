import io
import json

import pytest

from regard.cli.main import run
from regard.learn.quiz import bank
from regard.learn.quiz.progress import Progress


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "regard" / "quiz.json"


def ask(monkeypatch, *arguments, answers):
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    return run(["learn", "quiz", *arguments])


def test_answers_are_judged_explained_and_kept(monkeypatch, capsys, home):
    assert ask(monkeypatch, "masks", "--count", "3", "--seed", "5", answers="a\nx\nb\nc\n") == 0
    told = capsys.readouterr().out
    assert "'x' is none of" in told
    assert told.count("Right.") + told.count("No: ") == 3
    right = told.count("Right.")
    assert told.endswith(f"\n{right} of 3 right\n")
    kept = Progress.load(home)
    assert len(kept.answers) == 3
    assert sum(said["right"] for said in kept.answers.values()) == right
    assert set(kept.answers) <= set(bank.names("masks"))


def test_what_is_not_known_comes_first(monkeypatch, capsys, home):
    kept = Progress()
    unknown = bank.names("masks")[3]
    for name in bank.names("masks"):
        kept.note(name, name != unknown)
    kept.save(home)
    assert ask(monkeypatch, "masks", "--count", "1", answers="q\n") == 0
    asked = capsys.readouterr().out
    makes = {bank.question(unknown, seed).text[:25] for seed in range(29)}
    assert any(text in asked for text in makes)
    assert asked.endswith("0 of 0 right\n")


def test_the_end_of_stdin_ends_the_quiz(monkeypatch, capsys):
    assert ask(monkeypatch, "--seed", "1", answers="a\n") == 0
    assert capsys.readouterr().out.endswith("of 1 right\n")


def test_progress_is_exported_imported_shown_and_forgotten(capsys, home, tmp_path):
    mine = Progress()
    mine.note("masks-true", True)
    mine.save(tmp_path / "mine.json")
    assert run(["learn", "quiz", "--import", str(tmp_path / "mine.json")]) == 0
    assert Progress.load(home) == mine
    assert run(["learn", "quiz", "--export", str(tmp_path / "out.json")]) == 0
    assert Progress.load(tmp_path / "out.json") == mine
    capsys.readouterr()
    assert run(["learn", "quiz", "--progress"]) == 0
    (line,) = [row for row in capsys.readouterr().out.splitlines() if " masks " in row]
    assert line.split()[-3:] == ["1", "of", str(len(bank.names("masks")))]
    assert run(["learn", "quiz", "--forget"]) == 0
    assert Progress.load(home) == Progress()


def test_questions_are_listed_with_their_answers(capsys):
    assert run(["learn", "quiz", "luong", "--list", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == bank.names("luong")
    assert run(["learn", "quiz", "luong", "--list"]) == 0
    assert found[0]["because"] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "names no lesson"),
        (["--import", "missing.json"], "missing.json is not there"),
        (["--count", "0"], "from 1 to 1,000"),
    ],
)
def test_bad_arguments_get_one_message(arguments, told, capsys):
    assert run(["learn", "quiz", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert "Traceback" not in err


def test_a_progress_file_that_is_damaged_is_told_and_stays(capsys, home):
    home.parent.mkdir(parents=True)
    home.write_text("{torn")
    assert run(["learn", "quiz", "--progress"]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert home.read_text() == "{torn"
