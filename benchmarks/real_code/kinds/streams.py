"""Attention with more than one sequence: keys of two, streams side by side, both ways."""

import inspect
from typing import Any

from real_code.kinds.base import Asked, Way, cross, own

__all__ = ["ways"]

_CONTEXT = {"name": "context", "axes": "batch T d_model"}
_OF_OWN = {"name": "weights", "axes": "batch heads T T"}
_OVER_KEYS = {"output": "weights", "sums_to_one_over": -1}

# -- places, segments and a stream that knows no content -------------------------------------

_PLACED_BUILD = """
config = CONFIG
self.width = d_model
self.attention = NAME(config)
"""
_PLACED_CALL = """
t, n = hidden_states.shape[:2]
hidden = (~mask).float().T[None, :, :, None].expand(t, t, n, 1)
angle = torch.arange(t, -t, -1.0)[:, None] * (0.8 ** torch.arange(self.width))
places = angle.sin()[:, None].expand(-1, n, -1)
part = torch.arange(t) // 2 % 2
apart = (part[:, None] != part).long()
segments = F.one_hot(apart, 2).float()[:, :, None].expand(t, t, n, 2)
"""
_PLACED_ALONE = """
found = self.attention(
    hidden_states, None, hidden, None, places, segments, output_attentions=True
)
return found[0], found[2].permute(2, 3, 0, 1)
"""
_PLACED_TWICE = """
found = self.attention(
    hidden_states, query, hidden, hidden, places, segments, output_attentions=True
)
return found[1], found[2][1].permute(2, 3, 0, 1)
"""
_PLACED_SOME = """
picked = torch.arange(query.shape[0]).clamp(max=t - 1)
mapping = F.one_hot(picked, t).float()[:, :, None].expand(-1, t, n)
return self.attention(
    hidden_states, query, hidden, hidden, places, segments, target_mapping=mapping
)[1]
"""

# -- a main stream, and streams that predict -------------------------------------------------

_PREDICTING_BUILD = """
config = CONFIG
self.attention = NAME(config)
"""
_PREDICTING_CALL = """
n, t = hidden_states.shape[:2]
place = torch.arange(1, t + 1)[None].expand(n, t)
near, far = compute_all_stream_relative_buckets(
    self.attention.num_buckets, self.attention.relative_max_distance, place
)
heads, streams = self.attention.num_attn_heads, self.attention.ngram
earlier = mask[:, None, :] & torch.ones(t, t, dtype=torch.bool).tril()
itself = torch.eye(t, dtype=torch.bool).expand(n, t, t)
bias = torch.where(earlier, 0.0, LOWEST)[:, None].expand(n, heads, t, t)
both = torch.where(torch.cat((earlier, itself), -1), 0.0, LOWEST)[:, None, None]
found = self.attention(
    hidden_states=torch.cat((STREAMS), dim=1),
    attention_mask=bias,
    extended_predict_attention_mask=both.expand(n, heads, streams, t, 2 * t),
    main_relative_position_buckets=near,
    predict_relative_position_buckets=far,
    position_ids=place,
)
"""
_EMPTY = "torch.zeros_like(hidden_states)"

# -- keys of two sequences under one softmax -------------------------------------------------

_WIDE_BUILD = """
config = CONFIG
self.width = d_head
self.attention = NAME(config, 0)
"""
_TURNED = """
n, t = hidden_states.shape[:2]
m = memory.shape[1]
rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)
angle = torch.arange(COUNT)[:, None] * rate
angle = torch.cat((angle, angle), dim=-1)[None].expand(n, -1, -1)
"""
_MERGED_CALL = """
itself = mask[:, None, m:] & torch.ones(t, t, dtype=torch.bool).tril()
keep = torch.cat((itself, mask[:, None, :m].expand(n, t, m)), dim=-1)
found = self.attention(
    hidden_states=hidden_states,
    position_embeddings=(angle.cos(), angle.sin()),
    merged_attention_mask=torch.where(keep, 0.0, LOWEST)[:, None],
    encoder_hidden_states=memory,
)
return found[0]
"""
_BEHIND_CALL = """
bias = torch.where(mask[:, None, None], 0.0, LOWEST).expand(n, 1, t, m + t)
return self.attention(
    hidden_states=hidden_states,
    context_hidden_states=memory,
    position_embeddings=(angle.cos(), angle.sin()),
    attention_mask=bias,
)[:2]
"""

# -- two pictures, keys of each other in every second layer ----------------------------------

_PAIRS_BUILD = """
config = CONFIG
config.gnn_layers_types = ["self", "cross"]
self.attention = NAME(config)
"""
_PAIRS_CALL = """
n, t = hidden_states.shape[:2]
both = torch.stack((hidden_states, other), dim=1).flatten(0, 1)
bias = torch.where(mask, 0.0, LOWEST)[:, None, None].repeat_interleave(2, dim=0)
return self.attention(both, mask=bias)[0].unflatten(0, (n, 2))[:, 0]
"""


