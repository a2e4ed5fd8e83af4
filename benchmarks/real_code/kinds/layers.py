"""Attention to outputs of earlier layers: keys are layers, and every position asks alone."""

from real_code.kinds.base import Asked, Way

__all__ = ["ways"]

_BUILD = """
config = CONFIG
MORE
self.attention = NAME(config)
"""
_LOOP = "config.loop_layer_index_start, config.loop_layer_index_end = 0, 1"
# One position: layers are what is looked at.
_CALL = """
found = self.attention(memory[:, None, :-1], memory[:, None, -1]LAYER)
found = torch.stack(found, dim=-2) if isinstance(found, tuple) else found
return found[:, 0]
"""


def ways(asked: Asked) -> list[Way]:
    """Ways to ask a class that attends to outputs of layers; none for any other."""
    if asked.takes[:2] != ("block_states", "partial_block_states"):
        return []
    queries = 1 if "num_queries" in asked.built_with else 4
    has_loop = "loop_layer_idx" in asked.takes
    more = _LOOP if has_loop else ""
    stated = {
        "init": {"d_model": "d_model", "heads": 1, "d_head": "d_head"},
        "inputs": {"memory": "batch T_enc d_model"},
        "returns": [{"name": "context", "axes": f"batch {queries} d_model"}],
        "score": "pooling",
    }
    call = _CALL.replace("LAYER", ", 0" if has_loop else "")
    build = _BUILD.replace("MORE", more)
    of = {"config": asked.config("Text")}
    return [Way.of(asked, "layers as keys", build, call, stated, **of)]
