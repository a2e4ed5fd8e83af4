"""Attention of pictures: maps of features, means of neighbours, features as keys, memories."""

from typing import Any

from real_code.kinds.base import OWN, Asked, Way, cross

__all__ = ["ways"]

_SUBSAMPLE = """
self.attention = NAME(d_model, d_model, d_head, heads, 2, 2, 5, 3)
"""
_SUBSAMPLE_CALL = """
return self.attention(hidden_states)
"""
_MEANS = """
config = CONFIG
for part in ("q", "kv"):
    setattr(config, f"{part}_aggregation_kernel_size", 2)
    setattr(config, f"{part}_aggregation_stride", 2)
self.attention = NAME(config, 0)
"""
_MEANS_CALL = """
maps = [x.transpose(1, 2).unflatten(-1, (4, 8)) for x in GIVEN]
return self.attention(*maps).flatten(2).transpose(1, 2)
"""
_CHANNELS = """
config = CONFIG
config.embed_dim, config.num_heads, config.num_groups = [d_model], [heads], [heads]
self.attention = NAME(config, 0)
"""
_MAP = """
self.attention = NAME(GIVEN)
"""
# Weights of all heads sum to one together.
_MAP_CALL = """
hidden = HIDDEN
maps = self.attention(hidden_states, memory.transpose(1, 2)[:, :, None], hidden)
return maps.sum(2)[:, :, 0]
"""
_MEMORY = """
config = CONFIG
sizes = {"hidden_size": d_model, "num_attention_heads": heads, "downsample_rate": 1}
sizes |= {"mlp_hidden_size": 52, "rope_feat_sizes": [4, 3], "rope_k_sizes": [3, 2]}
for name, size in sizes.items():
    setattr(config, f"memory_attention_{name}", size)
self.attention = NAME(GIVEN)
self.width = d_head
"""
_TURNED = """
rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)


def turned(x):
    angle = (torch.arange(x.shape[1])[:, None] * rate).repeat_interleave(2, dim=-1)
    return angle.cos(), angle.sin()


"""
_SELF_CALL = """
x = hidden_states[:, None]
found, weights = self.attention(x, x, x, turned(hidden_states))
return found[:, 0], weights
"""
_CROSS_CALL = """
x, m = hidden_states[:, None], memory[:, None]
places = turned(hidden_states), turned(memory)
found, weights = self.attention(x, m, m, *places, rope_k_repeat=1)
return found[:, 0], weights
"""
_LAYER_CALL = """
x, m = hidden_states[:, None], memory[:, None]
places = turned(hidden_states), turned(memory)
return self.attention(x, m, 0.1 * m, *places, rope_k_repeat=1)[:, 0]
"""
_WHOLE_CALL = """
x, m = hidden_states.transpose(0, 1), memory.transpose(0, 1)
found = self.attention(x, m, memory_posision_embeddings=0.1 * m, num_spatial_memory_tokens=1)
return found[0]
"""


def ways(asked: Asked) -> list[Way]:
    """Ways to ask a class that attends over pictures in a way of its own."""
    takes, code = asked.takes, asked.said.code
    maps = "softmax(weights.flatten(2)", "softmax(attn_weights.flatten(2)"
    plain = takes[:4] == ("query", "key", "value", "position_embeddings")
    told = (
        ({"resolution_in", "resolution_out"} <= set(asked.built_with), _subsample),
        ("_aggregation_kernel_size" in code, _means),
        ("num_groups" in code and "num_tokens**-0.5" in code, _channels),
        (any(m in code for m in maps), _map),
        ("rope_k_repeat" in takes or "memory_posision_embeddings" in takes, _memories),
        (plain and "memory_attention" in code, _memories),
    )
    return next((ask(asked) for is_one, ask in told if is_one), [])


def _subsample(asked: Asked) -> list[Way]:
    stated = {
        "init": OWN["init"],
        # Every second pixel of every second row of 5 by 5 asks.
        "inputs": {"hidden_states": "batch T_enc d_model"},
        "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
        "sizes": {"T_enc": 25, "T_dec": 9},
        "positions": True,
    }
    return [Way.of(asked, "every second pixel asks", _SUBSAMPLE, _SUBSAMPLE_CALL, stated)]


