"""`regard audit` through the command line: exit codes, files, refusals."""

import json

import pytest

from regard.audit.planted import planted_inputs
from regard.audit.verdict import Audit
from regard.cli.main import run

_MODEL = """
from regard.audit import FunctionCase, train_planted
import numpy as np

honest = train_planted().case

def deceived():
    return train_planted(penalty=1.0).case

dropped = FunctionCase(
    lambda texts: np.tile([0.5, 0.5], (len(texts), 1)),
    lambda texts: [np.random.default_rng().dirichlet(np.ones(len(t))) for t in texts],
)
nothing = 7

def broken():
    raise ValueError("no weights here")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("audit")
    (path / "model.py").write_text(_MODEL)
    (path / "bad.py").write_text("x = 1\nraise OSError('the file is gone')\n")
    lines = [
        json.dumps({"tokens": list(one.tokens), "gold": sorted(one.gold), "label": one.label})
        for one in planted_inputs(40, seed=5)
    ]
    (path / "data.jsonl").write_text("\n".join(lines))
    return path


def _audit(place, name, *more):
    target = f"{place / 'model.py'}:{name}"
    return run(
        ["audit", target, "--data", str(place / "data.jsonl"), "--tests", "uniform", *more]
    )


def test_a_granted_claim_is_zero_and_all_files_hold_the_same_numbers(place, tmp_path, capsys):
    page, numbers = tmp_path / "r.html", tmp_path / "r.json"
    assert _audit(place, "honest", "--out", str(page), "--json", str(numbers)) == 0
    shown = capsys.readouterr().out
    found = Audit.from_dict(json.loads(numbers.read_text()))
    assert found.verdict.outcome("L2") == "granted"
    row = found.tables[0].rows[0]
    assert f"{row.estimate.value:.3f}" in shown
    assert f"{row.estimate.value:.3f}" in page.read_text()
    assert found.command.startswith("regard audit ")
    # Nothing is written over unasked.
    assert _audit(place, "honest", "--json", str(numbers)) == 2
    assert "the file exists" in capsys.readouterr().err


def test_a_refused_claim_is_one_and_what_is_granted_below_it_zero(place, capsys):
    assert _audit(place, "deceived") == 1
    assert "REFUSED" in capsys.readouterr().out
    assert _audit(place, "deceived", "--require", "L1", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["status"] == "refused"


def test_weights_caught_wrongly_are_two_with_the_reason(place, capsys):
    assert _audit(place, "dropped") == 2
    shown = capsys.readouterr().out
    assert "STOPPED AT G0" in shown
    assert "the weights differ by up to" in " ".join(shown.split())


_TORCH = """
import torch
from torch import nn
from torch.nn import functional
import regard.audit as ra

WORDS = [f"w{i}" for i in range(29)] + [f"{k}{i}" for k in ("no", "yes") for i in range(3)]

class Encoder(nn.Module):
    def __init__(self, masked=True, heads=0, dropout=0.0):
        super().__init__()
        torch.manual_seed(1)
        self.embed = nn.Embedding(len(WORDS) + 1, 12, padding_idx=0)
        self.score, self.out = nn.Linear(12, 1), nn.Linear(12, 2)
        self.softmax, self.drop = nn.Softmax(-1), nn.Dropout(dropout)
        self.attend = nn.MultiheadAttention(12, heads, batch_first=True) if heads else None
        self.masked = masked

    def forward(self, ids):
        x = self.embed(ids)
        if self.attend is not None:
            x, weights = self.attend(x, x, x, key_padding_mask=ids == 0)
            return self.out(x[:, 0]), weights[:, 0]
        scores = self.score(x).squeeze(-1)
        if self.masked:
            scores = scores.masked_fill(ids == 0, -1e9)
        weights = self.drop(self.softmax(scores))
        return self.out((weights.unsqueeze(-1) * x).sum(1)), weights

def ids(texts):
    rows = [[1 + WORDS.index(word) for word in text] for text in texts]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])

