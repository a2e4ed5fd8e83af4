"""Right implementations and their contracts; the tests plant one mistake at a time."""

from dataclasses import dataclass
from typing import Any

from regard.check.contract import Contract
from regard.check.relations.base import Results, judge

__all__ = ["SUBJECTS", "Subject", "failed", "judged"]


@dataclass(frozen=True)
class Subject:
    """A text, the name in it, and the contract."""

    entry: str
    contract: dict[str, Any]
    source: str


_HEADS = '''
import torch
import torch.nn as nn


class Heads(nn.Module):
    """Causal multi-head self-attention; keep is True on real tokens."""

    def __init__(self, width, n_heads, p=0.3):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(width, 3 * width)
        self.drop = nn.Dropout(p)
        self.out = nn.Linear(width, width)

    def split(self, t):
        return t.view(t.size(0), t.size(1), self.n_heads, -1).transpose(1, 2)

    def forward(self, x, keep):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(2, 3) * q.size(-1) ** -0.5
        ahead = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        scores = scores.masked_fill(ahead, float("-inf"))
        scores = scores.masked_fill(~keep[:, None, None], float("-inf"))
        weights = scores.softmax(dim=-1)
        mixed = self.drop(weights) @ v
        return self.out(mixed.transpose(1, 2).flatten(2)), weights
'''

_CROSS = '''
import numpy as np


def attend(queries, keys, values, lengths):
    """Scaled dot-product attention; lengths counts the real keys."""
    scores = np.einsum("bqd,bkd->bqk", queries, keys) / np.sqrt(keys.shape[-1])
    real = np.arange(keys.shape[1])[None] < lengths[:, None]
    scores = np.where(real[:, None], scores, -1e9)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return np.einsum("bqk,bkd->bqd", weights, values), weights
'''

_ADDITIVE = '''
import torch
import torch.nn as nn


class Additive(nn.Module):
    """score = v . tanh(W state + U memory); mask is True on real memory."""

    def __init__(self, dec_size, enc_size, units):
        super().__init__()
        self.W = nn.Linear(dec_size, units, bias=False)
        self.U = nn.Linear(enc_size, units, bias=False)
        self.v = nn.Linear(units, 1, bias=False)

    def forward(self, state, memory, mask):
        scores = self.v(torch.tanh(self.W(state)[:, None] + self.U(memory))).squeeze(-1)
        weights = scores.masked_fill(~mask, -1e9).softmax(dim=1)
        return (weights[:, None] @ memory).squeeze(1), weights
'''

_DECODER = '''
import torch
import torch.nn as nn


class Decoder(nn.Module):
    """The state after the step scores the memory; returns tanh(W_c [context; state])."""

    def __init__(self, emb_size, size):
        super().__init__()
        self.cell = nn.GRUCell(emb_size, size)
        self.W_c = nn.Linear(2 * size, size, bias=False)

    def forward(self, words, state, memory):
        outputs, alignment = [], []
        for word in words.unbind(1):
            before, state = state, self.cell(word, state)
            alpha = torch.einsum("bd,btd->bt", state, memory).softmax(dim=-1)
            context = torch.einsum("bt,btd->bd", alpha, memory)
            outputs.append(torch.tanh(self.W_c(torch.cat([context, state], dim=-1))))
            alignment.append(alpha)
        return torch.stack(outputs, dim=1), torch.stack(alignment, dim=1)
'''

_ROTARY = '''
import torch


def turn(t):
    rate = 10000.0 ** (-torch.arange(0, t.size(-1), 2) / t.size(-1))
    angle = torch.outer(torch.arange(t.size(-2)).to(t.dtype), rate.to(t.dtype))
    a, b = t.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def attend(q, k, v):
    """Rotary attention; neighbouring query heads share a key head."""
    shared = q.size(1) // k.size(1)
    k, v = (t.repeat_interleave(shared, dim=1) for t in (k, v))
    scores = turn(q) @ turn(k).transpose(2, 3) / q.size(-1) ** 0.5
    return scores.softmax(dim=-1) @ v
'''

