"""A step with a cache: keys are the cached ones and the new one, and go with their values."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import Bench, Case, Results, judge
from regard.check.relations.layout import layout
from regard.check.subject import Loaded, load

SOURCE = '''
import numpy as np


def attend(q, k, v, past_k, past_v):
    """One step: the new key and value join those that are kept."""
    keys = np.concatenate([past_k, k], axis=1)
    values = np.concatenate([past_v, v], axis=1)
    scores = q @ keys.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ values
'''
STEP = {
    "inputs": {
        "q": "batch 1 d_h",
        "k": "batch 1 d_h",
        "v": "batch 1 d_v",
        "past_k": "batch T_mem d_h",
        "past_v": "batch T_mem d_v",
    },
    "returns": [{"name": "context", "axes": "batch 1 d_v"}],
    "score": "scaled_dot",
}
SEVERAL = {
    **STEP,
    "inputs": {n: a.replace(" 1 ", " T_dec ") for n, a in STEP["inputs"].items()},  # type: ignore[attr-defined]
    "returns": [{"name": "context", "axes": "batch T_dec d_v"}],
}


def judged(old: str = "", new: str = "", statements: dict[str, object] = STEP) -> Results:
    assert old in SOURCE
    contract = Contract.from_mapping(statements)
    source = SOURCE.replace(old, new, 1) if old else SOURCE
    results = judge(source, "/subjects/cached.py", "attend", contract, strict=True)
    assert not results.broken, results.broken
    return results


def bench(statements: dict[str, object]) -> Bench:
    loaded = load(SOURCE, "/subjects/cached.py", "attend")
    assert isinstance(loaded, Loaded)
    return Case(loaded, Contract.from_mapping(statements)).bench(0)


@pytest.mark.parametrize("statements", [STEP, SEVERAL], ids=["one query", "several"])
def test_a_right_step_holds_every_relation(statements: dict[str, object]) -> None:
    results = judged(statements=statements)
    assert [v.relation for v in results.verdicts if v.state == "fails"] == []
    assert {"key-order", "formula", "receptive-field", "score-scale"} <= set(results.names)


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        ("[past_v, v]", "[v, past_v]", "key-order"),
        ("[past_v, v]", "[v, past_v]", "formula"),
        ("[past_v, v]", "[past_v, past_v[:, -1:]]", "inputs-matter"),
        ("[past_k, k]", "[past_k[:, 1:], k, k]", "key-order"),
        ("np.sqrt(q.shape[-1])", "q.shape[-1]", "score-scale"),
        ("e.sum(axis=-1, keepdims=True)", "e.sum(axis=0, keepdims=True)", "softmax-over-keys"),
    ],
)
def test_a_planted_mistake_of_a_step_fails_the_relation_about_it(
    old: str, new: str, relation: str
) -> None:
    results = judged(old, new)
    assert relation in {v.relation for v in results.verdicts if v.state == "fails"}


def test_keys_of_a_step_are_the_cached_and_the_new_one() -> None:
    here = layout(bench(STEP))
    assert (here.keys, here.queries, here.joined) == (("T_mem+1",), (), "T_mem+1")
    assert here.key_parts() == ["k", "v", "past_k", "past_v"]
    assert here.query_parts() == ["q"]
    assert sorted(here.at_key(2)) == ["past_k", "past_v"]
    assert sorted(here.at_key(6)) == ["k", "v"]


@pytest.mark.parametrize(
    ("inputs", "axis"),
    [
        ({"q": "batch T_dec d_h", "c": "batch T_dec d_h", "old": "batch T_mem d_h"}, "T_dec"),
        ({"q": "batch heads 1 d_h", "k": "batch 1 d_h", "old": "batch T_mem d_h"}, "1"),
        ({"q": "batch 1 d_h", "memory": "batch T_mem d_h"}, None),
        ({"q": "batch 1 d_h", "keys": "batch T_mem d_h", "values": "batch T_mem d_v"}, None),
        ({"x": "batch T d_model", "memory": "batch T_mem d_model"}, None),
        ({"q": "batch 1 d_h", "keys": "batch T_enc d_h"}, None),
    ],
)
def test_new_keys_join_a_cache_only_where_every_cached_argument_has_a_partner(
    inputs: dict[str, str], axis: str | None
) -> None:
    contract = Contract.from_mapping({"inputs": inputs})
    assert contract.new_axis == axis
    if axis is not None:
        assert contract.key_axis == f"T_mem+{axis}"


ROTARY = """
import torch


