"""What is stated of a target changes something, or is refused."""

import pytest

from regard.check.check import Options, check_source
from regard.errors import InputError

ATTEND = """
import numpy as np


def attend(query, keys, mask):
    \"\"\"query (batch, T_dec, d_h), keys (batch, T_enc, d_h), mask (batch, T_enc)\"\"\"
    scores = query @ np.swapaxes(keys, 1, 2)
    scores = np.where(mask[:, None, :], -1e9, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ keys, weights
"""
AXES = {"query": "batch T_dec d_h", "keys": "batch T_enc d_h", "mask": "batch T_enc"}
CONTEXT = {"name": "context", "axes": "batch T_dec d_h"}
WEIGHTS = {"name": "weights", "axes": "batch T_dec T_enc"}


def check(contract=None, **flags):
    options = Options(repair=False, flags=flags or None)
    return check_source(ATTEND, "attend.py", "attend", contract, options)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"sizes": {"d_attn": 14}}, "`sizes.d_attn` is stated in a name that no axis has"),
        ({"scale": "1/sqrt(d_attn)"}, "`scale` is stated in a name that no axis has"),
        ({"init": {"width": "d_h"}}, "`init` is stated of attend, which is a function"),
        ({"weights": {"output": "zz"}}, "there is no result `zz` to be the alignment"),
    ],
)
@pytest.mark.parametrize("inputs", [None, AXES])
def test_a_statement_that_would_change_nothing_is_refused(flags, said, inputs):
    with pytest.raises(InputError, match=said):
        check(**flags, **({"inputs": inputs} if inputs else {}))
    with pytest.raises(InputError, match=said):
        check({"inputs": AXES, **flags})


def test_sizes_of_named_axes_are_taken():
    assert check({"inputs": AXES, "mask": "drop", "sizes": {"d_h": 14}}).sizes[0]["d_h"] == 14


@pytest.mark.parametrize("declared", [{"inputs": AXES}, {}])
def test_the_polarity_of_a_contract_is_that_of_its_masks(declared):
    for mask, groups in (("keep", {"RG2"}), ("drop", set())):
        for report in (check({**declared, "mask": mask}), check(declared, mask=mask)):
            assert {f.code[:3] for f in report.findings if f.level == "error"} == groups


def test_a_kind_goes_before_the_polarity():
    declared = {"inputs": AXES, "kinds": {"mask": "drop"}, "mask": "keep"}
    assert not check(declared).findings


def test_results_that_no_contract_names_are_said_to_be_unchecked():
    declared = {"inputs": AXES, "mask": "drop"}
    one = check({**declared, "returns": [CONTEXT]})
    assert "1 more of the results (name all with --returns)" in one.not_checked
    both = check({**declared, "returns": [CONTEXT, WEIGHTS]})
    assert not any("more of the results" in text for text in both.not_checked)
    three = [CONTEXT, WEIGHTS, {"name": "rest", "axes": "batch"}]
    assert "RG104" in {f.code for f in check({**declared, "returns": three}).findings}


def test_the_stated_alignment_is_taken_where_results_are_guessed():
    (wrong,) = check({"mask": "drop"}, weights={"output": "context"}).findings
    assert "`context` holds negative numbers" in wrong.message
    right = check({"mask": "drop"}, weights={"output": "weights"})
    assert not [f for f in right.findings if f.level == "error"]
