"""Reproductions: their tasks, their data, their bands. Whole runs where REGARD_DATA is set."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.audit.from_regard import StepCase
from regard.audit.reproduce import copy as copying
from regard.audit.reproduce.pronoun import read_pronouns
from regard.audit.reproduce.report import Report
from regard.audit.reproduce.result import Check, Reproduction
from regard.audit.reproduce.run import reproduce
from regard.audit.reproduce.sst import read_sst
from regard.errors import InputError

_DATA = os.environ.get("REGARD_DATA")


def test_the_deciding_position_of_each_task():
    assert copying.decisive("copy", 5) == [0, 1, 2, 3, 4]
    assert copying.decisive("reverse", 5) == [4, 3, 2, 1, 0]
    assert copying.decisive("swap", 5) == [1, 0, 3, 2, 4]


@pytest.mark.parametrize("task", copying.TASKS)
def test_the_marked_token_of_a_step_is_its_answer(task):
    inputs = copying.task_inputs(task, 7, seed=2)
    assert sum(one.before == () for one in inputs) == 7
    for one in inputs:
        (place,) = one.gold
        assert one.tokens[place] == one.label


def test_equal_weights_stay_equal_in_training():
    model = copying.train_task("copy", "uniform", seed=1, steps=3)
    case = StepCase(model, copying._VOCAB, copying._VOCAB)
    for row in case.weights(copying.task_inputs("copy", 3, seed=2)):
        np.testing.assert_allclose(row, 1 / len(row), atol=1e-6)


def test_the_penalty_is_on_the_weight_of_the_deciding_position():
    model = copying.train_task("reverse", "learned", seed=1, steps=2)
    case = StepCase(model, copying._VOCAB, copying._VOCAB)
    steps = copying.task_inputs("reverse", 1, seed=2)
    source = torch.tensor([[4 + int(token[1:]) for token in steps[0].tokens]])
    losses = [
        copying.task_loss(model, "reverse", kind, source, source.flip(1)).item()
        for kind in ("learned", "deceived")
    ]
    mass = np.array([row[len(row) - 1 - t] for t, row in enumerate(case.weights(steps))])
    assert losses[1] - losses[0] == pytest.approx(-np.log1p(-mass).mean(), rel=1e-4)


def test_sequences_grow_from_two_symbols_in_the_first_quarter_of_training():
    longest = [copying._longest(step, 400) for step in range(400)]
    assert longest[0] == 2
    assert longest == sorted(longest)
    assert set(longest) == set(range(2, 9))
    assert longest.index(8) <= 100


def test_the_penalty_has_its_whole_slope_where_all_weight_is_on_the_deciding_position():
    scores = torch.zeros(2, 3, 5)
    scores[:, [0, 1, 2], [3, 1, 4]] = 60.0
    scores.requires_grad_()
    found = copying.penalty(scores.softmax(-1), torch.tensor([3, 1, 4]))
    found.backward()
    assert found.item() == pytest.approx(60 - np.log(4), rel=1e-5)
    assert scores.grad[0, 1, 1].item() == pytest.approx(1 / 6, rel=1e-5)


def test_training_draws_nothing_from_the_global_stream():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    copying.train_task("copy", "learned", seed=1, steps=2)
    assert torch.equal(before, torch.random.get_rng_state())


def test_pronouns_are_marked_and_sentences_keep_their_labels(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.txt").write_text("M\the went home , he said\nF\ther hat\n")
    found = read_pronouns(tmp_path)
    assert [one.label for one in found["dev"]] == ["M", "F"]
    assert found["train"][0].gold == {0, 4}
    (tmp_path / "dev.txt").write_text("no tab here\n")
    with pytest.raises(InputError, match="line 1: no example"):
        read_pronouns(tmp_path)


def test_sentences_of_more_than_five_tokens_are_kept(tmp_path):
    path = tmp_path / "sst.csv"
    path.write_text(
        "text,label,exp_split\n"
        "a b c d e,1,train\n"
        "a b c d e f,0,train\n"
        '"a, b c d e f g",1,test\n'
    )
    found = read_sst(path)
    assert [one.tokens for one in found["train"]] == [tuple("abcdef")]
    assert found["test"][0].label == "1"
    path.write_text("text,label\nx,1\n")
    with pytest.raises(InputError, match="this is not the data set"):
        read_sst(path)


def test_a_figure_outside_its_band_fails_the_whole_and_is_marked():
    good, bad = Check("a", 0.5, 0.4, 0.6, "0.55"), Check("b", 0.7, 0.4, 0.6)
    assert Reproduction("x", 0, (good,)).passed
    whole = Report((Reproduction("x", 0, (good, bad), ("Not compared: c.",)),))
    assert not whole.passed
    row = next(line for line in whole.text().splitlines() if line.startswith("b"))
    assert "NO" in row
    assert "1 of 2 figures in their bands" in whole.text()
    assert "Not compared: c." in whole.text()


def test_seeds_stand_side_by_side_with_their_mean():
    low = Check("a", 0.5, 0.4, math.inf, "0.55", "F 1")
    high = Check("a", 0.8, 0.4, math.inf, "0.55", "F 2")
    other = Check("only of one", 0.1, 0.4)
    found = Report(
        (
            Reproduction("x", 3, (low,), ("Said once.",), 2.0),
            Reproduction("x", 4, (high, other), ("Said once.",), 5.0),
        )
    ).to_dict()
    assert found["seeds"] == [3, 4]
    assert found["seconds"] == [2.0, 5.0]
    assert found["statements"] == ["Said once."]
    first, second = found["figures"]
    assert first["found"] == [0.5, 0.8]
    assert first["mean"] == pytest.approx(0.65)
    assert first["inside"] == 2
    assert (first["low"], first["high"]) == (0.4, None)
    assert first["notes"] == ["F 1", "F 2"]
    assert second["found"] == [None, 0.1]
    assert second["inside"] == 0
    assert not found["passed"]


def test_figures_of_numpy_become_json():
    checks = Check("a", np.float64(0.5), 0.4, 0.6), Check("b", np.float64("nan"))
    found = json.loads(json.dumps(Report((Reproduction("x", 0, checks),)).to_dict()))
    assert [figure["inside"] for figure in found["figures"]] == [1, 0]
    assert [figure["mean"] for figure in found["figures"]] == [0.5, None]


def test_every_seed_is_run_and_kept_before_the_next(monkeypatch):
    asked, kept = [], []

    def run(data, *, seed, quick, models, progress):
        progress("model", 0, 1)
        return Reproduction("copy", seed, (Check("seed", float(seed), 4.0, 5.5),))

    monkeypatch.setattr(copying, "run", run)
    found = reproduce(
        "copy",
        seeds=(5, 6),
        progress=lambda what, done, of: asked.append(what),
        keep=lambda report: kept.append(len(report.runs)),
    )
    assert asked == ["seed 5: model", "seed 6: model"]
    assert kept == [1, 2]
    assert [run.passed for run in found.runs] == [True, False]
    assert found.to_dict()["command"] == "regard audit reproduce copy --seed 5 --seeds 2"


def test_data_that_are_missing_are_named():
    with pytest.raises(InputError, match=r"sst_dataset\.csv"):
        reproduce("sst")
    with pytest.raises(InputError, match="sst or pronoun or copy"):
        reproduce("imdb")


@pytest.mark.slow
@pytest.mark.skipif(_DATA is None, reason="REGARD_DATA names no folder with the data sets")
@pytest.mark.parametrize(
    ("target", "where"),
    [("pronoun", "audit-outside-repo/pronoun"), ("sst", "audit-outside-repo/sst_dataset.csv")],
)
def test_a_quick_run_on_the_published_data_gives_every_figure(target, where):
    (found,) = reproduce(target, data=str(Path(_DATA or "") / where), quick=True).runs
    assert len(found.checks) >= 15
    assert all(np.isfinite(check.found) for check in found.checks)
