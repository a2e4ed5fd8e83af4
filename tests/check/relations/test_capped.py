"""Capped scores and differences of softmaxes are left alone; slips beside them are found."""

from typing import Any

import pytest

pytest.importorskip("torch")

from regard.check.contract import Contract
from regard.check.relations.base import Results, judge

STATED: dict[str, Any] = {
    "init": {"width": "heads*d_head", "heads": "heads"},
    "inputs": {"x": "batch T heads*d_head"},
    "returns": [{"name": "context", "axes": "batch T heads*d_head"}],
}
CAPPED = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, width, heads, bound=7.0):
        super().__init__()
        self.heads, self.d_head, self.bound = heads, width // heads, bound
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def turned(self, x):
        rate = 10000 ** (-torch.arange(0, self.d_head, 2) / self.d_head)
        angle = torch.arange(x.shape[-2])[:, None] * rate
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        one, two = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-two, one), dim=-1) * sin

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)

    def forward(self, x):
        query, key, value = (SPLIT for f in (self.query, self.key, self.value))
        scores = self.turned(query) @ self.turned(key).mT
        SCORES
        context = scores.softmax(dim=-1) @ value
        return self.out(context.transpose(1, 2).flatten(2))
"""
SPLIT = "self.split(f(x))"
CUT_ACROSS = "f(x).reshape(x.shape[0], self.heads, x.shape[1], self.d_head)"
SCORES = {
    "divided": "scores = self.bound * torch.tanh(scores / self.d_head**0.5 / self.bound)",
    "in one": "scores = torch.tanh(scores / (self.d_head**0.5 * self.bound)) * self.bound",
    "times": "scores = torch.tanh(scores * self.d_head**-0.5 * (1 / self.bound)) * self.bound",
}
DIFFERENCE = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.d_head = heads, width // heads // 2
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.share = nn.Parameter(torch.full((1,), 0.4))

    def forward(self, x):
        b, t, width = x.shape
        query, key = (
            f(x).view(b, t, 2 * self.heads, self.d_head).transpose(1, 2)
            for f in (self.query, self.key)
        )
        value = self.value(x).view(b, t, self.heads, 2 * self.d_head).transpose(1, 2)
        weights = (query @ key.mT / self.d_head**0.5).softmax(dim=-1)
        one, two = JOINED
        context = (one - self.share * two) @ value
        return self.out(MERGED)
"""
JOINED = {
    "neighbours": "weights.unflatten(1, (self.heads, 2)).unbind(dim=2)",
    "halves": "weights.chunk(2, dim=1)",
}
MERGED = "context.transpose(1, 2).reshape(b, t, width)"
IN_PLACE = "context.reshape(b, t, width)"


def asked(text: str, **more: Any) -> Results:
    contract = Contract.from_mapping({**STATED, **more})
    return judge(text, "attend.py", "Attend", contract)


def failed(text: str, **more: Any) -> set[str]:
    found = asked(text, **more)
    assert not found.broken
    return {v.rule for v in found.failed}


def capped(scores: str, split: str = SPLIT) -> str:
    return CAPPED.replace("SCORES", scores).replace("SPLIT", split)


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("positions", ["rotary", "recurrent"])
def test_scores_within_bounds_are_those_that_are_declared(scores: str, positions: str) -> None:
    found = asked(capped(scores), score="scaled_dot", positions=positions)
    assert [v.message for v in found.failed] == []
    assert "weights-recomputed" in found.names


def test_heads_that_are_cut_across_positions_are_found_under_a_cap() -> None:
    text = capped(SCORES["divided"], CUT_ACROSS)
    assert "RG401" in failed(text, score="scaled_dot", positions="rotary")


def test_a_bound_that_is_another_one_behind_the_tangent_is_no_cap() -> None:
    scores = "scores = 3.0 * torch.tanh(scores / self.d_head**0.5 / self.bound)"
    assert failed(capped(scores), score="scaled_dot", positions="rotary") == {"RG504"}


@pytest.mark.parametrize("joined", JOINED.values(), ids=JOINED)
def test_a_difference_of_two_softmaxes_meets_values_head_by_head(joined: str) -> None:
    text = DIFFERENCE.replace("JOINED", joined).replace("MERGED", MERGED)
    found = asked(text)
    assert [v.message for v in found.failed] == []
    assert {"context-recomputed", "heads-declared"} <= set(found.names)


def test_heads_that_are_merged_in_place_are_found_behind_a_difference() -> None:
    text = DIFFERENCE.replace("JOINED", JOINED["halves"]).replace("MERGED", IN_PLACE)
    assert failed(text) & {"RG402", "RG103"}


def test_one_softmax_too_many_a_head_is_found_where_nothing_joins_them() -> None:
    text = DIFFERENCE.replace("JOINED", JOINED["halves"]).replace("MERGED", MERGED)
    text = text.replace(
        "(one - self.share * two) @ value", "weights @ value.repeat(1, 2, 1, 1)"
    )
    text = text.replace("self.out(", "self.out(self.share * 0 + ").replace(
        MERGED, "context[:, : self.heads].transpose(1, 2).reshape(b, t, width)"
    )
    assert "RG401" in failed(text)