def ways(asked: Asked) -> list[Way]:
    """Ways to ask a class of attention among several sequences; none for any other."""
    takes = asked.takes
    if {"attn_mask_h", "attn_mask_g"} <= set(takes):
        return _placed(asked)
    if "extended_predict_attention_mask" in takes:
        return _predicting(asked)
    if "merged_attention_mask" in takes or "context_hidden_states" in takes:
        return _two_as_keys(asked)
    if "descriptors" in takes and "gnn_layers_types" in inspect.getsource(asked.said.kind):
        more = {"inputs": {**own()["inputs"], "other": "batch T d_model"}}
        more["inputs"] = {n: more["inputs"][n] for n in ("hidden_states", "other", "mask")}
        config = asked.config()
        return [
            Way.of(
                asked,
                "pairs of pictures",
                _PAIRS_BUILD,
                _PAIRS_CALL,
                own(**more),
                config=config,
            )
        ]
    return []


def _placed(asked: Asked) -> list[Way]:
    rows = "T batch d_model"
    returns = [{"name": "context", "axes": rows}, _OF_OWN]
    given = {"query": rows, "hidden_states": rows, "mask": "batch T"}
    alone = {n: given[n] for n in ("hidden_states", "mask")}
    some = {
        "inputs": {
            "query": "T_dec batch d_model",
            "hidden_states": "T_enc batch d_model",
            "mask": "batch T_enc",
        },
        "returns": [{"name": "context", "axes": "T_dec batch d_model"}],
    }
    weighed: dict[str, Any] = {"returns": returns, "weights": _OVER_KEYS}
    found = []
    for form, call, more in (
        ("stream of content", _PLACED_ALONE, {"inputs": alone, **weighed}),
        ("stream of queries", _PLACED_TWICE, {"inputs": given, **weighed}),
        ("queries at some places", _PLACED_SOME, some),
    ):
        stated = own(positions="relative", **more)
        whole = _PLACED_CALL + call
        found.append(Way.of(asked, form, _PLACED_BUILD, whole, stated, config=asked.config()))
    return found


def _predicting(asked: Asked) -> list[Way]:
    stated = own(causal="top_left", positions="relative")
    weighed = {**stated, "returns": [_CONTEXT, _OF_OWN], "weights": _OVER_KEYS}
    rows = {"query": "batch T d_model", **stated["inputs"]}
    beside = ("compute_all_stream_relative_buckets",)
    found = []
    for form, streams, back, contract in (
        ("main stream", f"hidden_states, {_EMPTY}, {_EMPTY}", "[0][:, :t], found[1]", weighed),
        (
            "first predicting stream",
            f"hidden_states, query, {_EMPTY}",
            "[0][:, t : 2 * t]",
            {**stated, "inputs": rows},
        ),
        (
            "second predicting stream",
            f"hidden_states, {_EMPTY}, query",
            "[0][:, 2 * t :]",
            {**stated, "inputs": rows},
        ),
    ):
        call = _PREDICTING_CALL.replace("STREAMS", streams) + f"\nreturn found{back}\n"
        of = {"config": asked.config(), "beside": beside}
        found.append(Way.of(asked, form, _PREDICTING_BUILD, call, contract, **of))
    return found


def _two_as_keys(asked: Asked) -> list[Way]:
    """The memory's keys beside those of the queries' own sequence."""
    is_merged = "merged_attention_mask" in asked.takes
    call = _MERGED_CALL if is_merged else _BEHIND_CALL
    weights = {"name": "weights", "axes": "batch heads T_dec T_mem+T_dec"}
    weighed = {"returns": [*cross()["returns"], weights], "weights": _OVER_KEYS}
    stated = cross(
        inputs={
            "hidden_states": "batch T_dec d_model",
            "memory": "batch T_mem d_model",
            "mask": "batch T_mem+T_dec",
        },
        # Weights of merged keys have the memory last, against the order of what is declared.
        **({} if is_merged else weighed),
        # Of merged keys, only the decoder's own are turned.
        positions="recurrent" if is_merged else "rotary",
        **({"causal": "bottom_right"} if is_merged else {}),
    )
    turned = _TURNED.replace("COUNT", "t" if is_merged else "m + t")
    of = {"config": asked.config()}
    return [
        Way.of(asked, form, _WIDE_BUILD, turned + call, {**stated, "padding": side}, **of)
        for form, side in (
            ("keys of two sequences", "right"),
            ("keys of two sequences, padding in the memory", "left"),
        )
    ]
