"""A call depends on its arguments alone."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import judge

pytest.importorskip("torch")

SOURCE = """
import torch
import torch.nn as nn


class Additive(nn.Module):
    def __init__(self, d_s, d_h, d_attn):
        super().__init__()
        self.W = nn.Linear(d_s, d_attn, bias=False)
        self.U = nn.Linear(d_h, d_attn, bias=False)
        self.v = nn.Linear(d_attn, 1, bias=False)
        self.projected = None

    def forward(self, query, key):
        {}
        pairs = torch.tanh(self.W(query).unsqueeze(1) + self.projected)
        weights = torch.softmax(self.v(pairs).squeeze(-1), dim=-1)
        return torch.bmm(weights.unsqueeze(1), key).squeeze(1), weights
"""
CONTRACT = Contract.from_mapping(
    {
        "target": "once.py:Additive",
        "init": {"d_s": "d_s", "d_h": "d_h", "d_attn": "d_attn"},
        "inputs": {"query": "batch d_s", "key": "batch T_enc d_h"},
        "returns": [
            {"name": "context", "axes": "batch d_h"},
            {"name": "weights", "axes": "batch T_enc"},
        ],
        "score": "additive",
    }
)


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("self.projected = self.U(key)", "holds"),
        # Asked with the same keys again, it is right whatever was asked between.
        ("self.projected = self.U(key) if self.projected is None else self.projected", "fails"),
    ],
)
def test_what_is_kept_of_the_first_call_is_found(line: str, state: str) -> None:
    results = judge(SOURCE.format(line), "once.py", "Additive", CONTRACT)
    assert not results.broken
    assert {v.relation: v.state for v in results.verdicts}["used-equals-fresh"] == state