_ALIBI = '''
import torch


def attend(q, k, v):
    """Causal; head h lowers the score of a key by 2 ** (-8 (h + 1) / heads) a step."""
    heads, n = q.shape[1:3]
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    rows, cols = torch.arange(n)[:, None], torch.arange(n)
    scores = q @ k.transpose(2, 3) / q.size(-1) ** 0.5
    scores = scores + slopes[:, None, None] * (cols - rows)
    weights = scores.masked_fill(cols > rows, float("-inf")).softmax(dim=-1)
    return weights @ v, weights
'''

_POOL = '''
import torch


def pool(rows, w):
    """Pools the rows with a learned vector; rows of zeros are padding."""
    real = (rows != 0).any(dim=-1)
    weights = (rows @ w).masked_fill(~real, -1e9).softmax(dim=-1)
    return torch.einsum("bt,btd->bd", weights, rows), weights
'''

_LAYERS = '''
import torch
import torch.nn as nn


class TopLayer(nn.Module):
    """General score; the query is the top layer of the state (layers, batch, d_s)."""

    def __init__(self, dec_size, enc_size):
        super().__init__()
        self.W = nn.Linear(dec_size, enc_size, bias=False)

    def forward(self, state, memory):
        query = self.W(state[-1])
        weights = torch.einsum("bd,btd->bt", query, memory).softmax(dim=-1)
        return torch.einsum("bt,btd->bd", weights, memory), weights
'''

_LISTS = '''
import math


def attend(query, keys):
    """Dot attention of one query on plain lists."""
    scores = [sum(a * b for a, b in zip(query, key)) for key in keys]
    top = max(scores)
    e = [math.exp(s - top) for s in scores]
    weights = [x / sum(e) for x in e]
    width = len(keys[0])
    return [sum(w * key[i] for w, key in zip(weights, keys)) for i in range(width)], weights
'''

_OWN_BACKWARD = '''
import torch


class Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


def attend(query, keys):
    """score = sum of tanh(query + key), with a backward of its own."""
    scores = Squash.apply(query[:, None] + keys).sum(dim=-1)
    weights = scores.softmax(dim=-1)
    return torch.einsum("bt,btd->bd", weights, keys), weights
'''

_OVER = {"output": "weights", "sums_to_one_over": -1}