def rotate(x, start):
    d = x.size(-1)
    rate = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angle = torch.arange(start, start + x.size(2), dtype=x.dtype)[:, None] * rate
    cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


def attend(q, k, v, past_k, past_v):
    past = past_k.size(2)
    q, k = rotate(q, past), rotate(k, past)
    k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
    new, total = q.size(2), k.size(2)
    ahead = torch.ones(new, total, dtype=torch.bool).triu(total - new + 1)
    scores = q @ k.transpose(2, 3) / q.size(-1) ** 0.5
    return scores.masked_fill(ahead, float("-inf")).softmax(dim=-1) @ v
"""
NEW, PAST = "batch heads T_dec d_head", "batch heads T_mem d_head"
TURNED = {
    "inputs": {"q": NEW, "k": NEW, "v": NEW, "past_k": PAST, "past_v": PAST},
    "returns": [{"name": "out", "axes": NEW}],
    "score": "scaled_dot",
    "causal": "bottom_right",
    "positions": "rotary",
}
BLOCK = """
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.n = n
        self.made, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, past_k, past_v):
        b, t, width = x.shape
        q, k, v = (
            p.view(b, t, self.n, -1).transpose(1, 2) for p in self.made(x).chunk(3, dim=-1)
        )
        k = torch.cat([past_k, k], dim=2)
        v = torch.cat([past_v, v], dim=2)
        seen = torch.ones(k.size(2), k.size(2), dtype=torch.bool).tril()[k.size(2) - t :]
        scores = q @ k.transpose(2, 3) / q.size(-1) ** 0.5
        y = scores.masked_fill(~seen, float("-inf")).softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, width)), k, v
"""
LONGER = "batch heads T_mem+T_dec d_head"
GROWING = {
    "init": {"width": "d_model", "n": "heads"},
    "inputs": {"x": "batch T_dec d_model", "past_k": PAST, "past_v": PAST},
    "returns": [
        {"name": "out", "axes": "batch T_dec d_model"},
        {"name": "keys", "axes": LONGER},
        {"name": "values", "axes": LONGER},
    ],
    "score": "scaled_dot",
    "causal": "bottom_right",
}


def failing(source: str, entry: str, statements: dict[str, object]) -> dict[str, str]:
    contract = Contract.from_mapping(statements)
    results = judge(source, "/subjects/cached.py", entry, contract, strict=True, seconds=60.0)
    assert not results.broken, results.broken
    return {v.relation: v.rule for v in results.verdicts if v.state == "fails"}


def test_cached_keys_that_are_turned_already_hold_every_relation() -> None:
    pytest.importorskip("torch")
    assert failing(ROTARY, "attend", TURNED) == {}


def test_new_queries_that_are_turned_from_position_0_on_are_found() -> None:
    pytest.importorskip("torch")
    wrong = ROTARY.replace("rotate(q, past), rotate(k, past)", "rotate(q, 0), rotate(k, 0)")
    assert failing(wrong, "attend", TURNED)["new-steps-after-cache"] == "RG504"


def test_a_block_that_hands_back_its_longer_cache_holds_every_relation() -> None:
    pytest.importorskip("torch")
    assert failing(BLOCK, "Block", GROWING) == {}


def test_new_keys_before_the_cached_ones_are_found() -> None:
    pytest.importorskip("torch")
    wrong = BLOCK.replace("[past_k, k]", "[k, past_k]")
    assert "receptive-field" in failing(wrong, "Block", GROWING)
