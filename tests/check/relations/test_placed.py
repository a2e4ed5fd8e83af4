"""Whether content keeps its place around a softmax."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import Bench, Case
from regard.check.relations.placed import moves_content
from regard.check.subject import Loaded, load

pytest.importorskip("torch")

CROSS = {
    "inputs": {"q": "batch T_dec d_model", "k": "batch T_enc d_model"},
    "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
}
WAY = """
import torch

def attend(q, k):
    b, n, d = k.shape
    heads = {keys}
    weights = torch.softmax(q.view(b, -1, 4, d // 4).transpose(1, 2) @ heads.mT{bias}, -1)
    mixed = weights @ heads
    return {out}
"""
SPLIT = "k.view(b, n, 4, d // 4).transpose(1, 2)"
CUT = "k.reshape(b, 4, n, d // 4)"
MERGED = "mixed.transpose(1, 2).reshape(b, -1, d)"
BIAS = " - torch.arange(n) * 0.3"


def bench(keys: str = SPLIT, out: str = MERGED, bias: str = "") -> Bench:
    loaded = load(WAY.format(keys=keys, out=out, bias=bias), "way.py", "attend")
    assert isinstance(loaded, Loaded)
    return Case(loaded, Contract.from_mapping({**CROSS, "sizes": {"heads": 4}})).bench(0)


def test_a_bias_by_position_moves_no_content() -> None:
    assert not moves_content(bench(bias=BIAS))


def test_a_view_across_keys_moves_content_on_the_way_in() -> None:
    assert moves_content(bench(keys=CUT))


def test_a_merge_across_rows_moves_content_on_the_way_out() -> None:
    assert moves_content(bench(out="mixed.reshape(b, -1, d)"))
