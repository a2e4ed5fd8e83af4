import json

import pytest

from regard.cli.main import run

ASKED = ("bench", "tasks", "--task", "copy", "--seeds", "1", "--jobs", "1", "--clock", "cpu")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A bench of one run, which two models share a second for."""
    out = tmp_path_factory.mktemp("bench") / "out"
    assert run([*ASKED, "--seconds", "1", "--members", "2", "--out", str(out)]) == 0
    return out


def test_the_number_of_models_can_be_asked_for(done):
    report = json.loads((done / "tasks.json").read_text(encoding="utf-8"))
    (result,) = report["results"]
    assert result["budget"] == {"seconds": 1.0, "clock": "cpu", "members": 2, "cores": 1}
    assert [member["seed"] for member in result["members"]] == [0, 1]
    budgets = {member["settings"]["train"]["time_budget"] for member in result["members"]}
    assert budgets == {0.5}
    assert "--members 2" in report["command"]
    assert str(done) not in report["command"]


def test_a_bench_that_is_done_says_so_and_gives_the_table_again(done, capsys):
    assert run([*ASKED, "--seconds", "1", "--members", "2", "--out", str(done)]) == 0
    captured = capsys.readouterr()
    assert "1 of 1 runs were done before" in captured.err
    assert "one seed, 1 s of CPU time a core on one core, 2 models" in captured.out
    assert "no published result on this data is known" in captured.out


def test_another_number_of_models_is_another_bench(done, capsys):
    assert run([*ASKED, "--seconds", "1", "--out", str(done)]) == 2
    assert "copy-seed0 was done with another budget" in capsys.readouterr().err


def test_a_file_for_a_directory_is_refused_before_anything_is_done(tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("mine", encoding="utf-8")
    assert run([*ASKED, "--out", str(path)]) == 2
    assert "this is a file" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "mine"
