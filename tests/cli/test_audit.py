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
    assert "dropout is on" in " ".join(shown.split())


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
    (tmp_path / "in.txt").write_text("a b c\n" * 31)
    code = run(["audit", f"{tmp_path / 'model.py'}:case", "--data", str(tmp_path / "in.txt")])
    assert code == 2
    err = capsys.readouterr().err
    assert "model.py, line 5, raised KeyError" in err
    assert "Traceback" not in err
