"""The decorator and ``pytest --regard``, each in a pytest process of its own."""

import subprocess
import sys

import pytest

from regard.errors import ConventionError, InputError
from regard.testing import checks

pytest_plugins = ["pytester"]

DECODER = '''
import numpy as np


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ np.swapaxes(keys, 1, 2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis={axis}, keepdims=True)
    return weights @ keys, weights


def broken(query, keys):
    raise OSError("no such table")
'''
DECORATED = """
from regard.testing import checks
from decoder import {name}


@checks({name}, repair=False, select=["RG3", "RG201"], score="dot")
def test_attend(check):
    check()
"""
# Where the package is installed its entry point names the plugin; elsewhere -p does.
PLUGIN = ("-p", "no:regard", "-p", "regard.check.plugin", "-p", "no:cacheprovider")


@pytest.fixture
def project(pytester):
    pytester.makepyfile(decoder=DECODER.format(axis=1), good=DECODER.format(axis=-1))
    return pytester


def test_each_rule_is_a_test_and_the_failing_one_shows_the_finding(project):
    project.makepyfile(test_decoder=DECORATED.format(name="attend"))
    ran = project.runpytest_subprocess(*PLUGIN, "-v")
    ran.assert_outcomes(passed=6, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "*test_attend[[]RG9-could-be-checked[]] PASSED*",
            "*test_attend[[]RG201-mask-inverted[]] PASSED*",
            "*test_attend[[]RG301-softmax-axis[]] FAILED*",
        ]
    )
    text = ran.stdout.str()
    assert "decoder.py:8:" in text
    assert "error[RG301] softmax-axis" in text
    assert "relation  each softmax runs over the axis of the keys" in text
    assert "Traceback" not in text
    assert "suite.py" not in text


def test_right_code_passes_every_rule(project):
    project.makepyfile(
        test_good=DECORATED.format(name="attend").replace("from decoder", "from good")
    )
    project.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=7)


def test_code_that_cannot_be_checked_fails_once_and_passes_nothing(project):
    project.makepyfile(test_decoder=DECORATED.format(name="broken"))
    ran = project.runpytest_subprocess(*PLUGIN, "-rs")
    outcome = ran.parseoutcomes()
    assert outcome.get("passed", 0) in (0, 6)
    assert outcome["failed"] == 1


def test_the_option_collects_the_targets_of_the_project(project):
    project.makefile(
        ".toml",
        pyproject='[tool.regard]\ntargets = ["decoder.py:attend", "good.py:attend"]\n'
        'ignore = ["RG1", "RG2", "RG4", "RG5", "RG6", "RG7", "RG8"]\n',
    )
    ran = project.runpytest_subprocess(*PLUGIN, "--regard", "-v", "-k", "softmax or checked")
    ran.stdout.fnmatch_lines(
        ["decoder.py::attend::RG301-softmax-axis FAILED*", "good.py::attend::RG301*PASSED*"]
    )
    text = ran.stdout.str()
    assert "error[RG301] softmax-axis" in text
    assert "  fix (" in text
    assert "Traceback" not in text
    assert "collected 12 items / 6 deselected / 6 selected" in text
    assert ran.parseoutcomes() == {"passed": 5, "failed": 1, "deselected": 6}


def test_without_the_option_nothing_is_collected(project):
    project.makefile(".toml", pyproject='[tool.regard]\ntargets = ["decoder.py:attend"]\n')
    assert project.runpytest_subprocess(*PLUGIN).ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", "--regard: name what to check"),
        ('targets = ["decoder.py:atend"]', "decoder.py` defines no `atend`"),
        ('target = ["decoder.py:attend"]', "did you mean `targets`?"),
    ],
)
def test_settings_that_name_nothing_are_a_usage_error(project, settings, said):
    project.makefile(".toml", pyproject=f"[tool.regard]\n{settings}\n")
    ran = project.runpytest_subprocess(*PLUGIN, "--regard")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    assert said in ran.stderr.str()
    assert "Traceback" not in ran.stderr.str()


def test_loading_the_plugin_loads_no_array_library():
    code = (
        "import sys, regard.check.plugin;"
        "heavy = {'numpy', 'torch', 'rich', 'click', 'jaxtyping', 'pytest'};"
        "print(sorted(heavy & set(sys.modules)), 'regard.check.plugin.suite' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[] False"


def test_a_target_that_no_file_holds_is_refused_when_the_tests_are_collected():
    def inner(query, keys):
        return query @ keys

    with pytest.raises(InputError, match="cannot be found in a file"):
        checks(inner)
    with pytest.raises(InputError, match="cannot be found in a file"):
        checks(len)


def test_what_is_stated_is_looked_at_when_the_tests_are_collected():
    with pytest.raises(InputError, match="states something unknown"):
        checks(DECODER.format, scored="dot")
    with pytest.raises(InputError, match="no rule is called"):
        checks(test_right_code_passes_every_rule, select=["RG999"])
    with pytest.raises(InputError, match="`mask` is no polarity"):
        checks(test_right_code_passes_every_rule, mask="maybe")
    with pytest.raises(InputError, match="`fail_on` is no level"):
        checks(test_right_code_passes_every_rule, fail_on="never")
    with pytest.raises(ConventionError, match="both a contract and single statements"):
        checks(test_right_code_passes_every_rule, contract={"score": "dot"}, score="dot")


def test_a_target_that_is_not_there_fails_and_the_others_are_checked(project):
    project.makefile(
        ".toml",
        pyproject='[tool.regard]\ntargets = ["good.py:atend", "good.py:attend", "no.py:f"]\n'
        'select = ["RG301"]\n',
    )
    ran = project.runpytest_subprocess(*PLUGIN, "--regard", "-v")
    ran.assert_outcomes(passed=2, failed=2, skipped=2)
    ran.stdout.fnmatch_lines(["good.py::attend::RG301*PASSED*", "*defines no `atend`*"])
    assert "Traceback" not in ran.stdout.str()
