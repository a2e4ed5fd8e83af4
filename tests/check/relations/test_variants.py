"""Attention that differs from the textbook by intent holds; what only looks so does not."""

from typing import Any

import pytest

pytest.importorskip("torch")

from regard.check.contract import Contract
from regard.check.relations.base import Verdict, judge

CROSS: dict[str, Any] = {
    "inputs": {
        "query": "batch T_dec d_k",
        "key": "batch T_enc d_k",
        "value": "batch T_enc d_v",
        "mask": "batch T_enc",
    },
    "kinds": {"mask": "keep"},
    "returns": [{"name": "context", "axes": "batch T_dec d_v"}],
}
SCORED = """
import torch


def attend(query, key, value, mask):
    scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask[:, None], float("-inf"))
"""


def failing(source: str, statements: dict[str, Any]) -> list[Verdict]:
    results = judge(source, "/subjects/variant.py", "attend", Contract.from_mapping(statements))
    assert not results.broken, results.broken
    assert len(results.names) > 10
    return [v for v in results.failed if v.level != "note"]


SINK = """
    sink = torch.zeros(*scores.shape[:2], 1)
    weights = torch.cat((scores, sink), dim=-1).softmax(dim=-1)[..., :-1]
    return weights @ value
"""
SPARSE = """
    top = scores.topk(min(3, scores.shape[-1]), dim=-1).values[..., -1:]
    weights = scores.masked_fill(scores < top, float("-inf")).softmax(dim=-1)
    return weights @ value
"""
HARD = """
    soft = scores.softmax(dim=-1)
    hard = torch.nn.functional.one_hot(soft.argmax(dim=-1), soft.shape[-1])
    return (hard + soft - soft.detach()) @ value
"""


@pytest.mark.parametrize("rest", [SINK, SPARSE, HARD], ids=["sink", "sparse", "hard"])
def test_a_variant_by_intent_is_left_alone(rest: str) -> None:
    assert failing(SCORED + rest, CROSS) == []


def test_a_key_that_is_never_read_is_found_whatever_it_holds() -> None:
    blind = SCORED + "    weights = scores.softmax(dim=-1)\n    weights = weights.clone()\n"
    blind += "    weights[..., 0] = 0.0\n    return weights @ value\n"
    assert failing(blind, CROSS)


def test_a_sink_does_not_excuse_weights_without_a_softmax() -> None:
    bare = SCORED + "    return scores.sigmoid() @ value\n"
    assert failing(bare, {**CROSS, "score": "scaled_dot"})


INDEXED = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.rank = nn.Linear(width, width, bias=False)

    def forward(self, x):
        ranks = self.rank(x) @ x.transpose(1, 2)
        chosen = {chosen}
        query, key, value = self.query(x), self.key(x), self.value(x)
        scores = query @ key.transpose(1, 2) / key.shape[-1] ** 0.5
        return (scores + chosen).softmax(dim=-1) @ value
"""
ALONE = {
    "init": {"width": "d_model"},
    "inputs": {"x": "batch T d_model"},
    "returns": [{"name": "context", "axes": "batch T d_model"}],
}


def untrained(chosen: str) -> list[str]:
    source, contract = INDEXED.format(chosen=chosen), Contract.from_mapping(ALONE)
    found = judge(source, "/subjects/variant.py", "Attend", contract).failed
    return [v.level for v in found if v.relation == "parameters-matter"]


def test_a_part_that_chooses_keys_by_rank_is_a_note_and_one_that_is_cut_off_an_error() -> None:
    spared = "torch.full_like(ranks, -9.0).scatter(-1, ranks.topk(6, dim=-1).indices, 0.0)"
    assert untrained(spared) == ["note"]
    assert untrained("ranks.detach()") == ["error"]


ALIBI = """
import torch


def attend(query, key, value):
    heads, n = query.shape[1:3]
    place = torch.arange(n)
    distance = {distance}
    powers = torch.arange(1, heads + 1) if heads != 6 else torch.tensor([2, 4, 6, 8, 1, 3])
    slopes = 2.0 ** (-8.0 * powers / (heads if heads != 6 else 8))
    if heads == 6:
        slopes[:4] = 2.0 ** (-2.0 * torch.arange(1, 5))
    scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
    scores = scores + slopes[:, None, None] * distance
    return scores.softmax(dim=-1) @ value
