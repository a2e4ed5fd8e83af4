"""Small configurations of models, from the sizes that the check chooses."""

import contextlib
from typing import Any

__all__ = ["made", "shrink"]

_MODEL = (
    *("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "hidden_dim", "emb_dim"),
    *(
        "encoder_hidden_size",
        "decoder_hidden_size",
        "vision_hidden_size",
        "attention_hidden_size",
    ),
    *("cross_attention_hidden_size", "query_dim", "encoder_width", "d_latents"),
    *("hidden_channels", "model_dim", "qk_channels", "v_channels", "embedding_size", "width"),
)
_HEADS = (
    *("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"),
    *("encoder_attention_heads", "decoder_attention_heads", "num_encoder_attention_heads"),
    *("num_decoder_attention_heads", "vision_num_attention_heads", "num_self_attention_heads"),
    *("num_cross_attention_heads", "swa_num_attention_heads", "cross_num_attention_heads"),
    *("decoder_self_attention_heads", "decoder_cross_attention_heads", "linear_num_heads"),
    *("linear_num_key_heads", "linear_num_value_heads"),
)
_KV = (
    *("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads"),
    *("encoder_num_key_value_heads", "decoder_num_key_value_heads", "multi_query_group_num"),
    *("swa_num_key_value_heads", "cross_num_key_value_heads"),
)
_HEAD = (
    *("head_dim", "d_kv", "d_head", "attention_head_dim", "kv_channels"),
    *("attention_head_size", "swa_head_dim", "linear_head_dim", "linear_key_head_dim"),
    *("linear_value_head_dim", "cross_head_dim"),
)
_FIXED = {
    **{"max_position_embeddings": 64, "vocab_size": 97, "num_hidden_layers": 2},
    **{"n_positions": 64, "max_source_positions": 64, "max_target_positions": 64},
    # Latent attention projects down and up again; the rotated part is even.
    **{"kv_lora_rank": 30, "q_lora_rank": 29, "qk_rope_head_dim": 6, "qk_nope_head_dim": 8},
    **{"qk_head_dim": 14, "v_head_dim": 15, "intermediate_size": 52},
}
# Sizes of what is looked at, and of parts: where it runs with no other sizes.
_MORE = (
    *("cross_attention_hidden_size", "cross_hidden_size", "projection_dim", "kv_in_dim"),
    *("true_hidden_size", "memory_attention_hidden_size", "perceiver_resampler_hidden_size"),
    *("mask_downsampler_embed_dim", "embed_dim_per_stage", "encoder_embed_dim", "kv_dim"),
    *("memory_encoder_output_channels", "memory_encoder_hidden_size", "encoder_stride"),
    *("vision_embed_dim", "qk_channels", "v_channels", "hidden_dim_size"),
)


def shrink(
    config: Any,
    d_model: int,
    heads: int,
    kv_heads: int,
    d_head: int,
    *,
    more: bool = False,
    form: str = "eager",
) -> Any:
    """Give the sizes of a configuration these values, wherever it has such a field.

    ``more`` gives sizes to what is left out otherwise: fields without a value, those of what
    is looked at, and rotated parts of a head that would be odd.
    """
    sizes = {_MODEL: d_model, _HEADS: heads, _KV: kv_heads, _HEAD: d_head}
    latent = _get(config, "kv_lora_rank") is not None
    for names, value in sizes.items():
        for name in names:
            if isinstance(_get(config, name), int) or (
                name == "head_dim" and name in vars(config)
            ):
                with contextlib.suppress(AttributeError):  # what is reckoned from others
                    setattr(config, name, value)
    for name, value in _FIXED.items():
        if isinstance(_get(config, name), int):
            with contextlib.suppress(NotImplementedError):  # some names are there to be read
                setattr(config, name, value)
    if latent:
        if "head_dim" in vars(config):
            config.head_dim = 6
        for name in _KV:
            if isinstance(_get(config, name), int):
                setattr(config, name, heads)
    _choose(config, d_head)
    if more:
        _give_more(config, d_model, heads, kv_heads, d_head)
    config._attn_implementation = form  # "eager" is the one that returns weights
    return config


def made(
    kind: Any, d_model: int, heads: int, kv_heads: int, d_head: int, *, form: str = "eager"
) -> Any:
    """A configuration that is given its sizes as it is made, so that others follow from them.

    Tables of layers are as long as there are layers, and layers may have sizes of their own.
    """
    sizes = {_MODEL: d_model, _HEADS: heads, _KV: kv_heads, _HEAD: d_head}
    fields = {n for c in kind.__mro__ for n in vars(c).get("__annotations__", ())}
    given = {n: value for names, value in sizes.items() for n in names if n in fields}
    given |= {n: value for n, value in _FIXED.items() if n in fields}
    config = kind(**given)
    config._attn_implementation = form
    return config


def _choose(config: Any, d_head: int) -> None:
    if _get(config, "use_entity_aware_attention") is True:
        config.use_entity_aware_attention = False  # words alone have no entities
    if isinstance(_get(config, "position_embedding_type"), str):
        config.position_embedding_type = "rotary"  # where there is a choice, as it is passed
    rope = _get(config, "rope_parameters")
    if isinstance(rope, dict):
        half = d_head // 2
        # Time, height and width of pictures each turn a part of the features.
        rope["mrope_section"] = [half - 2 * (half // 3), half // 3, half // 3]


def _give_more(config: Any, d_model: int, heads: int, kv_heads: int, d_head: int) -> None:
    even = 2 * max(d_head // 4, 1)
    for name in _MORE:
        if name == "cross_attention_hidden_size" or isinstance(_get(config, name), int):
            with contextlib.suppress(Exception):
                setattr(config, name, d_model)
    for name, value in {
        **{"rotary_dim": even, "channel_shrink_ratio": 2, "num_kv_shared_layers": 0},
        **{"o_groups": 2, "o_lora_rank": 11, "context_size": 64},
        "decoder_attention_num_groups": 2,
    }.items():
        if isinstance(_get(config, name), int):
            setattr(config, name, value)
    _give_empty(config, {_MODEL: d_model, _HEADS: heads, _KV: kv_heads, _HEAD: d_head})
    for name in ("use_rel_pos", "use_relative_position_embeddings"):
        # In a map of one row its height tells nothing.
        if _get(config, name) is True:
            setattr(config, name, False)
    for name, part in list(vars(config).items()):
        if name.endswith("_config") and hasattr(part, "to_dict") and name != "attn_config":
            shrink(part, d_model, heads, kv_heads, d_head)
        elif name.endswith("attention_heads") and isinstance(part, int):
            setattr(config, name, heads)
        elif name == "num_key_value_heads_per_layer" and isinstance(part, list):
            setattr(config, name, [kv_heads] * len(part))
    if isinstance(_get(config, "attention_hidden_size"), int):
        # Its features are those of two sequences, one beside the other.
        config.attention_hidden_size, config.attention_head_dim = 2 * d_model, 2 * d_head
    part = _get(config, "attn_config")
    if part is not None and not isinstance(part, dict):
        part.kv_n_heads, part.rope_theta, part.clip_qkv = 2, 10000.0, 8.0
    _look_everywhere(config, d_head)
    _turn_evenly(config, d_head, even)


def _look_everywhere(config: Any, d_head: int) -> None:
    """Layers that look at every position, where others look at summaries or at a choice."""
    kinds = _get(config, "layer_types")
    if isinstance(kinds, list) and "compress" in kinds[0]:
        config.layer_types = ["sliding_attention"] * len(kinds)  # the window is longer
    if isinstance(_get(config, "hybrid_layer_ids"), list):
        config.hybrid_layer_ids = [0]
    indexer = {"n_heads": 2, "kv_heads": 1, "head_dim": d_head, "budget": 64}
    for name, value in {**indexer, "compress_ratio": 2}.items():
        if f"indexer_{name}" in vars(config) and _get(config, f"indexer_{name}") is None:
            setattr(config, f"indexer_{name}", value)  # as many as there are


def _give_empty(config: Any, sizes: dict[tuple[str, ...], int]) -> None:
    for names, value in sizes.items():
        for name in names:
            if name in vars(config) and vars(config)[name] is None:
                setattr(config, name, value)


def _turn_evenly(config: Any, d_head: int, even: int) -> None:
    rope = _get(config, "rope_parameters")
    if isinstance(rope, dict):
        if rope.get("rope_type") == "axial" and "head_dim" in vars(config):
            config.head_dim = 4 * max(d_head // 4, 1)  # pairs of height and of width
        rope.setdefault("rope_theta", 10000.0)
        turned = d_head
        if rope.get("partial_rotary_factor", 1.0) != 1.0:
            rope["partial_rotary_factor"] = even / d_head + 1e-6
            turned = even
        if "mrope_section" in rope:
            part = turned // 2 // 3  # height and width as much, time the rest
            rope["mrope_section"] = [part, part, turned // 2 - 2 * part]


def _get(config: Any, name: str) -> Any:
    """A field's value; None where there is none, or another one for every layer."""
    try:
        return getattr(config, name, None)
    except Exception:
        return None
