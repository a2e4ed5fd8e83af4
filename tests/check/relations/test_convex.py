"""Where every value is one value, so is every context, however the weights are made."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import Results, judge

pytest.importorskip("torch")

LINEAR = """
import torch
import torch.nn.functional as F


def attend(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    state = torch.einsum("bthd,bthe->bthde", k, v).cumsum(dim=1)
    total = (q * k.cumsum(dim=1)).sum(dim=-1, keepdim=True)
    return torch.einsum("bthd,bthde->bthe", q, state) / total
"""
AXES = "batch T heads d_head"
CAUSAL = {
    "inputs": {"q": AXES, "k": AXES, "v": AXES},
    "returns": [{"name": "out", "axes": AXES}],
    "score": "none",
    "causal": "top_left",
}
SPARSE = """
import torch


def attend(query, keys, values):
    scores = torch.einsum("bqd,bkd->bqk", query, keys)
    ordered = torch.sort(scores, dim=-1, descending=True).values
    sums = ordered.cumsum(dim=-1) - 1
    rank = torch.arange(1, scores.size(-1) + 1, dtype=scores.dtype)
    support = (rank * ordered > sums).sum(dim=-1, keepdim=True)
    weights = (scores - sums.gather(-1, support - 1) / support).clamp(min=0)
    return weights @ values, weights
"""
DISTRIBUTION = {
    "inputs": {
        "query": "batch T_dec d_h",
        "keys": "batch T_enc d_h",
        "values": "batch T_enc d_v",
    },
    "returns": [
        {"name": "context", "axes": "batch T_dec d_v"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "none",
}


def judged(source: str, statements: dict[str, object], old: str = "", new: str = "") -> Results:
    assert source.count(old) == 1 or not old
    text = source.replace(old, new) if old else source
    return judge(text, "f.py", "attend", Contract.from_mapping(statements), seconds=60.0)


def told(results: Results) -> dict[str, str]:
    assert not results.broken
    return {v.relation: v.rule for v in results.failed}


@pytest.mark.parametrize(("source", "statements"), [(LINEAR, CAUSAL), (SPARSE, DISTRIBUTION)])
def test_weights_that_no_softmax_makes_are_left_alone(source, statements):
    results = judged(source, statements)
    assert told(results) == {}
    assert "equal-values" in results.names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k.cumsum(dim=1)).sum", "k.cumsum(dim=-2)).sum"),
        ("state) / total", "state) * total"),
        (".cumsum(dim=1)\n    total", ".cumsum(dim=1) / k.size(1)\n    total"),
    ],
    ids=["summed over heads", "multiplied", "divided twice"],
)
def test_a_wrong_normaliser_of_linear_attention_is_found(old, new):
    assert told(judged(LINEAR, CAUSAL, old, new))["equal-values"] == "RG303"


def test_an_ascending_sort_makes_no_sparsemax():
    found = told(judged(SPARSE, DISTRIBUTION, ", descending=True", ""))
    assert found["weights-sum-to-one"] == "RG303"


def test_large_inputs_are_not_asked_of_code_that_has_no_scores():
    assert "large-scores-finite" not in judged(LINEAR, CAUSAL).names
