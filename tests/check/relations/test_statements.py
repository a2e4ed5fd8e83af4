"""A statement of what is meant silences what it states, and nothing beside it."""

from typing import Any

import pytest

pytest.importorskip("torch")

from regard.check.contract import Contract
from regard.check.relations.base import Results, judge
from self_attention import CONTRACT as OWN

CAUSAL = {**OWN, "causal": "top_left"}
LAYER = """
import torch
from torch import nn
from torch.nn import functional as F


class Attend(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.d_head = heads, d_model // heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )
PARTS

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) * self.d_head**-0.5
        hidden = ~mask[:, None, None, :]
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
WEIGH
        context = (used @ value).transpose(1, 2).flatten(2)
        return self.out(context), weights
"""
# What an author means, by the statement that says so: statement, contract, text.
GUMBEL = """
        scores = scores.masked_fill(hidden, -1e30)
        weights = used = F.gumbel_softmax(scores, dim=-1)
"""
NOISE = """
        scores = scores + torch.randn_like(scores)
        weights = used = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
"""
SCALED = """
        weights = scores.masked_fill(hidden, -1e30).softmax(dim=-1)
        weights = used = weights * self.mix(scores)
"""
FORGETS = """
        gates = F.logsigmoid(self.gates(x)).transpose(1, 2).cumsum(dim=-1)
        scores = scores + gates[..., :, None] - gates[..., None, :]
        weights = used = scores.masked_fill(hidden | later, -1e30).softmax(dim=-1)
"""
SELECTS = """
        scores = scores.masked_fill(hidden | later, -1e30)
        chosen = scores[:, 0].relu() * (1.0 - torch.eye(x.shape[1]))
        scores = scores - F.pad(chosen, (0, 0, 1, -1)).cumsum(dim=-2)[:, None]
        weights = used = scores.softmax(dim=-1)
"""
BLOCKS = """
        place = torch.arange(x.shape[1])
        near = (place[:, None] // 4 == place // 4) | (place == 0)
        scores = scores.masked_fill(hidden | ~near, -1e30)
        weights = used = scores.softmax(dim=-1)
"""
MEANT = {
    "gumbel": ({"random": True}, OWN, GUMBEL, {"eval-repeatable"}),
    "noise": ({"random": True}, OWN, NOISE, {"eval-repeatable"}),
    "scaled": (
        {"reweighted": True},
        OWN,
        SCALED,
        {"weights-sum-to-one", "weights-not-negative", "weights-recomputed"},
    ),
    "forgets": ({"positions": "content"}, CAUSAL, FORGETS, {"mask-of-holes"}),
    "selects": ({"positions": "content"}, CAUSAL, SELECTS, {"mask-of-holes"}),
    "blocks": (
        {"sparse": True},
        OWN,
        BLOCKS,
        {"receptive-field", "weights-follow-pattern", "mask-of-holes", "key-order"},
    ),
}
# What is not asked where something else is meant.
LEFT_OUT = {
    "reweighted": {"weights-not-negative", "repeated-keys"},
    "sparse": {"key-order", "repeated-keys", "weights-recomputed"},
}


def asked(weigh: str, contract: dict[str, Any]) -> Results:
    parts = {
        "self.gates": "        self.gates = nn.Linear(d_model, heads)\n",
        "self.mix": "        self.mix = nn.Conv2d(heads, heads, 1)\n",
    }
    own = "".join(line for name, line in parts.items() if name in weigh)
    source = LAYER.replace("WEIGH\n", weigh.lstrip("\n")).replace("PARTS\n", own)
    stated = Contract.from_mapping(contract)
    results = judge(source, "/subjects/layer.py", "Attend", stated, seconds=60.0)
    assert not results.broken, results.broken
    return results


def failing(weigh: str, contract: dict[str, Any]) -> set[str]:
    return {v.relation for v in asked(weigh, contract).failed if v.level != "note"}


def codes(weigh: str, contract: dict[str, Any]) -> set[str]:
    return {v.rule for v in asked(weigh, contract).failed if v.level != "note"}


@pytest.mark.parametrize("meant", MEANT.values(), ids=list(MEANT))
def test_what_is_stated_is_silent_and_everything_else_is_asked(meant: Any) -> None:
    statement, contract, weigh, silenced = meant
    before, after = asked(weigh, contract), asked(weigh, {**contract, **statement})
    assert silenced <= {v.relation for v in before.failed}
    assert after.failed == []
    left_out = LEFT_OUT.get(next(iter(statement)), set())
    assert set(before.names) - set(after.names) <= left_out


KEPT = """
        if not hasattr(self, "kept") or self.kept.shape != key.shape:
            self.kept = key
        scores = query @ self.kept.transpose(-1, -2) * self.d_head**-0.5
"""
# A neighbouring bug: what was meant, what stands in its text, what is put there, the rule.
BUGS = {
    "draws and keeps the keys": ("gumbel", "\n", KEPT + "\n", "RG803"),
    "draws over the queries": ("gumbel", "dim=-1", "dim=-2", "RG301"),
    "draws and drops the mask": ("gumbel", "hidden,", "hidden & False,", "RG202"),
    "noise on the weights": (
        "noise",
        ".softmax(dim=-1)",
        ".softmax(dim=-1) * (1.0 + 0.3 * torch.randn_like(scores))",
        "RG303",
    ),
    "scales with weights over the queries": (
        "scaled",
        "softmax(dim=-1)",
        "softmax(-2)",
        "RG301",
    ),
    "scales and drops the mask": ("scaled", "hidden,", "hidden & False,", "RG202"),
    "scales others than it returns": (
        "scaled",
        "weights = used = weights * self.mix(scores)",
        "used = weights * self.mix(scores)",
        "RG304",
    ),
    "scales weights of other scores": (
        "scaled",
        "weights = scores.masked",
        "weights = (3.0 * scores).masked",
        "RG501",
    ),
    "forgets and reads ahead": ("forgets", "hidden | later", "hidden", "RG203"),
    "forgets by later gates": (
        "forgets",
        "gates[..., None, :]",
        "gates[..., None, :] * gates[..., -1:, None]",
        "RG203",
    ),
    "forgets and drops the mask": ("forgets", "hidden | later", "later", "RG202"),
    "selects and drops the mask": ("selects", "hidden | later", "later", "RG202"),
    "blocks and drops the mask": ("blocks", "hidden | ~near", "~near", "RG202"),
    "blocks and turns the mask": ("blocks", "hidden | ~near", "~hidden | ~near", "RG202"),
    "blocks over the queries": ("blocks", "dim=-1", "dim=-2", "RG301"),
    "selects by later queries": ("selects", ".cumsum(dim=-2)", ".flip(-2).cumsum(-2)", "RG203"),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=list(BUGS))
def test_a_neighbouring_bug_is_found_with_the_statement_made(bug: Any) -> None:
    kind, there, put, code = bug
    statement, contract, weigh, _ = MEANT[kind]
    assert there in weigh
    contract = {**contract, **statement}
    if code == "RG501":
        contract["score"] = "scaled_dot"
        assert codes(weigh, contract) == set()
    assert code in codes(weigh.replace(there, put, 1), contract)