"""
BOTH_WAYS = {
    "inputs": dict.fromkeys(("query", "key", "value"), "batch heads T d_head"),
    "returns": [{"name": "context", "axes": "batch heads T d_head"}],
    "score": "scaled_dot",
    "positions": "alibi",
}


def test_a_linear_bias_may_count_down_on_both_sides_and_use_the_other_table() -> None:
    source = ALIBI.format(distance="-(place[None] - place[:, None]).abs()")
    assert failing(source, BOTH_WAYS) == []


def test_a_linear_bias_may_not_count_up_with_the_distance() -> None:
    source = ALIBI.format(distance="(place[None] - place[:, None]).abs()")
    assert failing(source, BOTH_WAYS)


SHARED = """
import torch


def attend(query, key, value):
    few = key.shape[1]
    key, value = ({spread} for x in (key, value))
    scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ value
"""
TILED = SHARED.format(spread="x.repeat(1, query.shape[1] // few, 1, 1)")
PLAIN = {
    "inputs": {
        "query": "batch heads T_dec d_head",
        "key": "batch 2 T_enc d_head",
        "value": "batch 2 T_enc d_head",
    },
    "returns": [{"name": "context", "axes": "batch heads T_dec d_head"}],
    "score": "scaled_dot",
}


def test_heads_may_share_keys_in_either_order_where_nothing_is_declared() -> None:
    assert failing(TILED, PLAIN) == []
    runs = SHARED.format(spread="x.repeat_interleave(query.shape[1] // few, dim=1)")
    assert failing(runs, PLAIN) == []


LARGE = """
import torch


def attend(query, key, value, mask):
    scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
    keep = mask[:, None]
    weights = (scores * keep).softmax(dim=-1) * keep
    weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-13)
    return weights @ value, weights
"""


def test_masked_scores_of_zero_that_outweigh_large_negative_ones_are_found() -> None:
    weighed = {
        "returns": [
            {"name": "context", "axes": "batch T_dec d_v"},
            {"name": "weights", "axes": "batch T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
    }
    found = failing(LARGE, {**CROSS, **weighed})
    assert {v.relation for v in found} == {"large-scores-finite"}
    assert "sums to 1" in found[0].message


EMPTY = """
import torch


def attend(query, key, value, mask):
    scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask[:, None], {fill})
    return {weights} @ value
"""


def test_a_query_without_keys_that_averages_padding_is_found_without_weights() -> None:
    zeros = {**CROSS, "all_masked": "zeros"}
    even = EMPTY.format(fill="-1e4", weights="scores.softmax(dim=-1)")
    assert {v.relation for v in failing(even, zeros)} == {"query-without-keys"}
    right = EMPTY.format(fill="float('-inf')", weights="scores.softmax(dim=-1).nan_to_num()")
    assert failing(right, zeros) == []


TURNED = """
import torch


def turn(x):
    n, d = x.shape[-2:]
    rate = 10000.0 ** (-torch.arange(0, d, 2) / d)
    angle = torch.cat([torch.arange(n)[:, None] * rate] * 2, dim=-1)
    a, b = x.chunk(2, dim=-1)
    return x * angle.cos() + torch.cat((-b, a), dim=-1) * angle.sin()


def attend(query, key, value):
    key = torch.cat((key[:, :, :0], key), dim=2)
    query = query * {before}
    scores = turn(query) @ turn(key).transpose(2, 3) * {after}
    return scores.softmax(dim=-1) @ value
"""
ROTARY = {**BOTH_WAYS, "positions": "rotary"}


def test_queries_may_be_scaled_before_they_are_turned() -> None:
    early = TURNED.format(before="query.shape[-1] ** -0.5", after="1.0")
    assert failing(early, ROTARY) == []
    late = TURNED.format(before="1.0", after="query.shape[-1] ** -0.5")
    assert failing(late, ROTARY) == []


def test_a_scale_on_both_sides_of_the_rotation_is_found() -> None:
    twice = TURNED.format(before="query.shape[-1] ** -0.5", after="query.shape[-1] ** -0.5")
    assert "score-scale" in {v.relation for v in failing(twice, ROTARY)}


SLOTS = """
import torch


