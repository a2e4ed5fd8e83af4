import importlib
import linecache
import subprocess
import sys

import numpy as np
import pytest

import regard
from regard.check.api import check
from regard.check.familiar import familiar
from regard.errors import ConventionError, InputError


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ np.swapaxes(keys, 1, 2)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ keys, weights


def attend_right(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ np.swapaxes(keys, 1, 2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ keys, weights


CONTRACT = {
    "inputs": {"query": "batch T_dec d_h", "keys": "batch T_enc d_h"},
    "returns": [
        {"name": "context", "axes": "batch T_dec d_h"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "dot",
}


@pytest.fixture(scope="module")
def report():
    return check(attend, contract=CONTRACT, repair=False)


def test_a_function_in_memory_is_checked_at_its_own_lines(report):
    found = report.findings[0]
    first = attend.__code__.co_firstlineno
    assert found.code == "RG301"
    assert found.location.line in (first + 3, first + 4)
    assert found.location.path == __file__


def test_right_code_has_no_findings():
    assert check(attend_right, contract=CONTRACT).findings == ()


def test_the_package_is_the_verb():
    assert regard.check(attend_right, contract=CONTRACT, repair=False).findings == ()


def test_checking_twice_says_the_same_though_edits_were_tried_between():
    lines = linecache.getlines(__file__)
    codes = [
        tuple(f.code for f in check(attend, contract=CONTRACT, seconds=3).findings)
        for _ in range(2)
    ]
    assert codes[0] == codes[1]
    assert "RG301" in codes[0]
    assert linecache.getlines(__file__) == lines


def test_a_report_is_text_at_the_prompt_and_html_in_a_notebook(report):
    assert repr(report) == str(report)
    assert "error[RG301] softmax-axis" in repr(report)
    assert repr(report).splitlines()[-1].startswith("Not checked: ")
    html = report._repr_html_()
    assert html.startswith("<div")
    assert "RG301" in html
    assert "<script" not in html


def test_records_load_no_renderer_before_somebody_looks():
    code = (
        "import sys, regard.check.finding as f; r = f.Report('a.py:b');"
        "before = 'regard.check.render' in sys.modules; repr(r);"
        "print(before, 'regard.check.render' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["False", "True"]


def test_a_test_is_written_when_asked_for():
    tested = check(attend, contract=CONTRACT, repair=False, write_test=True)
    assert "def test_weights_sum_to_one_over_T_enc" in tested.test
    assert "regard" not in tested.test.partition('"""')[2].partition('"""')[2]


def masked(query, keys, mask):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h), mask (batch, T_enc)"""
    scores = np.where(mask[:, None], -1e9, query @ np.swapaxes(keys, 1, 2))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ keys, weights


def test_what_a_mask_means_decides_whether_it_is_inverted():
    codes = {
        mask: {f.code for f in check(masked, mask=mask, repair=False).findings}
        for mask in ("keep", "drop")
    }
    assert codes["keep"] & {"RG201", "RG202"}
    assert not codes["drop"] & {"RG201", "RG202"}


def test_what_cannot_be_checked_is_refused_in_one_message():
    def inner(query, keys):
        return query @ keys

    with pytest.raises(InputError, match="defined inside a function"):
        check(inner)
    with pytest.raises(InputError, match="text of the target cannot be found"):
        check(len)
    with pytest.raises(InputError, match="unknown statement"):
        check(attend, scored="dot")
    with pytest.raises(InputError, match="no polarity"):
        check(attend, mask="maybe")
    with pytest.raises(ConventionError, match="both a contract and single statements"):
        check(attend, contract=CONTRACT, score="dot")


OPTION = '''
import torch
from torch import nn


class Attend(nn.Module):
    """query (batch, T_dec, width), keys (batch, T_enc, width)"""

    def __init__(self, width, over_keys=False):
        super().__init__()
        self.over_keys, self.W = over_keys, nn.Linear(width, width)

    def forward(self, query, keys):
        scores = self.W(query) @ keys.mT
        weights = scores.softmax(-1 if self.over_keys else 1)
        return weights @ keys, weights


class Odd(Attend):
    def forward(self, query, keys):
        return keys["all of them"] @ query
'''


@pytest.fixture
def option(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    (tmp_path / "option_of_an_object.py").write_text(OPTION)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("option_of_an_object")
    sys.modules.pop("option_of_an_object", None)


def test_an_object_is_built_with_its_own_options_and_the_check_s_sizes(option):
    wrong = check(option.Attend(6), repair=False)
    right = check(option.Attend(6, over_keys=True), repair=False)
    assert "RG301" in {f.code for f in wrong.findings}
    assert not [f for f in right.findings if f.level != "note"]


def test_an_object_whose_arguments_cannot_be_guessed_is_refused_and_not_called_wrong(option):
    with pytest.raises(InputError, match="object of Odd"):
        check(option.Odd(6), repair=False)


def _known(kind, *arguments, **options):
    nn = pytest.importorskip("torch").nn
    return getattr(nn, kind)(*arguments, **options)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("MultiheadAttention", {}, "`query` is (T, batch, d), as batch_first=False has it"),
        (
            "MultiheadAttention",
            {"batch_first": True, "kdim": 20, "vdim": 12},
            "`query` is (batch, T, d), as batch_first=True has it",
        ),
        ("MultiheadAttention", {"add_bias_kv": True, "bias": False}, "`attn_mask` is left out"),
        ("TransformerEncoderLayer", {"batch_first": True}, "`src_mask` is left out"),
        ("TransformerDecoderLayer", {"norm_first": True}, "`tgt_mask` is causal"),
    ],
)
def test_an_object_of_a_known_layer_is_checked_as_its_manual_says(kind, options, says):
    report = check(_known(kind, 32, 4, **options))
    assert says in report.assumptions
    assert report.worst in (None, "note")
    assert len(report.checked) > 20


def test_a_known_layer_keeps_no_promise_that_it_does_not_make():
    report = check(_known("MultiheadAttention", 32, 4), all_masked="zeros")
    assert [f.code for f in report.findings] == ["RG205"]


def test_a_subclass_with_a_call_of_its_own_is_no_known_layer():
    nn = pytest.importorskip("torch").nn
    own = type("Own", (nn.MultiheadAttention,), {"forward": lambda self, x: x})
    assert familiar(own(32, 4)) is None
    assert familiar(type("Same", (nn.MultiheadAttention,), {})(32, 4)).kind is (
        nn.MultiheadAttention
    )
    assert familiar(nn.Linear(3, 5)) is None
