"""Queries and keys that are normalised: along the features that the product sums."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import judge

pytest.importorskip("torch")

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


def grouped(x):
    return F.normalize(x.unflatten(-1, (2, -1)), dim=-1).flatten(-2)


class Normed(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)

    def forward(self, x):
        b, n, width = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = {}
        weights = torch.softmax(4.0 * q @ k.mT, dim=-1)
        return (weights @ v).transpose(1, 2).reshape(b, n, width)
"""
CONTRACT = Contract.from_mapping(
    {
        "target": "normed.py:Normed",
        "init": {"width": "d_model", "heads": "heads"},
        "inputs": {"x": "batch T d_model"},
        "returns": [{"name": "out", "axes": "batch T d_model"}],
        "score": "none",
    }
)


def verdicts(operands: str) -> dict[str, str]:
    results = judge(SOURCE.format(operands), "normed.py", "Normed", CONTRACT)
    assert not results.broken
    return {v.relation: v.state for v in results.verdicts}


@pytest.mark.parametrize(
    ("operands", "state"),
    [
        ("F.normalize(q, dim=-1), F.normalize(k, dim=-1)", "holds"),
        ("grouped(q), grouped(k)", "holds"),
        ("F.normalize(q), F.normalize(k)", "fails"),
        ("F.normalize(q, dim=-1), F.normalize(k, dim=2)", "fails"),
    ],
)
def test_what_the_product_sums_over_is_what_is_normalised(operands: str, state: str) -> None:
    assert verdicts(operands)["normalised-features"] == state


def test_plain_operands_are_not_asked() -> None:
    assert "normalised-features" not in verdicts("q, k")
