import csv
import json
import subprocess
import sys

import pytest
import torch

from regard.cli.main import run
from regard.cli.train_options import Duration
from regard.cli.train_settings import task_of
from regard.errors import InputError
from regard.seq2seq.transducer import Transducer

TINY = ("--hidden", "7", "--state", "14", "--batch-tokens", "211")


def _run(*arguments) -> int:
    return run([str(argument) for argument in arguments])


def _settings(out) -> dict:
    return json.loads((out / "config.json").read_text())["made_by"]["settings"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("90s", 90.0), ("5m", 300.0), ("1h30m", 5400.0), ("1.5h", 5400.0)],
)
def test_a_time_is_read_as_people_write_it(text, seconds):
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "5", "soon", "5x", "-5m", "0s", "5m3", "1e3", "inf"])
def test_what_is_no_time_is_refused(text):
    if text == "5":
        assert Duration().convert(text, None, None) == 5.0
        return
    with pytest.raises(InputError, match="90s, 5m or 1h30m"):
        Duration().convert(text, None, None)


def test_options_reach_the_settings(data, tmp_path):
    out = tmp_path / "m"
    options = (
        *("--steps", 5, "--cell", "lstm", "--attention", "general", "--input-feeding"),
        *("--layers", 2, "--embedding", 13, "--accumulate", 2, "--label-smoothing", 0.1),
        *("--sampling", 0.25, "--precision", "bfloat16", "--metric", "exact_match"),
        *("--average", 3, "--ema", 0.5, "--looks", 2, "--decay", "cosine", "--warm-up", 2),
        *("--clip", 0.5, "--weight-decay", 0.01, "--normal-form", "NFD", "--save-every", "7s"),
    )
    assert _run("train", data, "--out", out, *TINY, *options) == 0
    found = _settings(out)
    wanted = {
        "cell": "lstm",
        "attention": "general",
        "input_feeding": True,
        "layers": 2,
        "d_in": 13,
        "d_s": 14,
    }
    assert {name: found["model"][name] for name in wanted} == wanted
    wanted = {
        "steps": 5,
        "accumulate": 2,
        "label_smoothing": 0.1,
        "sampling": 0.25,
        "precision": "bfloat16",
        "average": 3,
        "ema": 0.5,
        "evaluate_every": 2,
        "decay": "cosine",
        "warm_up": 2,
        "clip": 0.5,
        "weight_decay": 0.01,
    }
    assert {name: found["train"][name] for name in wanted} == wanted
    assert (found["metric"], found["normal_form"]) == ("exact_match", "NFD")


def test_a_time_budget_ends_a_run_and_steps_are_its_upper_limit(data, tmp_path, capsys):
    out = tmp_path / "m"
    options = ("--time-budget", "1h", "--clock", "cpu", "--steps", 23, "--looks", 3)
    assert _run("train", data, "--out", out, *TINY, *options) == 0
    err = capsys.readouterr().err
    assert "23 steps" in err
    assert "--time-budget 3600s --clock cpu" in err
    training = _settings(out)["train"]
    assert (training["looks"], training["average"], training["steps"]) == (3, 4, 23)
    budget = ("--time-budget", "0.3s")
    assert _run("train", data, "--out", tmp_path / "n", *TINY, *budget) == 0
    rows = list(csv.DictReader((tmp_path / "n" / "log.csv").read_text().splitlines()))
    assert rows


def test_columns_are_chosen_by_name_and_features_come_with_the_source(tmp_path):
    path = tmp_path / "forms.csv"
    rows = ["form,lemma,tags"]
    rows += [f"{stem}e{case},{stem},N;{case}" for stem in ("ab", "ba", "aa") for case in "SPG"]
    path.write_text("\n".join(rows) + "\n")
    columns = (
        *("--source-column", "lemma", "--target-column", "form"),
        *("--features-column", "tags"),
    )
    assert _run("train", path, "--out", tmp_path / "m", "--steps", 2, *TINY, *columns) == 0
    vocab = Transducer.load(tmp_path / "m").description.source
    assert vocab.split("ab\tN;P") == ["\tN", "\tP", "a", "b"]
    command = json.loads((tmp_path / "m" / "config.json").read_text())["made_by"]["command"]
    assert "--features-column tags" in command


