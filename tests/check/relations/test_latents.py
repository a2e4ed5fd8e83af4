"""Latents that ask and are keys too, as in a perceiver."""

from typing import Any

import pytest

pytest.importorskip("torch")

from regard.check.contract import Contract
from regard.check.relations.base import judge

PERCEIVER = """
import torch
from torch import nn


class Perceiver(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.d_head = heads, d_model // heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)

    def forward(self, memory, hidden_states, mask):
        both = torch.cat((memory, hidden_states), dim=1)
        query = self.split(self.query(hidden_states))
        key, value = self.split(self.key(both)), self.split(self.value(both))
        scores = query @ key.transpose(-1, -2) * self.d_head**-0.5
        weights = scores.masked_fill(~mask[:, None, None], -1e30).softmax(dim=-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2)), weights
"""
CONTRACT: dict[str, Any] = {
    "init": {"d_model": "d_model", "heads": "heads"},
    "inputs": {
        "memory": "batch T_mem d_model",
        "hidden_states": "batch T_dec d_model",
        "mask": "batch T_mem+T_dec",
    },
    "kinds": {"mask": "keep"},
    "returns": [
        {"name": "context", "axes": "batch T_dec d_model"},
        {"name": "weights", "axes": "batch heads T_dec T_mem+T_dec"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "scaled_dot",
}


def failing(source: str) -> set[str]:
    stated = Contract.from_mapping(CONTRACT)
    results = judge(source, "/subjects/perceiver.py", "Perceiver", stated, seconds=60.0)
    assert not results.broken, results.broken
    return {v.rule for v in results.failed if v.level != "note"}


def test_a_latent_that_is_padding_moves_its_own_row_and_no_other() -> None:
    assert failing(PERCEIVER) == set()


@pytest.mark.parametrize(
    ("there", "put", "code"),
    [
        ("~mask[:, None, None]", "~mask[:, None, None].roll(1, -1)", "RG202"),
        ("~mask[:, None, None]", "mask[:, None, None]", "RG202"),
        ("torch.cat((memory, hidden_states)", "torch.cat((hidden_states, memory)", "RG202"),
    ],
    ids=["rolled", "turned", "swapped"],
)
def test_a_slip_in_the_joined_keys_is_found(there: str, put: str, code: str) -> None:
    assert there in PERCEIVER
    assert code in failing(PERCEIVER.replace(there, put))
