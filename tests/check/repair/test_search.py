"""The search finds repairs and says honestly what they are worth."""

import linecache

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import judge
from regard.check.repair import Search, search

NUMPY = """
import numpy as np


def attend(queries, keys, values):
    scores = queries @ keys.T / np.sqrt(keys.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ values, weights
"""
CONTRACT = Contract.from_mapping(
    {
        "inputs": {"queries": "T_dec d_h", "keys": "T_enc d_h", "values": "T_enc d_v"},
        "returns": [
            {"name": "context", "axes": "T_dec d_v"},
            {"name": "weights", "axes": "T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
    }
)
HEADS = """
import torch.nn as nn


class Heads(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, t):
        return t.view(t.size(0), t.size(1), self.n_heads, -1).transpose(1, 2)

    def forward(self, x, keep):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(2, 3) * q.size(-1) ** -0.5
        weights = scores.masked_fill(~keep[:, None, None], -1e9).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2)), weights
"""
HEADS_CONTRACT = Contract.from_mapping(
    {
        "init": {"width": "d_model", "n_heads": "heads"},
        "inputs": {"x": "batch T d_model", "keep": "batch T"},
        "kinds": {"keep": "keep"},
        "returns": [
            {"name": "out", "axes": "batch T d_model"},
            {"name": "weights", "axes": "batch heads T T"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
    }
)


def looked_for(source: str, entry: str, contract: Contract, *, seconds: float = 60.0) -> Search:
    failed = judge(source, "looked.py", entry, contract).failed
    assert failed
    return search(source, "looked.py", entry, contract, failed, seconds=seconds)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("e.sum(axis=-1, keepdims=True)", "e.sum(axis=-1)"),
        ("e.sum(axis=-1, keepdims=True)", "e.sum(axis=0, keepdims=True)"),
        (" / np.sqrt(keys.shape[-1])", " / keys.shape[-1]"),
        ("weights @ values, weights", "weights.T @ values, weights"),
    ],
)
def test_a_mistake_in_numpy_code_is_mended_with_proof(right: str, wrong: str) -> None:
    found = looked_for(NUMPY.replace(right, wrong), "attend", CONTRACT)
    assert [f.status for f in found.fixes] == ["proven"]
    again = judge(found.survivors[0].source, "looked.py", "attend", CONTRACT, strict=True)
    assert again.all_hold


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("~keep[:, None, None]", "keep[:, None, None]"),
        ("softmax(dim=-1)", "softmax(dim=1)"),
        ("(weights @ v).transpose(1, 2).flatten(2)", "(weights @ v).reshape(x.shape)"),
    ],
)
def test_a_mistake_in_a_layer_is_mended_with_proof(right: str, wrong: str) -> None:
    pytest.importorskip("torch")
    found = looked_for(HEADS.replace(right, wrong), "Heads", HEADS_CONTRACT)
    assert [f.status for f in found.fixes] == ["proven"]


def test_without_time_nothing_is_found_and_the_search_says_so() -> None:
    source = NUMPY.replace("e.sum(axis=-1, keepdims=True)", "e.sum(axis=0, keepdims=True)")
    found = looked_for(source, "attend", CONTRACT, seconds=0.0)
    assert (found.fixes, found.complete) == ((), False)


def test_a_file_that_no_small_edit_mends_has_no_fix() -> None:
    source = "import numpy as np\n\n\ndef attend(queries, keys, values):\n    return 1, 2\n"
    found = looked_for(source, "attend", CONTRACT)
    assert found.fixes == ()


def test_the_text_that_tracebacks_read_is_the_original_again() -> None:
    source = NUMPY.replace("e.sum(axis=-1, keepdims=True)", "e.sum(axis=-1)")
    looked_for(source, "attend", CONTRACT)
    assert "".join(linecache.cache["looked.py"][2]) == source
