"""Small configurations of models, from the sizes that the check chooses."""

import contextlib
from typing import Any

__all__ = ["shrink"]

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
    *("num_cross_attention_heads", "swa_num_attention_heads"),
    *("decoder_self_attention_heads", "decoder_cross_attention_heads", "linear_num_heads"),
    *("linear_num_key_heads", "linear_num_value_heads"),
)
_KV = (
    *("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads"),
    *("encoder_num_key_value_heads", "decoder_num_key_value_heads", "multi_query_group_num"),
    "swa_num_key_value_heads",
)
_HEAD = (
    *("head_dim", "d_kv", "d_head", "attention_head_dim", "kv_channels"),
    *("attention_head_size", "swa_head_dim", "linear_head_dim", "linear_key_head_dim"),
    "linear_value_head_dim",
)
_FIXED = {
    **{"max_position_embeddings": 64, "vocab_size": 97, "num_hidden_layers": 2},
    **{"n_positions": 64, "max_source_positions": 64, "max_target_positions": 64},
    # Latent attention projects down and up again; the rotated part is even.
    **{"kv_lora_rank": 30, "q_lora_rank": 29, "qk_rope_head_dim": 6, "qk_nope_head_dim": 8},
    **{"qk_head_dim": 14, "v_head_dim": 15, "intermediate_size": 52},
}


def shrink(config: Any, d_model: int, heads: int, kv_heads: int, d_head: int) -> Any:
    """Give the sizes of a configuration these values, wherever it has such a field."""
    sizes = {_MODEL: d_model, _HEADS: heads, _KV: kv_heads, _HEAD: d_head}
    latent = _get(config, "kv_lora_rank") is not None
    for names, value in sizes.items():
        for name in names:
            if isinstance(_get(config, name), int) or (
                name == "head_dim" and name in vars(config)
            ):
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
    if isinstance(_get(config, "position_embedding_type"), str):
        config.position_embedding_type = "rotary"  # where there is a choice, as it is passed
    rope = _get(config, "rope_parameters")
    if isinstance(rope, dict):
        half = d_head // 2
        # Time, height and width of pictures each turn a part of the features.
        rope["mrope_section"] = [half - 2 * (half // 3), half // 3, half // 3]
    config._attn_implementation = "eager"  # the one that returns weights
    return config


def _get(config: Any, name: str) -> Any:
    """A field's value; None where there is none, or another one for every layer."""
    try:
        return getattr(config, name, None)
    except Exception:
        return None
