import json

import pytest

from regard.check.rules import every
from regard.cli.main import run


def test_rules_lists_every_rule_under_its_group(capsys):
    assert run(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [
        rule.code for rule in every()
    ]
    assert [line for line in lines if not line.startswith("  ")][:2] == [
        "RG1 shape",
        "RG2 mask",
    ]
    (row,) = [line for line in lines if "RG301" in line]
    assert row.split(maxsplit=3)[1:3] == ["softmax-axis", "error"]


@pytest.mark.parametrize("asked", [["RG8"], ["batch"], ["RG801", "batch-size-matters,rg803"]])
def test_rules_takes_groups_codes_and_names(asked, capsys):
    assert run(["rules", *asked, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [rule["code"] for rule in told] == ["RG801", "RG802", "RG803"]


def test_rules_refuses_what_it_does_not_know(capsys):
    assert run(["rules", "hedas-mixed"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "did you mean heads-mixed (RG401)?" in err
