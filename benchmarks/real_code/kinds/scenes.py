"""Attention to whole pictures: memories of a video, masks that queries predict, windows."""

from typing import Any

from real_code.kinds.base import OWN, Asked, Way, cross, own

__all__ = ["ways"]

_OVER_KEYS = {"output": "weights", "sums_to_one_over": -1}

# -- memories of a video, at the places of the picture, over and over ------------------------

_VIDEO = """
config = CONFIG
config.memory_attention_hidden_size, config.memory_attention_downsample_rate = d_model, 1
config.memory_attention_num_attention_heads, config.memory_attention_num_layers = heads, 2
config.memory_attention_feed_forward_hidden_size = 52
config.memory_attention_rope_feat_sizes = [5, 1]
self.width = d_head
self.attention = NAME(GIVEN)
"""
_TURNED = """
rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)
angle = torch.arange(hidden_states.shape[1])[:, None] * rate
angle = angle.repeat_interleave(2, dim=-1)
places = (angle.cos(), angle.sin())
"""
_OWN_CALL = """
rows = hidden_states[:, None]
found = self.attention(query=rows, key=rows, value=rows, position_embeddings=places)
return found[0][:, 0], found[1]
"""
_CROSS_CALL = """
seen = memory[:, None]
found = self.attention(
    query=hidden_states[:, None], key=seen, value=seen, position_embeddings=places
)
return found[0][:, 0], found[1]
"""
_LAYER_CALL = """
return self.attention(
    queries=hidden_states[:, None],
    keys=memory[:, None],
    key_point_embedding=torch.full_like(memory, 0.5)[:, None],
    rope_position_embeddings=places,
)[:, 0]
"""
_STACK_CALL = """
return self.attention(
    current_vision_features=hidden_states,
    memory=memory,
    memory_posision_embeddings=torch.full_like(memory, 0.5),
)[0]
"""

# -- masks that each query predicts for itself -----------------------------------------------

_MASKED = """
config = CONFIG
config.dim_feedforward, config.mask_feature_size, config.decoder_layers = 52, 14, 3
self.heads = heads
self.attention = NAME(config)
"""
_MASKED_LAYER_CALL = """
hidden = (~mask)[:, None].expand(-1, hidden_states.shape[0], -1)
return self.attention(
    hidden_states,
    level_index=0,
    position_embeddings=[torch.full_like(memory, 0.5)],
    query_position_embeddings=torch.full_like(hidden_states, 0.5),
    encoder_hidden_states=[memory],
    encoder_attention_mask=hidden.repeat_interleave(self.heads, dim=0),
)[0]
"""
_MASKED_STACK_CALL = """
found = self.attention(
    inputs_embeds=hidden_states,
    multi_stage_positional_embeddings=[torch.full_like(memory, 0.5)] * 3,
    pixel_embeddings=pixels,
    encoder_hidden_states=[memory] * 3,
    query_position_embeddings=torch.full_like(hidden_states, 0.5),
    feature_size_list=[(3, 4)] * 3,
    output_attentions=False,
    output_hidden_states=False,
    return_dict=True,
)
return found.last_hidden_state, found.masks_queries_logits[-1]
"""

# -- windows whose patches become one --------------------------------------------------------

_WINDOWS = """
config = CONFIG
self.attention = NAME(config)
"""
# Windows of one picture lie side by side and know no more of each other than examples do.
_WINDOWS_CALL = """
n = hidden_states.shape[0]
picture = hidden_states.unflatten(1, (2, 2)).transpose(0, 1).reshape(1, 4 * n, -1)
return self.attention(picture, torch.tensor([[2, 2 * n]]))[0]
"""

# -- scores alone ----------------------------------------------------------------------------

# The model takes the logarithms of the weights, as is done here.
_SCORED_CALL = """
return self.attention(hidden_states, memory, mask).log_softmax(dim=-1)
"""


def ways(asked: Asked) -> list[Way]:  # noqa: PLR0911 - one a kind
    """Ways to ask a class of attention to whole pictures; none for any other."""
    takes = set(asked.takes)
    if "rope_k_repeat" in asked.built_with:
        return [_looking(asked), _looking_back(asked, _CROSS_CALL, weighed=True)]
    if "rope_position_embeddings" in takes and "rope_k_repeat" not in takes:
        return [_looking_back(asked, _LAYER_CALL, weighed=False)]
    if "num_object_pointer_tokens" in takes and "num_spatial_memory_tokens" not in takes:
        return [_video(asked)]
    if "level_index" in takes:
        return [_masked_layer(asked)]
    if "multi_stage_positional_embeddings" in takes:
        return [_masked(asked)]
    if "target_sizes" in takes and "get_window_index" in vars(asked.said.kind):
        return [_windows(asked)]
    if takes == {"query", "key", "attention_mask"}:
        return [_scored(asked)]
    return []


