"""Heads that are modules of their own, and tables with an entry for every offset."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import Results, judge

pytest.importorskip("torch")

HEADS = """
import torch
import torch.nn as nn


class Head(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, size, bias=False) for _ in range(3))

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return torch.softmax(q @ k.transpose(1, 2) / q.size(-1) ** 0.5, dim=-1) @ v


class Attention(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.heads = nn.ModuleList([Head(width, width // n) for _ in range(n)])
        self.out = nn.Linear(width, width)

    def forward(self, x):
        return self.out(torch.cat([head(x) for head in self.heads], dim=-1))
"""
MANY = {
    "init": {"width": "d_model", "n": "heads"},
    "inputs": {"x": "batch T d_model"},
    "returns": [{"name": "out", "axes": "batch T d_model"}],
    "score": "scaled_dot",
}
FOLDED = """
import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.n = n
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, memory):
        b, size = len(x), x.size(2) // self.n
        q, k, v = (
            torch.cat(t.split(size, 2), 0) for t in (self.q(x), self.k(memory), self.v(memory))
        )
        weights = torch.softmax(q @ k.transpose(1, 2) / size ** 0.5, dim=-1)
        return torch.cat((weights @ v).split(b, 0), 2)
"""
READER = {
    **MANY,
    "inputs": {"x": "batch T_dec d_model", "memory": "batch T_enc d_model"},
    "returns": [{"name": "out", "axes": "batch T_dec d_model"}],
}
WINDOW = """
import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, dim, height, width):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.table = nn.Parameter(torch.randn((2 * height - 1) * (2 * width - 1)))
        rows, cols = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        down = rows.flatten()[:, None] - rows.flatten() + height - 1
        along = cols.flatten()[:, None] - cols.flatten() + width - 1
        self.register_buffer("index", down * (2 * width - 1) + along)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) * q.size(-1) ** -0.5 + self.table[self.index]
        return scores.softmax(dim=-1) @ v
"""
OFFSETS = {
    "init": {"dim": "d_emb", "height": "height", "width": "width"},
    "inputs": {"x": "batch height*width d_emb"},
    "returns": [{"name": "out", "axes": "batch height*width d_emb"}],
    "score": "scaled_dot",
    "positions": "relative",
}


def judged(source: str, statements: dict[str, object], old: str = "", new: str = "") -> Results:
    assert source.count(old) == 1 or not old
    text = source.replace(old, new) if old else source
    return judge(text, "f.py", "Attention", Contract.from_mapping(statements), seconds=60.0)


def told(results: Results) -> dict[str, str]:
    assert not results.broken
    return {v.relation: v.rule for v in results.failed}


@pytest.mark.parametrize(
    ("source", "statements"),
    [(HEADS, MANY), (FOLDED, READER), (WINDOW, OFFSETS)],
    ids=["modules in a list", "one after the other in the batch", "window"],
)
def test_heads_and_tables_in_their_usual_forms_are_left_alone(source, statements):
    assert told(judged(source, statements)) == {}


def test_one_module_listed_several_times_is_one_head():
    wrong = "[Head(width, width // n)] * n"
    right = "[Head(width, width // n) for _ in range(n)]"
    assert told(judged(HEADS, MANY, right, wrong)) == {"heads-differ": "RG401"}


def test_heads_folded_into_the_batch_are_not_unfolded_by_a_view():
    right, wrong = (
        "torch.cat((weights @ v).split(b, 0), 2)",
        "(weights @ v).view(b, -1, x.size(2))",
    )
    assert "examples-apart" in told(judged(FOLDED, READER, right, wrong))


def test_offsets_that_share_an_entry_are_counted():
    found = judged(WINDOW, OFFSETS, "down * (2 * width - 1)", "down * (2 * height - 1)")
    assert told(found) == {"offsets-apart": "RG504"}
