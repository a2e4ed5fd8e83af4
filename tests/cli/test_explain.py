import json
import subprocess
import sys

import pytest

from regard.check.rules import every, find
from regard.cli.main import run


@pytest.mark.parametrize("name", ["RG301", "softmax-axis"])
def test_explain_tells_what_why_and_how_in_order(name, capsys):
    assert run(["explain", name]) == 0
    told = capsys.readouterr().out
    assert told.startswith("RG301 softmax-axis (error; group softmax)\n")
    parts = ["what it is", "relation", "smallest example", "it prints", "why it hides", "fix"]
    places = [told.index(f"\n{part}\n") for part in (*parts, "then it prints", "not a bug")]
    assert places == sorted(places)
    assert "    [1.5, 1.5]\n" in told
    assert "    - weights = torch.softmax(scores, dim=1)\n" in told
    assert "    + weights = torch.softmax(scores, dim=-1)\n" in told


def test_explain_answers_for_every_rule_and_prose_keeps_to_80_columns(capsys):
    assert run(["explain", *(rule.code for rule in every())]) == 0
    told = capsys.readouterr().out
    for rule in every():
        assert f"{rule.code} {rule.name} (" in told
    assert all(len(line) <= 80 or line.startswith("    ") for line in told.splitlines())


def test_explain_as_json_has_the_example_and_the_contract(capsys):
    assert run(["explain", "padding-leak", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["code"], told["level"], told["group"]) == ("RG202", "error", "mask")
    assert told["bad"]["source"] == find("RG202").bad.source
    assert told["bad"]["contract"]["kinds"] == {"keep": "keep"}


def test_explain_of_several_rules_as_json_is_a_list(capsys):
    assert run(["explain", "RG101", "RG904", "--format", "json"]) == 0
    assert [told["code"] for told in json.loads(capsys.readouterr().out)] == ["RG101", "RG904"]


def test_an_unknown_rule_is_one_clear_error_and_exit_code_2(capsys):
    assert run(["explain", "RG301", "sofmax-axis"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: no rule is called 'sofmax-axis'",
        "  expected  a rule's code or name, as RG301 or softmax-axis",
        "  got       'sofmax-axis'",
        "  help      did you mean softmax-axis (RG301)?",
    ]


def test_explain_without_a_rule_is_bad_usage(capsys):
    assert run(["explain"]) == 2
    assert "Missing argument 'RULE...'" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["explain", "RG301"], ["rules"]])
def test_telling_of_rules_loads_no_array_library(verb):
    code = f"from regard.cli.main import run; run({verb}); import sys; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"torch", "numpy", "jax"}.intersection(ran.stdout.splitlines()[-1].split())