def test_an_ensemble_is_trained_and_predicts(data, tmp_path, capsys):
    out = tmp_path / "e"
    options = ("--ensemble", 2, "--jobs", 2, "--steps", 3, "--format", "json")
    assert _run("train", data, "--out", out, *TINY, *options) == 0
    report = json.loads(capsys.readouterr().out)
    assert [member["steps"] for member in report["members"]] == [3, 3]
    assert _run("eval", out, data) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--time-budget", "5m", "--epochs", "2"], "--time-budget and --epochs"),
        (["--time-budget", "never"], "--time-budget: never is refused"),
        (["--clock", "cpu"], "--clock has nothing to measure"),
        (["--vocab-size", "97"], "--vocab-size has nothing to count"),
        (["--vocab-size", "97", "--symbols", "spaces"], "--vocab-size has nothing to count"),
        (["--ensemble", "2", "--tensorboard", "t"], "--ensemble and --tensorboard"),
        (["--sampling", "1.5"], "--sampling: 1.5 is refused"),
        (["--ema", "1"], "--ema: 1 is refused"),
        (["--accumulate", "0"], "--accumulate: 0 is refused"),
        (["--target-column", "7"], "there is no column 7 for the target"),
        (["--input-feeding"], "attention='bahdanau' has no such option"),
        (["--device", "abacus"], "--device: abacus is refused"),
    ],
)
def test_options_that_do_not_hold_are_refused(data, tmp_path, capsys, arguments, said):
    assert _run("train", data, "--out", tmp_path / "m", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_torchrun_trains_the_model_that_one_process_trains(data, tmp_path):
    together, alone = tmp_path / "together", tmp_path / "alone"
    options = (*TINY, "--steps", "11", "--looks", "2", "--target-symbols", "spaces")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", "-m", "regard", "train", data]
    done = subprocess.run(
        [str(word) for word in (*command, "--out", together, *options)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("symbol error rate") == 1  # one process speaks
    assert "--accumulate 2" in done.stderr
    assert _run("train", data, "--out", alone, "--accumulate", 2, *options) == 0
    one, two = (Transducer.load(out).model.state_dict() for out in (alone, together))
    for name, wanted in one.items():
        torch.testing.assert_close(two[name], wanted, rtol=0, atol=1e-5)


def test_the_help_has_every_option_in_one_group(capsys):
    assert _run("train", "--help") == 0
    said = capsys.readouterr().out
    titles = ["Options:", "Data:", "Model:", "Learning:", "Machine:", "Output:"]
    places = [said.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    assert places[2] < said.index("--attention NAME") < places[3]
    assert places[5] < said.index("--resume   ")
    assert said.count("\n  --dev ") == 1


def test_a_zero_is_an_option_that_was_given(data, tmp_path):
    out = tmp_path / "m"
    options = ("--steps", 3, "--dropout", 0, "--warm-up", 0, "--label-smoothing", 0)
    assert _run("train", data, "--out", out, *TINY, *options) == 0
    found = _settings(out)
    assert found["model"]["dropout"] == 0
    assert found["train"]["warm_up"] == 0
    assert "--dropout 0" in json.loads((out / "config.json").read_text())["made_by"]["command"]


def test_a_zero_that_a_recipe_does_not_take_is_refused(tmp_path, capsys):
    out = tmp_path / "m"
    assert _run("train", "names", "--out", out, "--dropout", 0, "--warm-up", 0) == 2
    assert "the recipe `names` sets --dropout, --warm-up itself" in capsys.readouterr().err
    assert not out.exists()


def test_false_and_none_are_options_that_were_not_given():
    given = task_of(
        "names",
        preset=None,
        time_budget=400.0,
        seed=0,
        tied=False,
        dropout=None,
        target_column=(),
    )
    assert given.settings == task_of("names", preset=None, time_budget=400.0, seed=0).settings


def test_two_unicode_forms_are_refused(data, tmp_path, capsys):
    given = ("--no-nfc", "--normal-form", "NFC")
    assert _run("train", data, "--out", tmp_path / "m", *given) == 2
    assert "--no-nfc and --normal-form contradict each other" in capsys.readouterr().err
