import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

from regard.cli.main import run
from regard.seq2seq.checkpoint import FILES, load_model

TINY = ("--hidden", "7", "--state", "11", "--steps", "7", "--batch-tokens", "211")


def _run(*arguments) -> int:
    return run([str(argument) for argument in arguments])


def test_the_scores_go_to_stdout_and_the_command_that_repeats_it_to_stderr(
    data, tmp_path, capsys
):
    out = tmp_path / "m o"
    assert _run("train", data, "--out", out, "--test", data, *TINY) == 0
    captured = capsys.readouterr()
    assert captured.out.count("symbol error rate") == 2
    assert "held-out, the best weights were chosen on it" in captured.out
    assert "step" not in captured.out
    said = next(line for line in captured.err.splitlines() if line.startswith("made by"))
    command = shlex.split(said.removeprefix("made by"))
    again = tmp_path / "again"
    command[command.index(str(out))] = str(again)
    assert _run(*command[1:]) == 0
    assert (again / "model.safetensors").stat().st_size
    one, two = load_model(out), load_model(again)
    assert all(
        a.equal(b) for a, b in zip(one[0].parameters(), two[0].parameters(), strict=True)
    )


def test_test_sources_that_are_trained_on_are_counted(data, tmp_path, capsys):
    (tmp_path / "test.tsv").write_text("aaa\tA A A\nabd\tA B D\nzzz\tA\n")
    arguments = ("--dev", tmp_path / "test.tsv", *TINY)
    assert _run("train", data, "--out", tmp_path / "m", *arguments) == 0
    assert "2 of the 3 sources of --dev are trained on" in capsys.readouterr().err


def test_json_has_all_scores_in_one_line(data, tmp_path, capsys):
    assert _run("train", data, "--out", tmp_path / "m", "--format", "json", *TINY) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["steps"] == 7
    assert 0 <= report["dev"]["exact_match_error"] <= 1
    assert report["dev"]["examples"] == 6


def test_the_model_says_what_made_it(data, model):
    made_by = json.loads((model / "config.json").read_text())["made_by"]
    assert made_by["command"].startswith(f"regard train {data} --out {model} ")
    assert made_by["dev"]["sha256"] == made_by["train"]["sha256"]
    assert made_by["threads"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--steps", "3", "--epochs", "2"], "--steps and --epochs"),
        (["--steps", "0"], "--steps: 0 is refused"),
        (["--steps", "9" * 20], "--steps: 9"),
        (["--test", "-"], "pipes are not accepted"),
        (["--dev", ""], "--dev: the path is empty"),
        (["--dev", "."], "this is a directory"),
        (["--threads", "100000"], "--threads: 100000 is refused"),
        (["--hidden", "1000000000"], "too large for this machine"),
        (["--hidden", "1000000"], "too large for this machine"),
        (["--dropout", "1"], "--dropout: 1 is refused"),
        (["--hidden", "0"], "--hidden: 0 is refused"),
        (["--learning-rate", "-1"], "--learning-rate: -1 is refused"),
        (["--learning-rate", "nan"], "--learning-rate: nan is refused"),
        (["--batch-tokens", "0"], "--batch-tokens: 0 is refused"),
        (["--seed", "-1"], "--seed: -1 is refused"),
        (
            ["--attention", "dot", "--state", "11", "--hidden", "7"],
            "--state 14, twice --hidden",
        ),
        (["--attention", "astrology"], "astrology"),
        (["--preset", "quick"], "recipe"),
        (["--threads", "0"], "threads"),
        (["--resume", "--force"], "contradict"),
        (["--dev", "nothing.tsv"], "nothing.tsv: there is no such file"),
        (["--resume"], "there is no such directory"),
    ],
)
def test_a_setting_that_does_not_hold_is_refused(data, tmp_path, capsys, arguments, said):
    assert _run("train", data, "--out", tmp_path / "m", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert "step 1/" not in captured.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        (b"", "there is no pair"),
        (b"a\tA\nb\n", "line 2: 1 column, not 2"),
        (b"a\tA\nb\tB\tC\n", "line 2: 3 columns, not 2"),
        (b"a\tA\nb\xff\tB\n", "line 2: the text is not UTF-8"),
        (b"a\tA\n\tB\n", "line 2: the source is empty"),
        (b"a\tA\nb\0\tB\n", "line 2: a NUL byte"),
        ("a\tA\n".encode("utf-16"), "line 1: the file is UTF-16"),
        (b"a\t" + b"x" * 200_000 + b"\n", "line 1: the line is too long"),
        (b"a\tA\n", "--dev FILE names held-out pairs"),
        (b"a\tA\na\tB\n", "there is one source, and none besides to hold out"),
    ],
)
def test_bad_data_is_one_clean_message(tmp_path, capsys, content, said):
    path = tmp_path / "d.tsv"
    if content is not None:
        path.write_bytes(content)
    assert _run("train", path, "--out", tmp_path / "m") == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {path}")
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "m").exists()