SUBJECTS: dict[str, Subject] = {
    "heads": Subject(
        "Heads",
        {
            "init": {"width": "d_model", "n_heads": "heads"},
            "inputs": {"x": "batch T d_model", "keep": "batch T"},
            "kinds": {"keep": "keep"},
            "returns": [
                {"name": "out", "axes": "batch T d_model"},
                {"name": "weights", "axes": "batch heads T T"},
            ],
            "weights": _OVER,
            "score": "scaled_dot",
            "causal": "top_left",
        },
        _HEADS,
    ),
    "cross": Subject(
        "attend",
        {
            "inputs": {
                "queries": "batch T_dec d_h",
                "keys": "batch T_enc d_h",
                "values": "batch T_enc d_v",
                "lengths": "batch",
            },
            "kinds": {"lengths": "lengths"},
            "returns": [
                {"name": "context", "axes": "batch T_dec d_v"},
                {"name": "weights", "axes": "batch T_dec T_enc"},
            ],
            "weights": _OVER,
            "score": "scaled_dot",
        },
        _CROSS,
    ),
    "additive": Subject(
        "Additive",
        {
            "init": {"dec_size": "d_s", "enc_size": "d_h", "units": "d_attn"},
            "inputs": {
                "state": "batch d_s",
                "memory": "batch T_enc d_h",
                "mask": "batch T_enc",
            },
            "kinds": {"mask": "keep"},
            "returns": [
                {"name": "context", "axes": "batch d_h"},
                {"name": "weights", "axes": "batch T_enc"},
            ],
            "weights": _OVER,
            "score": "additive",
        },
        _ADDITIVE,
    ),
    "decoder": Subject(
        "Decoder",
        {
            "init": {"emb_size": "d_emb", "size": "d_h"},
            "inputs": {
                "words": "batch T_dec d_emb",
                "state": "batch d_h",
                "memory": "batch T_enc d_h",
            },
            "returns": [
                {"name": "outputs", "axes": "batch T_dec d_h", "role": "attentional"},
                {"name": "weights", "axes": "batch T_dec T_enc"},
            ],
            "weights": _OVER,
            "score": "dot",
            "positions": "recurrent",
            "convention": "luong",
        },
        _DECODER,
    ),
    "rotary": Subject(
        "attend",
        {
            "inputs": {
                "q": "batch heads T_dec d_head",
                "k": "batch kv_heads T_enc d_head",
                "v": "batch kv_heads T_enc d_v",
            },
            "returns": [{"name": "context", "axes": "batch heads T_dec d_v"}],
            "score": "scaled_dot",
            "positions": "rotary",
            "sizes": {"heads": 4, "kv_heads": 2, "d_head": 8},
        },
        _ROTARY,
    ),
    "alibi": Subject(
        "attend",
        {
            "inputs": dict.fromkeys("qkv", "batch heads T d_head"),
            "returns": [
                {"name": "context", "axes": "batch heads T d_head"},
                {"name": "weights", "axes": "batch heads T T"},
            ],
            "weights": _OVER,
            "score": "scaled_dot",
            "positions": "alibi",
            "causal": "top_left",
        },
        _ALIBI,
    ),
    "pool": Subject(
        "pool",
        {
            "inputs": {"rows": "batch T_enc d_h", "w": "d_h"},
            "kinds": {"rows": "zero_padded"},
            "returns": [
                {"name": "context", "axes": "batch d_h"},
                {"name": "weights", "axes": "batch T_enc"},
            ],
            "weights": _OVER,
            "score": "pooling",
        },
        _POOL,
    ),
    "layers": Subject(
        "TopLayer",
        {
            "init": {"dec_size": "d_s", "enc_size": "d_h"},
            "inputs": {"state": "layers batch d_s", "memory": "batch T_enc d_h"},
            "returns": [
                {"name": "context", "axes": "batch d_h"},
                {"name": "weights", "axes": "batch T_enc"},
            ],
            "weights": _OVER,
            "score": "general",
            "layer": "top",
        },
        _LAYERS,
    ),
    "lists": Subject(
        "attend",
        {
            "inputs": {"query": "d_h", "keys": "T_enc d_h"},
            "returns": [
                {"name": "context", "axes": "d_h"},
                {"name": "weights", "axes": "T_enc"},
            ],
            "weights": _OVER,
            "score": "dot",
        },
        _LISTS,
    ),
    "own backward": Subject(
        "attend",
        {
            "inputs": {"query": "batch d_h", "keys": "batch T_enc d_h"},
            "returns": [
                {"name": "context", "axes": "batch d_h"},
                {"name": "weights", "axes": "batch T_enc"},
            ],
            "weights": _OVER,
        },
        _OWN_BACKWARD,
    ),
}


def judged(
    name: str, old: str = "", new: str = "", *, strict: bool = False, **statements: Any
) -> Results:
    """Judge a subject with one text replaced and some statements of its contract changed."""
    subject = SUBJECTS[name]
    assert subject.source.count(old) >= 1, f"{old!r} is not in {name}"
    contract = Contract.from_mapping({**subject.contract, **statements})
    source = subject.source.replace(old, new, 1) if old else subject.source
    path = f"/subjects/{name}.py"
    results = judge(source, path, subject.entry, contract, strict=strict, seconds=200.0)
    assert not results.broken, results.broken
    return results


def failed(results: Results) -> set[str]:
    """Names of the relations that fail, strict ones too."""
    return {v.relation for v in results.verdicts if v.state == "fails"}
