"""Arguments of unusual use in right code: what no relation may complain of."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import judge

pytest.importorskip("torch")

IDS_AS_MASK = """
import torch


def attend(x, ids):
    scores = x @ x.transpose(1, 2) / x.size(-1) ** 0.5
    scores = scores.masked_fill((ids == 0).unsqueeze(1), float("-inf"))
    return scores.softmax(dim=-1) @ x
"""
TABLE = """
import torch
import torch.nn.functional as F


def attend(q, k, v, r):
    n = q.size(1)
    by_offset = F.pad(q @ r.t(), (1, 0)).view(q.size(0), n + 1, n)[:, 1:]
    scores = (q @ k.transpose(1, 2) + by_offset) / q.size(-1) ** 0.5
    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ v
"""
FEW = """
import torch


def attend(q, k, v, keep):
    scores = torch.bmm(q, k.transpose(1, 2)) / q.size(-1) ** 0.5
    best = scores.topk(keep, dim=-1).indices
    hidden = torch.ones_like(scores, dtype=torch.bool).scatter(-1, best, False)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
    return torch.bmm(weights, v), weights
"""
GRAPH = """
import torch


def attend(nodes, edges):
    scores = (nodes @ nodes.t() / nodes.size(-1) ** 0.5).masked_fill(edges == 0, -1e9)
    weights = scores.softmax(dim=-1)
    return weights @ nodes, weights
"""
OTHERS = """
import torch


def attend(x):
    scores = x @ x.transpose(1, 2) / x.size(-1) ** 0.5
    itself = torch.eye(x.size(1)).bool()
    return scores.masked_fill(itself, -1e9).softmax(dim=-1) @ x
"""
ROW, KEYS = "batch T_dec d_h", "batch T_enc d_h"
CASES = {
    "ids that are read as a mask alone": (
        IDS_AS_MASK,
        {
            "inputs": {"x": "batch T d_h", "ids": "batch T"},
            "kinds": {"ids": "token_ids_pad0"},
            "returns": [{"name": "out", "axes": "batch T d_h"}],
            "score": "scaled_dot",
        },
    ),
    "a table of offsets that all examples share": (
        TABLE,
        {
            "inputs": {**dict.fromkeys("qkv", "batch T d_h"), "r": "T d_h"},
            "returns": [{"name": "out", "axes": "batch T d_h"}],
            "score": "scaled_dot",
            "causal": "top_left",
            "positions": "relative",
        },
    ),
    "a number of keys that is larger than one": (
        FEW,
        {
            "inputs": {"q": ROW, "k": KEYS, "v": "batch T_enc d_v", "keep": ""},
            "values": {"keep": 2},
            "returns": [
                {"name": "out", "axes": "batch T_dec d_v"},
                {"name": "weights", "axes": "batch T_dec T_enc"},
            ],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "score": "none",
        },
    ),
    "positions that read the others alone": (
        OTHERS,
        {
            "inputs": {"x": "batch T d_h"},
            "returns": [{"name": "out", "axes": "batch T d_h"}],
        },
    ),
    "edges of one graph": (
        GRAPH,
        {
            "inputs": {"nodes": "T d_h", "edges": "T T"},
            "kinds": {"edges": "keep_int"},
            "returns": [{"name": "out", "axes": "T d_h"}, {"name": "weights", "axes": "T T"}],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "score": "scaled_dot",
        },
    ),
}


def failing(source: str, statements: dict[str, object]) -> list[str]:
    results = judge(source, "f.py", "attend", Contract.from_mapping(statements), seconds=60.0)
    assert not results.broken, results.broken
    return [v.relation for v in results.failed]


@pytest.mark.parametrize(("source", "statements"), CASES.values(), ids=CASES)
def test_right_code_is_left_alone(source, statements):
    assert failing(source, statements) == []


def test_a_shared_table_whose_first_row_is_never_read_is_found():
    source, statements = CASES["a table of offsets that all examples share"]
    assert "inputs-matter" in failing(source.replace("(1, 0)", "(0, 1)"), statements)


def test_weights_that_sum_to_nothing_are_found_where_positions_read_themselves():
    source, statements = CASES["positions that read the others alone"]
    source = source.replace(".softmax(dim=-1) @ x", ".softmax(dim=-1).square() @ x")
    assert "repeated-keys" in failing(
        source.replace("torch.eye(x.size(1))", "torch.zeros(x.size(1))"), statements
    )
