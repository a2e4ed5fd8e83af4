"""What looks odd by the sizes of one run alone is not blamed for what fails."""

import pytest

pytest.importorskip("torch")

from regard.check.cause import causes
from regard.check.contract import Contract
from regard.check.finding import Finding
from regard.check.relations.base import Case, ask
from regard.check.subject import Loaded, load
from self_attention import CONTRACT as OWN

# Blocks of two on a text that is padded to 16 = 4*heads; the first block is counted twice.
BLOCKS = """
import torch
from torch import nn
from torch.nn import functional as F


class Attend(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.d_head = heads, d_model // heads
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)

    def forward(self, x, mask):
        n, t = mask.shape
        seen = F.pad(mask.float(), (0, 16 - t)).view(n, 8, 2).view(n, 1, 1, 16)
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) * self.d_head**-0.5
        scores = scores.masked_fill(seen[..., :t] == 0, -1e30)
        again = torch.cat((scores, scores[..., :2]), dim=-1).softmax(dim=-1)
        weights = again[..., :t]
        return (weights @ value).transpose(1, 2).flatten(2), weights
"""
CONTRACT = {**OWN, "sizes": {"T": 13}}


def found(source: str) -> list[Finding]:
    loaded = load(source, "/subjects/blocks.py", "Attend")
    assert isinstance(loaded, Loaded), loaded
    case = Case(loaded, Contract.from_mapping(CONTRACT))
    return causes(case, ask(case))


def test_a_view_of_an_axis_that_is_a_multiple_of_heads_by_chance_cuts_across_none() -> None:
    said = found(BLOCKS)
    assert said
    assert not any("cuts across" in f.message for f in said)


def test_a_view_across_heads_is_blamed_at_any_sizes() -> None:
    mixed = BLOCKS.replace(
        "x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)",
        "x.reshape(x.shape[0], self.heads, -1, self.d_head)",
    )
    assert any("cuts across" in f.message for f in found(mixed))
