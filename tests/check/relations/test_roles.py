"""Arguments that stand where another belongs, and results that no scale made infinite."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import judge

pytest.importorskip("torch")

READER = """
import torch
import torch.nn as nn


class Reader(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.n = n
        self.a, self.b, self.c = (nn.Linear(width, width) for _ in range(3))

    def split(self, x):
        return x.unflatten(-1, (self.n, -1)).transpose(1, 2)

    def forward(self, query, key, value):
        q, k = self.split(self.a(query)), self.split(self.b(KEYS))
        v = self.split(self.c(VALUES))
        weights = torch.softmax(q @ k.mT / q.size(-1) ** 0.5, -1)
        return (weights @ v).transpose(1, 2).flatten(2)
"""
CONTRACT = {
    "init": {"width": "d_model", "n": "heads"},
    "inputs": {
        "query": "batch T_dec d_model",
        "key": "batch T_enc d_model",
        "value": "batch T_enc d_model",
    },
    "returns": [{"name": "out", "axes": "batch T_dec d_model"}],
    "score": "scaled_dot",
}
CAUSAL = """
import torch


def attend(x):
    earlier = torch.ones(x.size(1), x.size(1)).tril(OFFSET).bool()
    scores = x @ x.mT / x.size(-1) ** 0.5
    return scores.masked_fill(~earlier, float("-inf")).softmax(-1) @ x
"""


def found(source: str, entry: str, contract: dict) -> dict[str, str]:
    results = judge(source, "f.py", entry, Contract.from_mapping(contract), seconds=60.0)
    assert not results.broken
    return {v.relation: v.rule for v in results.failed}


@pytest.mark.parametrize(
    ("keys", "values", "expected"),
    [
        ("key", "value", {}),
        ("value", "value", {}),  # one for both may be meant: other relations judge that
        ("value", "key", {"arguments-in-place": "RG504"}),
    ],
)
def test_key_and_value_that_are_exchanged_are_found(keys, values, expected):
    source = READER.replace("KEYS", keys).replace("VALUES", values)
    seen = found(source, "Reader", CONTRACT)
    assert {n: r for n, r in seen.items() if n == "arguments-in-place"} == expected


@pytest.mark.parametrize(("offset", "rules"), [("0", set()), ("-1", {"results-finite"})])
def test_what_is_not_finite_anyway_is_not_put_down_to_large_scores(offset, rules):
    contract = {
        "inputs": {"x": "batch T d_model"},
        "returns": [{"name": "out", "axes": "batch T d_model"}],
        "causal": "top_left",
    }
    seen = set(found(CAUSAL.replace("OFFSET", offset), "attend", contract))
    assert seen & {"results-finite", "large-scores-finite"} == rules
