"""The cell magic, in a real IPython shell where there is one."""

import io
from contextlib import redirect_stdout

import pytest

from regard.check import notebook

CELL = '''
import numpy as np

def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ np.swapaxes(keys, 1, 2)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ keys, weights

attend(np.ones((2, 3, 7)), np.ones((2, 11, 7)))[0].shape
'''


@pytest.fixture(scope="module")
def shell():
    module = pytest.importorskip(
        "IPython.core.interactiveshell", reason="IPython is not installed"
    )
    made = module.InteractiveShell.instance()
    made.colors = "nocolor"
    made.run_line_magic("load_ext", "regard")
    yield made
    module.InteractiveShell.clear_instance()


def run(shell, line, cell):
    said, shown = io.StringIO(), []
    with redirect_stdout(said):
        reports = notebook.run_cell(shell, line, cell, show=shown.append)
    return reports, shown, said.getvalue()


def test_the_magic_is_there_once_the_extension_is_loaded(shell):
    assert "regard" in shell.magics_manager.magics["cell"]


def test_a_cell_runs_and_the_attention_it_defines_is_checked(shell):
    reports, shown, said = run(shell, "repair=false score=dot", CELL)
    assert "(2, 3, 7)" in said
    assert [r.target.rpartition(":")[2] for r in reports] == ["attend"]
    assert reports[0].findings[0].code == "RG301"
    assert shown == reports


def test_an_error_in_a_cell_comes_with_named_axes_and_nothing_is_checked(shell):
    run(shell, "nothing", CELL)
    cell = "attend(np.ones((2, 3, 7)), np.ones((2, 11, 5)))"
    reports, shown, said = run(shell, "attend T_enc=11", cell)
    assert reports == shown == []
    assert "ValueError" in said
    assert "`np.swapaxes(keys, 1, 2)`  (2, 5, T_enc=11)" in said
    assert shell.custom_exceptions == ()


def test_a_name_that_nothing_has_is_said_in_one_message(shell):
    reports, shown, _ = run(shell, "atend", "x = 5")
    assert reports == []
    assert shown[0].startswith("%%regard: there is no `atend`")


@pytest.mark.parametrize("line", ["batch=", "3", "score dot!"])
def test_a_line_that_cannot_be_read_is_refused_before_the_cell_runs(line):
    shown = []
    assert notebook.run_cell(None, line, "raise SystemExit", show=shown.append) == []
    assert "is refused" in shown[0]


def test_the_line_is_names_sizes_and_statements():
    assert notebook._read("attend batch=32 score=dot causal=true window=3") == (
        ["attend"],
        {"batch": 32},
        {"score": "dot", "causal": True, "window": 3},
    )
