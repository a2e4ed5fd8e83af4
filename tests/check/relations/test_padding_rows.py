"""Rows of padding, values of halves and late masks are the code's own affair; slips are not."""

from typing import Any

import pytest

pytest.importorskip("torch")

from regard.check.cause import causes
from regard.check.contract import Contract
from regard.check.relations.base import Case, ask
from regard.check.subject import Loaded, load
from self_attention import CONTRACT as OWN

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
        self.dropout = nn.Dropout(0.4)
        self.pick, self.gain = nn.Linear(d_model, 1), nn.Parameter(torch.ones(1))

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.d_head)).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) * self.d_head**-0.5
        hidden = ~mask[:, None, None, :]
        rows = mask[:, None, :, None]
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
WEIGH
        return self.out(context.transpose(1, 2).flatten(2)), weights
"""
# A row of padding has no weights at all.
EMPTIED = """
        weights = scores.masked_fill(hidden, -1e30).softmax(dim=-1) * rows
        context = self.dropout(weights) @ value
"""
# A row of padding weighs all keys alike, later ones too.
EVEN = """
        seen = rows & ~hidden & ~later
        weights = scores.masked_fill(~seen, -1e30).softmax(dim=-1)
        context = weights @ value
"""
# Two softmaxes that are one, over the halves of the values; the second is taken away.
HALVES = """
        hidden = hidden.expand_as(scores)
        parts = [part.repeat(1, 2, 1, 1) for part in value.chunk(2, dim=1)]
        seen = [scores.masked_fill(hidden, -1e30).softmax(dim=-1) for _ in parts]
        weights = seen[0]
        one, two = (w @ part for w, part in zip(seen, parts, strict=True))
        context = torch.cat((one, two), dim=-1)
        left, right = context.chunk(2, dim=1)
        context = (left - 0.3 * right).unflatten(-1, (2, self.d_head))
        context = context.transpose(2, 3).flatten(1, 2)
"""
# A choice by rank reaches the result, and so does a threshold beside it.
PICKED = """
        packed = torch.cat((self.pick(x).detach(), mask[..., None].float()), dim=-1)
        rank = (self.gain.detach() * packed)[..., 0].masked_fill(~mask, -1e30)
        most = rank.topk(min(6, x.shape[1]), dim=-1).indices
        chosen = torch.zeros_like(mask).scatter(1, most, True)
        seen = (packed[..., 1] > 0.5) & chosen
        weights = scores.masked_fill(~seen[:, None, None], -1e30).softmax(dim=-1)
        context = weights @ value
"""


def asked(weigh: str, **stated: Any) -> list[tuple[str, str]]:
    """Codes and relations of what is said, notes aside."""
    source = LAYER.replace("WEIGH\n", weigh.lstrip("\n"))
    if "self.pick" not in weigh:
        line = next(x for x in source.splitlines() if "self.pick" in x)
        source = source.replace(line + "\n", "")
    loaded = load(source, "/subjects/layer.py", "Attend")
    assert isinstance(loaded, Loaded), loaded
    case = Case(loaded, Contract.from_mapping({**OWN, **stated}))
    results = ask(case)
    assert not results.broken, results.broken
    return [(f.code, f.evidence.relation) for f in causes(case, results) if f.level != "note"]


@pytest.mark.parametrize(
    ("weigh", "stated"),
    [
        (EMPTIED, {}),
        (EVEN, {"causal": "top_left"}),
        (HALVES, {}),
        (PICKED, {"sparse": True}),
    ],
    ids=["emptied", "even", "halves", "picked"],
)
def test_what_padding_and_halves_do_is_the_codes_own(weigh: str, stated: Any) -> None:
    assert asked(weigh, **stated) == []


@pytest.mark.parametrize(
    ("weigh", "there", "put", "code", "stated"),
    [
        (EMPTIED, "* rows", "* (1.0 - 0.5 * rows)", "RG303", {}),
        (EMPTIED, "* rows", "* rows.roll(1, 2)", "RG201", {}),
        (
            EMPTIED,
            "self.dropout(weights)",
            "weights * (torch.rand_like(weights) > 0.4)",
            "",
            {},
        ),
        (EVEN, " & ~later", "", "RG203", {"causal": "top_left"}),
        (EVEN, "rows & ~hidden", "rows", "RG202", {"causal": "top_left"}),
        (HALVES, "masked_fill(hidden", "masked_fill(hidden & False", "RG2", {}),
        (HALVES, "part.repeat(1, 2, 1, 1)", "part.repeat(1, 2, 1, 1).flip(2)", "RG401", {}),
        (PICKED, "> 0.5) & chosen", "> -0.5) & (rank > -9e30)", "RG207", {"sparse": True}),
    ],
    ids=["halved", "shifted", "undropped", "ahead", "padding", "open", "flipped", "all"],
)
def test_a_neighbouring_slip_is_found(
    weigh: str, there: str, put: str, code: str, stated: Any
) -> None:
    assert there in weigh
    said = asked(weigh.replace(there, put, 1), **stated)
    assert any(found.startswith(code) for found, _ in said), said