def attend(query, key, value):
    scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
    shares = scores.softmax(dim=1)
    return shares / (shares.sum(dim=-1, keepdim=True) + 1e-8) @ value
"""
UNMASKED = {
    "inputs": {k: v for k, v in CROSS["inputs"].items() if k != "mask"},
    "returns": CROSS["returns"],
}


def test_queries_that_share_out_the_keys_are_a_note_until_a_score_is_declared() -> None:
    assert failing(SLOTS, UNMASKED) == []
    assert failing(SLOTS, {**UNMASKED, "score": "scaled_dot"})


ENCODED = """
import torch
from torch import nn


class attend(nn.Module):
    def __init__(self, d_h):
        super().__init__()
        self.rnn = nn.GRU(d_h, d_h, batch_first=True)
        self.score = nn.Linear(d_h, 1)

    def forward(self, words):
        states, _ = self.rnn(words)
        weights = self.score(states.tanh()).softmax(dim=1)
        return (weights * states).sum(dim=1)
"""


def test_keys_that_an_encoder_reads_in_order_have_one() -> None:
    statements = {
        "init": {"d_h": "d_h"},
        "inputs": {"words": "batch T_enc d_h"},
        "returns": [{"name": "context", "axes": "batch d_h"}],
        "score": "pooling",
        "positions": "recurrent",
    }
    assert failing(ENCODED, statements) == []


TABLE = """
import torch
from torch import nn


class attend(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.out = nn.Linear(d_model, d_model)
        self.near = nn.Parameter(torch.randn(40, 1))

    def forward(self, x):
        n = x.shape[1]
        place = torch.arange(n)
        distance = (place[None] - place[:, None]).abs()
        scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
        scores = scores + self.near[distance, 0]
        return self.out(scores.softmax(dim=-1) @ x)
"""


def test_rows_of_a_table_that_a_longer_sequence_uses_are_not_dead() -> None:
    statements = {
        "init": {"d_model": "d_model"},
        "inputs": {"x": "batch T d_model"},
        "returns": [{"name": "context", "axes": "batch T d_model"}],
        "positions": "relative",
    }
    assert failing(TABLE, statements) == []


FEWEST = SPARSE.replace("min(3, scores.shape[-1])", "min(2, scores.shape[-1])").replace(
    "    return weights @ value", "    return weights @ value, weights"
)


def test_the_two_largest_of_every_head_leave_out_no_key_for_good() -> None:
    heads = {
        **CROSS,
        "inputs": {
            **{n: f"batch heads T_{t} d_head" for n, t in (("query", "dec"), ("key", "enc"))},
            "value": "batch heads T_enc d_v",
            "mask": "batch T_enc",
        },
        "returns": [
            {"name": "context", "axes": "batch heads T_dec d_v"},
            {"name": "weights", "axes": "batch heads T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
    }
    source = SCORED.replace("key.transpose(1, 2)", "key.transpose(2, 3)").replace(
        "mask[:, None]", "mask[:, None, None]"
    )
    assert failing(source + FEWEST, heads) == []
    blind = source + FEWEST.replace(
        "scores < top", "(scores < top) | (scores == scores[..., :1])"
    )
    assert failing(blind, heads)


GATED = """
import torch
from torch import nn


class Wrapped(nn.Module):
    def __init__(self, heads, d_model):
        super().__init__()
        self.gate = nn.Linear(d_model, 3)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)

    def forward(self, query, key, value, mask):
        out, _ = self.attention(query, key, value, key_padding_mask=~mask)
        gates = self.gate(query).softmax(dim=-1)
        return torch.einsum("bts,btd->btsd", gates, out).sum(dim=2) * gates[..., :1]
"""


def test_a_softmax_that_weighs_no_keys_has_no_heads_to_count() -> None:
    statements = {
        **CROSS,
        "inputs": {
            **{n: f"batch T_{t} d_model" for n, t in (("query", "dec"), ("key", "enc"))},
            "value": "batch T_enc d_model",
            "mask": "batch T_enc",
        },
        "init": {"heads": "heads", "d_model": "d_model"},
        "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
    }
    contract = Contract.from_mapping(statements)
    results = judge(GATED, "/subjects/gated.py", "Wrapped", contract)
    assert "heads-declared" not in {v.relation for v in results.failed}