def functions(model):
    # What a notebook does: run it, keep what comes back.
    def predict(texts):
        return model(ids(texts))[0].softmax(-1)
    def weights(texts):
        return [row[:len(t)] for t, row in zip(texts, model(ids(texts))[1])]
    return ra.FunctionCase(predict, weights)

def right(): return functions(Encoder().eval())
def unmasked(): return functions(Encoder(masked=False).eval())
def dropped(): return functions(Encoder(dropout=0.5))
def nothing():
    model = Encoder().eval()
    nn.init.constant_(model.score.weight, float("nan"))
    return functions(model)
def named(model, part, **more):
    return ra.from_torch(model, ids, part, **more)
def named_right(): return named(Encoder(), "softmax")
def named_unmasked(): return named(Encoder(masked=False), "softmax")
def named_dropped():
    found = named(Encoder(dropout=0.5), "softmax")
    found.module.train()
    return found
def named_averaged(): return named(Encoder(heads=3), "attend", row=0)
def named_missing(): return named(Encoder(), "attn")
def named_head(): return named(Encoder(heads=3), "attend", row=0, head=1)
"""


@pytest.mark.parametrize(
    ("name", "gate", "said"),
    [
        ("unmasked", "G0.sums", "weight lies on padding, the mask is missing"),
        ("dropped", "G0.twice", "in training mode: `drop` (Dropout, dropout 0.5)"),
        ("nothing", "G0.finite", "parameters with NaN: score.weight"),
        ("named_unmasked", "G0.sums", "weight lies on padding, the mask is missing"),
        ("named_dropped", "G0.twice", "in training mode: `drop` (Dropout, dropout 0.5)"),
        ("named_averaged", "G0.heads", "averaged over 3 heads"),
    ],
)
def test_a_plain_pytorch_file_with_wrong_weights_is_stopped_with_the_reason(
    place, name, gate, said, capsys
):
    (place / "net.py").write_text(_TORCH)
    arguments = ["audit", f"{place / 'net.py'}:{name}", "--data", str(place / "data.jsonl")]
    assert run([*arguments, "--tests", "uniform"]) == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "STOPPED AT G0" in shown
    assert f"{gate} failed" in shown
    assert said in shown


@pytest.mark.parametrize("name", ["right", "named_right", "named_head"])
def test_a_plain_pytorch_file_with_right_weights_passes_g0(place, name, capsys):
    (place / "net.py").write_text(_TORCH)
    arguments = ["audit", f"{place / 'net.py'}:{name}", "--data", str(place / "data.jsonl")]
    assert run([*arguments, "--tests", "uniform", "--require", "L1"]) == 0
    assert "STOPPED" not in capsys.readouterr().out


def test_a_part_that_is_not_there_is_told_with_those_that_are(place, capsys):
    (place / "net.py").write_text(_TORCH)
    target = f"{place / 'net.py'}:named_missing"
    assert run(["audit", target, "--data", str(place / "data.jsonl")]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: from_torch(): Encoder has no part 'attn'")
    assert "softmax" in shown


_WEAK = """
from weak_map import weak_map
from regard.audit import train_planted