def test_a_directory_in_use_is_refused_and_force_writes_over_it(data, tmp_path, capsys):
    assert _run("train", data, "--out", tmp_path, *TINY) == 0
    (tmp_path / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert _run("train", data, "--out", tmp_path, *TINY) == 2
    err = capsys.readouterr().err
    assert "not empty" in err
    assert "--force starts again over it" in err
    assert _run("train", data, "--out", tmp_path, *TINY, "--force") == 0
    assert sorted(os.listdir(tmp_path)) == sorted([*FILES, "notes.txt"])


@pytest.mark.parametrize("content", ['{"theme": "dark"}', "no JSON"])
def test_force_never_writes_over_files_of_another_kind(data, tmp_path, capsys, content):
    (tmp_path / "config.json").write_text(content)
    for flags in ([], ["--force"]):
        assert _run("train", data, "--out", tmp_path, *TINY, *flags) == 2
        err = capsys.readouterr().err
        assert "choose another --out" in err
        assert "--force starts" not in err
    assert (tmp_path / "config.json").read_text() == content
    assert os.listdir(tmp_path) == ["config.json"]


@pytest.mark.parametrize(("source", "out"), [("", "m"), ("d.tsv", ""), ("-", "m")])
def test_an_empty_path_and_a_pipe_are_refused(source, out, capsys):
    assert _run("train", source, "--out", out) == 2
    err = capsys.readouterr().err
    assert "the path is empty" in err or "pipes are not accepted" in err


def test_a_loss_that_explodes_is_warned_of(data, tmp_path, capsys):
    for rate, warned in (("1e5", True), ("0.005", False)):
        arguments = ("--out", tmp_path / rate, "--learning-rate", rate, *TINY)
        assert _run("train", data, *arguments) == 0
        assert ("warning: the loss rose" in capsys.readouterr().err) == warned


def test_a_named_recipe_refuses_what_it_sets_itself(tmp_path, capsys):
    assert _run("train", "g2p", "--out", tmp_path / "m", "--hidden", "7", "--no-nfc") == 2
    assert "--hidden, --no-nfc" in capsys.readouterr().err


def test_ctrl_c_saves_says_how_to_go_on_and_the_end_is_the_same(data, tmp_path):
    arguments = ["--hidden", "7", "--state", "11", "--steps", "200", "--batch-tokens", "53"]
    regard = [sys.executable, "-m", "regard", "train", str(data), *arguments, "--out"]
    process = subprocess.Popen(
        [*regard, str(tmp_path / "two")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    # The first line of progress shows that the steps have begun.
    first = process.stderr.readline()
    assert first.startswith("step "), first
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    step = json.loads((tmp_path / "two" / "training.json").read_text())["step"]
    assert 0 < step < 200
    assert f"stopped after step {step} of 200 and saved" in err
    command = err.split("go on with")[1].strip()
    assert _run(*shlex.split(command)[1:]) == 0
    assert _run(*regard[3:], tmp_path / "whole") == 0
    for name in ("model.safetensors", "training.safetensors"):
        whole, two = (tmp_path / run / name for run in ("whole", "two"))
        assert _tensors(whole) == _tensors(two)


def test_a_second_ctrl_c_ends_at_once_with_code_130_and_a_way_to_go_on(data, tmp_path):
    out = tmp_path / "m"
    arguments = ["--hidden", "7", "--state", "11", "--steps", "100000", "--out", str(out)]
    # The first signal comes while the second step is taken, the second one with it.
    code = (
        "import os, signal\nfrom regard.cli import main, progress\n"
        "def show(self, event):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "progress.TrainingProgress.show = show\nmain.main()\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, "train", str(data), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert found.returncode == 130, found.stderr
    said, command = found.stderr.split("go on with")
    assert said == "interrupted\n"
    command = shlex.split(command)
    assert command[-1] == "--resume"
    command[command.index("100000")] = "7"
    assert _run(*command[1:]) == 2  # another number of steps is another run
    assert sorted(os.listdir(out)) == ["config.json", "log.csv", "vocab.json"]


def test_resuming_with_other_settings_names_the_options_that_differ(data, tmp_path, capsys):
    begun = ["--hidden", "7", "--state", "11", "--batch-tokens", "211"]
    assert _run("train", data, "--out", tmp_path / "m", "--steps", "7", *begun) == 0
    capsys.readouterr()
    now = ["--steps", "5", "--dropout", "0.5", "--one-direction", "--resume"]
    assert _run("train", data, "--out", tmp_path / "m", *begun, *now) == 2
    said = capsys.readouterr().err
    rows = [line.split(maxsplit=1) for line in said.splitlines()]
    before, after = (
        rows.index(["expected", "--dropout 0.3"]),
        rows.index(["got", "--dropout 0.5"]),
    )
    told = {word for row in rows[before : before + 3] for word in " ".join(row).split()}
    assert {"--steps", "7", "no", "--one-direction"} <= told
    assert after == before + 3
    assert "warm_up" not in said
    assert "--batch-tokens 211" in said.partition("help")[2]  # the command that goes on
    assert "--resume\n" in said


def test_one_model_and_an_ensemble_do_not_take_each_others_directories(
    model, data, tmp_path, capsys
):
    several = tmp_path / "several"
    several.mkdir()
    (several / "ensemble.json").write_text('{"format": 1, "members": ["0", "1"]}')
    for out, more, said in (
        (several, ["--force"], "holds an ensemble"),
        (several, ["--resume"], "holds an ensemble"),
        (model, ["--force", "--ensemble", "2"], "holds the run of one model"),
    ):
        assert _run("train", data, "--out", out, "--steps", "3", *more) == 2
        error = capsys.readouterr().err
        assert said in error
        assert "ensemble" in error.partition("help")[2]
    assert [entry.name for entry in several.iterdir()] == ["ensemble.json"]


def test_the_commands_that_are_printed_work_for_a_name_with_a_dash_and_a_space(
    data, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-d.tsv").write_bytes(data.read_bytes())
    assert _run("train", "./-d.tsv", "--out", "-my model", *TINY) == 0
    said = capsys.readouterr().err
    made, tried = (
        shlex.split(said.partition(mark)[2].splitlines()[0]) for mark in ("made by", "try it")
    )
    assert tried[:3] == ["regard", "predict", "./-my model"]
    assert _run(*tried[1:3], "abc") == 0
    assert _run(*made[1:], "--force") == 0


def _tensors(path):
    from regard.seq2seq.tensors import load_tensors

    return {name: value.tolist() for name, value in load_tensors(path)[0].items()}


@pytest.mark.parametrize(("dropout", "hinted"), [("0.1", True), ("0", False)])
def test_few_passes_with_dropout_get_a_hint(data, tmp_path, capsys, dropout, hinted):
    given = ["train", str(data), "--out", str(tmp_path / "m"), "--target-symbols", "spaces"]
    assert run([*given, *TINY, "--dropout", dropout]) == 0
    said = capsys.readouterr().err
    assert ("compare --dropout 0" in said) == hinted
    assert "each pair read about" in said


def test_passes_are_steps_over_the_batches_of_one(data, tmp_path, capsys):
    given = ["train", str(data), "--out", str(tmp_path / "m"), "--target-symbols", "spaces"]
    # All pairs fit into one batch, so each step is a pass; two make a step.
    batches = ["--batch-tokens", "100000", "--accumulate", "2", "--steps", "3"]
    tiny = ["--hidden", "7", "--state", "11", "--dropout", "0"]
    assert run([*given, *tiny, *batches, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["passes"] == 6.0


def test_a_finished_model_without_its_training_state_is_not_written_over(
    data, tmp_path, capsys
):
    out = tmp_path / "m"
    given = ["train", data, "--out", out, "--target-symbols", "spaces", *TINY]
    assert _run(*given) == 0
    for path in out.glob("training.*"):
        path.unlink()
    before = (out / "model.safetensors").read_bytes()
    assert _run(*given, "--resume") == 2
    said = capsys.readouterr().err
    assert "there is a model, but not what --resume goes on from" in said
    assert "--force" in said
    assert (out / "model.safetensors").read_bytes() == before


def test_a_time_that_was_over_at_once_is_warned_of(data, tmp_path, capsys):
    given = ["train", data, "--out", tmp_path / "m", "--target-symbols", "spaces"]
    assert _run(*given, "--hidden", 7, "--time-budget", "0.01s") == 0
    assert "has hardly begun to learn" in capsys.readouterr().err