def _looking(asked: Asked) -> Way:
    stated = own(
        inputs={"hidden_states": "batch T d_model"},
        kinds={},
        returns=[*OWN["returns"], {"name": "weights", "axes": "batch heads T T"}],
        weights=_OVER_KEYS,
        positions="rotary",
        score="scaled_dot",
    )
    build, of = _VIDEO.replace("GIVEN", "config"), {"config": asked.config("Video")}
    return Way.of(asked, "places of a picture", build, _TURNED + _OWN_CALL, stated, **of)


def _looking_back(asked: Asked, call: str, *, weighed: bool) -> Way:
    """Ask for keys of two earlier pictures, which lie at the places of this one."""
    more: dict[str, Any] = {}
    if weighed:
        weights = {"name": "weights", "axes": "batch heads T_dec T_enc"}
        more = {"returns": [*cross()["returns"], weights], "weights": _OVER_KEYS}
    stated = cross(
        inputs={"hidden_states": "batch T_dec d_model", "memory": "batch T_enc 64"},
        kinds={},
        sizes={"T_dec": 5, "T_enc": 10},
        positions="absolute",
        **more,
    )
    given = "config, kv_in_dim=64, rope_k_repeat=True" if weighed else "config"
    build, of = _VIDEO.replace("GIVEN", given), {"config": asked.config("Video")}
    return Way.of(asked, "places of two pictures", build, _TURNED + call, stated, **of)


def _video(asked: Asked) -> Way:
    stated = cross(
        inputs={"hidden_states": "T_dec batch d_model", "memory": "T_enc batch 64"},
        kinds={},
        # Height and width each turn pairs: a head has a multiple of four features.
        sizes={"T_dec": 5, "T_enc": 10, "d_head": 8},
        positions="absolute",
    )
    build, of = _VIDEO.replace("GIVEN", "config"), {"config": asked.config("Video")}
    return Way.of(asked, "layers over two pictures", build, _STACK_CALL, stated, **of)


def _masked_layer(asked: Asked) -> Way:
    rows = "n_queries batch d_model"
    stated = cross(
        inputs={"hidden_states": rows, "memory": "T_enc batch d_model", "mask": "batch T_enc"},
        returns=[{"name": "context", "axes": rows}],
        sizes={"n_queries": 5},
    )
    of = {"config": asked.config()}
    return Way.of(asked, "queries ask together", _MASKED, _MASKED_LAYER_CALL, stated, **of)


def _masked(asked: Asked) -> Way:
    stated = cross(
        inputs={
            "hidden_states": "n_queries batch d_model",
            "memory": "T_enc batch d_model",
            "pixels": "batch 14 6 8",
        },
        kinds={},
        returns=[
            {"name": "context", "axes": "batch n_queries d_model"},
            {"name": "masks", "axes": "batch n_queries 6 8"},
        ],
        sizes={"n_queries": 5, "T_enc": 12},
        positions="absolute",
        sparse=True,
    )
    of = {"config": asked.config()}
    return Way.of(asked, "masks of its own", _MASKED, _MASKED_STACK_CALL, stated, **of)


def _windows(asked: Asked) -> Way:
    stated = {
        "init": OWN["init"],
        "inputs": {"hidden_states": "batch T_enc d_model"},
        "returns": [{"name": "context", "axes": "batch d_model"}],
        "sizes": {"T_enc": 4},
        "positions": "absolute",
    }
    of = {"config": asked.config("Vision")}
    return Way.of(asked, "windows made one", _WINDOWS, _WINDOWS_CALL, stated, **of)


def _scored(asked: Asked) -> Way:
    stated = cross(
        init={**OWN["init"], "heads": "heads*1"},
        returns=[{"name": "weights", "axes": "batch T_dec T_enc", "role": "log_weights"}],
        weights=_OVER_KEYS,
    )
    build, of = "self.attention = NAME(CONFIG)", {"config": asked.config()}
    return Way.of(asked, "logarithms of weights", build, _SCORED_CALL, stated, **of)
