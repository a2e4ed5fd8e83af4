"""Attention between two sequences that is more than queries and keys.

Latents that are keys too, keys of several sequences in a row, and attention both ways at once.
"""

import re

from real_code.kinds.base import OWN, Asked, Way, cross

__all__ = ["ways"]

_RESAMPLER = """
self.attention = NAME(d_model, d_head, heads)
"""
_RESAMPLER_CALL = """
return self.attention(memory, hidden_states, mask)
"""
_PERCEIVER = """
config = CONFIG
config.resampler_n_heads, config.resampler_head_dim = heads, d_head
config.num_key_value_heads = heads
self.attention = NAME(config)
"""
_PERCEIVER_CALL = """
bias = torch.where(mask[:, None, None, :] > 0, 0.0, LOWEST)
bias = bias.expand(-1, 1, hidden_states.shape[1], -1)
return self.attention(hidden_states, memory, attention_mask=bias)
"""
_ALIGNER = """
config = CONFIG
config.aligner_ffn_mult = 2
self.attention = NAME(config, GIVEN)
"""
_ALIGNER_CALL = """
parts = PARTS
seen = [part[..., 0] for part in SEEN]
parts, seen = [*parts, None, None][:3], [*seen, None, None][:3]
return self.attention(hidden_states, *parts, None, *seen)
"""
_BOTH = """
config = CONFIG
config.encoder_ffn_dim, config.encoder_attention_heads = 2 * d_model, 2 * heads
self.attention = NAME(config)
"""
_BOTH_CALL = """
found = self.attention(PICTURE, TEXT, HIDDEN=~mask)
(context, weights), (other, _) = FOUND
return context, weights, other
"""


def ways(asked: Asked) -> list[Way]:
    """Ways to ask a class that attends between two sequences; none for any other."""
    takes, code = asked.takes, asked.said.code
    if "latents" in takes and re.search(r"cat\(.(x|context), latents", code):
        return [_perceiver(asked)]
    if {"protein_kv_states", "structure_kv_states", "msa_kv_states"} <= set(takes):
        return _aligner(asked)
    if {"vision_features", "text_features"} <= set(takes):
        return _both(asked)
    return []


def _perceiver(asked: Asked) -> Way:
    has_config = "config" in asked.built_with
    stated = {
        "init": OWN["init"],
        "inputs": {
            "memory": "batch T_mem d_model",
            "hidden_states": "batch T_dec d_model",
            "mask": "batch T_mem+T_dec",
        },
        "kinds": {"mask": "keep_float01"},
        "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
        "score": "scaled_dot",
    }
    weights = {"name": "weights", "axes": "batch heads T_dec T_mem+T_dec"}
    if has_config:
        stated["returns"] = [*cross()["returns"], weights]
        stated["weights"] = {"output": "weights", "sums_to_one_over": -1}
    of = {"config": asked.config("Perceiver|Resampler")} if has_config else {}
    build = _PERCEIVER if has_config else _RESAMPLER
    call = _PERCEIVER_CALL if has_config else _RESAMPLER_CALL
    return Way.of(asked, "latents are keys too", build, call, stated, **of)


def _aligner(asked: Asked) -> list[Way]:
    names = [n for n in asked.built_with if n.endswith("_encoder_dim")]
    found = []
    for form, count in (("one sequence of keys", 1), ("three sequences of keys", 3)):
        given = ", ".join(f"{n}=d_model" for n in names[:count])
        split = "{}.tensor_split(COUNT, dim=1)".replace("COUNT", str(count))
        call = _ALIGNER_CALL.replace("PARTS", split.format("memory"))
        call = call.replace("SEEN", split.format("mask.float()[..., None]"))
        # Keys of each sequence are projected by themselves: which one it is counts.
        stated = (
            cross(score="scaled_dot")
            if count == 1
            else cross(positions="absolute", sizes={"T_enc": 9})
        )
        build = _ALIGNER.replace("GIVEN", given)
        config = asked.config("Evolla")
        found.append(Way.of(asked, form, build, call, stated, config=config))
    return found


def _both(asked: Asked) -> list[Way]:
    found = []
    for form, picture, text, hidden, result in (
        ("pictures to text", "hidden_states", "memory", "text_attention_mask", "found"),
        ("text to pictures", "memory", "hidden_states", "vision_attention_mask", "found[::-1]"),
    ):
        call = _BOTH_CALL.replace("PICTURE", picture).replace("TEXT", text)
        call = call.replace("HIDDEN", hidden).replace("FOUND", result)
        stated = cross(
            returns=[
                *cross()["returns"],
                {"name": "weights", "axes": "batch*heads T_dec T_enc"},
                {"name": "other", "axes": "batch T_enc d_model"},
            ],
            weights={"output": "weights", "sums_to_one_over": -1},
            score="scaled_dot",
        )
        found.append(Way.of(asked, form, _BOTH, call, stated, config=asked.config()))
    # As its manual says: weights have an axis of heads.
    axes = [*cross()["returns"], {"name": "weights", "axes": "batch heads T_dec T_enc"}]
    documented = {**stated, "returns": axes}
    call = call.replace("return context, weights, other", "return context, weights")
    last = Way.of(asked, "axes as documented", _BOTH, call, documented, config=asked.config())
    return [*found, last]