case = weak_map(train_planted().case)
"""


def test_an_interval_that_spans_a_gate_is_undecided_and_two(place, tmp_path, capsys):
    (tmp_path / "weak.py").write_text(_WEAK)
    data, numbers = tmp_path / "few.jsonl", tmp_path / "r.json"
    lines = (
        json.dumps({"tokens": list(one.tokens)}) for one in planted_inputs(60, seed=5)[:25]
    )
    data.write_text("\n".join(lines))
    code = run(
        ["audit", f"{tmp_path / 'weak.py'}:case", "--data", str(data), "--json", str(numbers)]
    )
    assert code == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "UNDECIDED (n=25)" in shown
    assert "more inputs would decide it" in shown
    open_ = [
        gate
        for gate in json.loads(numbers.read_text())["verdict"]["gates"]
        if gate["outcome"] == "undecided" and gate["estimate"] is not None
    ]
    assert open_
    for gate in open_:
        assert gate["estimate"]["low"] < gate["threshold"] < gate["estimate"]["high"]
        assert gate["more"] is None or gate["more"] > 0


def test_a_missing_model_is_missed_by_audit_and_not_by_another_verb(place, capsys):
    arguments = ["audit", str(place / "no.py:case"), "--data", str(place / "data.jsonl")]
    assert run(arguments) == 2
    shown = capsys.readouterr().err
    assert "audit: `" in shown
    assert "check" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one target is needed"),
        (["model.py:honest"], "--data is missing"),
        (["model.py", "--data", "data.jsonl"], "is no target"),
        (["model.py:none", "--data", "data.jsonl"], "defines no `none`"),
        (["model.py:nothing", "--data", "data.jsonl"], "without name, predict, weights"),
        (["model.py:broken", "--data", "data.jsonl"], "ValueError: no weights here"),
        (["bad.py:case", "--data", "data.jsonl"], "fails at line 2"),
        (["model.py:honest", "--data", "none.jsonl"], "there is no such file"),
        (["reproduce"], "sst or pronoun or copy"),
        (["reproduce", "sst"], "its data are missing"),
    ],
)
def test_what_cannot_be_done_is_two_and_one_clear_text(
    place, arguments, said, capsys, monkeypatch
):
    monkeypatch.chdir(place)
    assert run(["audit", *arguments]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown


def test_the_selftest_prints_both_controls(capsys):
    assert run(["audit", "--selftest", "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert "honest" in shown
    assert "deceived (lambda 1)" in shown
    assert "tells the two apart on this machine (seed 3)" in shown


def test_help_begins_with_an_example(capsys):
    assert run(["audit", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("regard audit --selftest") < shown.index("Usage")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce", "copy", "--budget", "5m"], "--budget is not for published settings"),
        (["--selftest", "--seeds", "3"], "--seeds belongs to reproduce"),
        (["model.py:case", "--selftest"], "audits its own two models"),
        (["m.py:case", "--data", "one", "--out", "a", "--json", "a"], "name one file"),
        (["m.py:case", "--data", "one", "--json", "one", "--force"], "name one file"),
    ],
)
def test_options_that_contradict_are_refused(arguments, said, capsys):
    assert run(["audit", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_what_a_case_raises_is_told_by_line_and_is_no_verdict(tmp_path, capsys):
    (tmp_path / "model.py").write_text(
        "import regard.audit as ra\n\n\ndef predict(batch):\n    raise KeyError('lost')\n\n\n"
        "case = ra.FunctionCase(predict, predict)\n"
    )
    (tmp_path / "in.txt").write_text("".join(f"a b c{i}\n" for i in range(31)))
    code = run(["audit", f"{tmp_path / 'model.py'}:case", "--data", str(tmp_path / "in.txt")])
    assert code == 2
    err = capsys.readouterr().err
    assert "model.py, line 5, raised KeyError" in err
    assert "Traceback" not in err


def test_a_reproduction_of_two_seeds_is_kept_and_one_figure_outside_is_one(
    tmp_path, monkeypatch, capsys
):
    from regard.audit.reproduce import copy as copying
    from regard.audit.reproduce.result import Check, Reproduction

    def measured(data, *, seed, quick, models, progress):
        return Reproduction("copy", seed, (Check("share", float(seed), 4.0, high),))

    monkeypatch.setattr(copying, "run", measured)
    kept = tmp_path / "copy.json"
    command = ["audit", "reproduce", "copy", "--seed", "5", "--seeds", "2"]
    high = 6.5
    assert run(command) == 0
    high = 5.5
    assert run([*command, "--json", str(kept)]) == 1
    found = json.loads(kept.read_text())
    assert found["seeds"] == [5, 6]
    assert found["figures"][0]["found"] == [5.0, 6.0]
    assert "seed 6: 0 of 1 figures in their bands" in capsys.readouterr().out