def _means(asked: Asked) -> list[Way]:
    of: dict[str, Any] = {"config": asked.config()}
    plain = {
        "init": OWN["init"],
        "inputs": {"hidden_states": "batch T d_model"},
        "returns": [{"name": "context", "axes": "batch T d_model"}],
        "sizes": {"T": 32},
        "positions": "recurrent",
    }
    other = cross(
        inputs={"hidden_states": "batch T_dec d_model", "memory": "batch T_enc d_model"},
        kinds={},
        sizes={"T_dec": 32, "T_enc": 32},
        positions=True,
    )
    return [
        Way.of(asked, form, _MEANS, _MEANS_CALL.replace("GIVEN", given), stated, **of)
        for form, given, stated in (
            ("means of neighbours", "(hidden_states,)", plain),
            ("means of neighbours, cross", "(hidden_states, memory)", other),
        )
    ]


def _channels(asked: Asked) -> list[Way]:
    stated = {
        "init": {**OWN["init"], "heads": "heads*1"},
        "inputs": {"hidden_states": "batch T d_model"},
        "returns": [{"name": "context", "axes": "batch T d_model"}],
        # Positions are summed over where features meet: twice as many weigh otherwise.
        "reweighted": True,
    }
    of = {"config": asked.config("Vision")}
    return [Way.of(asked, "features as keys", _CHANNELS, _SUBSAMPLE_CALL, stated, **of)]


def _map(asked: Asked) -> list[Way]:
    sizes = {
        **dict.fromkeys(("query_dim", "hidden_dim", "hidden_size", "embed_dim"), "d_model"),
        **dict.fromkeys(("num_heads", "num_attention_heads"), "heads"),
    }
    given = ", ".join(f"{n}={sizes[n]}" for n in asked.built_with if n in sizes)
    is_boolean = "masked_fill(mask" in asked.said.code
    added = "torch.where(mask, 0.0, LOWEST)[:, None, None, None]"
    hidden = "~mask[:, None]" if is_boolean else added
    stated = cross(
        returns=[{"name": "weights", "axes": "batch T_dec T_enc"}],
        weights={"output": "weights", "sums_to_one_over": -1},
        init={**OWN["init"], "heads": "heads*1"},
    )
    call = _MAP_CALL.replace("HIDDEN", hidden)
    return [Way.of(asked, "weights alone", _MAP.replace("GIVEN", given), call, stated)]


def _memories(asked: Asked) -> list[Way]:
    takes = asked.takes
    returns = cross()["returns"]
    inputs = {"hidden_states": "batch T_dec d_model", "memory": "batch T_enc 64"}
    given = "config, 64" if "kv_in_dim" in asked.built_with else "config"
    weighed: dict[str, Any] = {"weights": {"output": "weights", "sums_to_one_over": -1}}
    turned: dict[str, Any] = {"positions": "rotary", "score": "scaled_dot"}
    stated = cross(inputs=inputs, kinds={}, positions=True)
    if "memory_posision_embeddings" in takes:
        call, stated = _WHOLE_CALL, {**stated, "sizes": {"T_dec": 12, "T_enc": 6, "d_head": 8}}
    elif "key_point_embedding" in takes:
        call = _TURNED + _LAYER_CALL
    elif "position_embeddings_k" in takes:
        call = _TURNED + _CROSS_CALL
        more = {"name": "weights", "axes": "batch heads T_dec T_enc"}
        stated = {**stated, **turned, **weighed, "returns": [*returns, more]}
    else:
        call = _TURNED + _SELF_CALL
        returns = [
            {"name": "context", "axes": "batch T d_model"},
            {"name": "weights", "axes": "batch heads T T"},
        ]
        own = {"hidden_states": "batch T d_model"}
        stated = {**stated, **turned, **weighed, "inputs": own, "returns": returns}
    build = _MEMORY.replace("GIVEN", given)
    of = {"config": asked.config("Video")}
    return [Way.of(asked, "places of a picture", build, call, stated, **of)]
