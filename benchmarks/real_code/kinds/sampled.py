"""Deformable attention: a query samples pictures at points that it computes itself.

What it samples is not known, so `sparse` is stated; positions count, as pixels lie beside each
other. Weights are over points and not over keys, so that they are not named as the alignment.
"""

from dataclasses import replace
from typing import Any

from real_code.kinds.base import OWN, Asked, Way, cross

__all__ = ["ways"]

# Two pictures of 2 by 4 and 1 by 3 pixels.
_PICTURES = """
self.shapes = [(2, 4), (1, 3)]
self.table, self.starts = torch.tensor(self.shapes), torch.tensor([0, 8])
"""
_BUILD = """
config = CONFIG
config.num_feature_levels = 2
POINTS
self.attention = NAME(GIVEN)
"""
_ALONE = """
self.attention = NAME(GIVEN)
"""
_CALL = """
n, q = hidden_states.shape[:2]
middle = torch.full(MIDDLE, 0.5)
found = self.attention(ARGUMENTS)
return found[0]
"""
_CORE_CALL = """
weights = weights.unflatten(-1, (2, 3))
places = places.sigmoid()
return self.attention(value, self.table, self.shapes, self.starts, places, weights, 64)
"""
_GIVEN = {
    "config": "config",
    **dict.fromkeys(("num_heads", "n_heads"), "heads"),
    **dict.fromkeys(("embed_dim", "d_model", "dim"), "d_model"),
    **dict.fromkeys(("n_levels", "num_levels"), "2"),
    **dict.fromkeys(("n_points", "num_points"), "3"),
}
_ARGUMENTS = {
    "hidden_states": "hidden_states",
    "encoder_hidden_states": "memory",
    "reference_points": "middle",
    "spatial_shapes": "self.table",
    "spatial_shapes_list": "self.shapes",
    "level_start_index": "self.starts",
}
_STATED: dict[str, Any] = {
    "sizes": {"T_enc": 11},
    "sparse": True,
    "positions": True,
    "score": "none",
}
_WEIGHED: dict[str, Any] = {
    "init": OWN["init"],
    "inputs": {"hidden_states": "batch T_dec d_model", "memory": "batch n_pixels d_model"},
    "returns": [
        {"name": "context", "axes": "batch T_dec d_model"},
        {"name": "weights", "axes": "batch T_dec heads n_points"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "sizes": {"n_points": 6, "n_pixels": 11},
    "score": "none",
}


def ways(asked: Asked) -> list[Way]:
    """Ways to ask a class that samples points; none for any other."""
    if "sampling_locations" in asked.takes:
        return [_core(asked)]
    if {"reference_points", "spatial_shapes_list"} <= set(asked.takes):
        return _modules(asked)
    return []


def _modules(asked: Asked) -> list[Way]:
    given = ", ".join(f"{n}={_GIVEN[n]}" for n in asked.built_with if n in _GIVEN)
    config = asked.config() if "config" in asked.built_with else None
    code = asked.said.code
    # Points of all pictures on one axis, around boxes instead of points.
    joined = "num_points_list" in code
    boxes = joined or "n_points_list" in code
    hides = "masked_fill(attention_mask" in code  # what is True, where others keep it
    build = (_BUILD if config else _ALONE).replace("GIVEN", given) + _PICTURES
    points = "config.decoder_n_levels = 2; config.decoder_n_points = "
    points = f"{points}{'[3, 3]' if joined else '3'}" if boxes else ""
    build = build.replace("POINTS", points)
    middle = "(n, q, 1, 4)" if boxes else "(n, q, 2, 2)"
    named = [f"{n}={_ARGUMENTS[n]}" for n in asked.takes if n in _ARGUMENTS]
    found = []
    for form in ("masked", "without a mask"):
        stated = cross(**_STATED)
        arguments = list(named)
        if form == "masked":
            # Boxes are sampled from values that are split by heads before they are masked.
            given_mask = f"{'~' if hides else ''}mask{'[..., None]' if joined else ''}"
            arguments.append(f"attention_mask={given_mask}")
        else:
            inputs = {n: a for n, a in stated["inputs"].items() if n != "mask"}
            stated = {**stated, "inputs": inputs, "kinds": {}}
        call = _CALL.replace("MIDDLE", middle).replace("ARGUMENTS", ", ".join(arguments))
        found.append(Way.of(asked, form, build, call, stated, config=config))
    # Points are what a query chooses from, whatever lies there.
    call = _CALL.replace("MIDDLE", middle).replace("ARGUMENTS", ", ".join(named))
    call = call.replace("found[0]", "found[0], found[1].reshape(n, q, -1, 6)")
    form = "weights of its points"
    found.append(Way.of(asked, form, build, call, _WEIGHED, config=config))
    if not boxes:
        return found
    # What its words allow and its kin take: around points, and with a mask of the keys.
    call = _CALL.replace("MIDDLE", "(n, q, 2, 2)").replace("ARGUMENTS", ", ".join(named))
    around = Way.of(asked, "around points", build, call, stated, config=config)
    found.append(replace(around, certain=True))
    if joined:
        arguments = ", ".join([*named, "attention_mask=mask"])
        call = _CALL.replace("MIDDLE", middle).replace("ARGUMENTS", arguments)
        kin = Way.of(asked, "mask of its kin", build, call, cross(**_STATED), config=config)
        found.append(replace(kin, certain=True))
    return found


def _core(asked: Asked) -> Way:
    stated = {
        "init": {"heads": "heads"},
        "inputs": {
            "value": "batch T_enc heads d_head",
            "places": "batch T_dec heads 2 3 2",
            "weights": "batch T_dec heads 6",
        },
        "kinds": {"weights": "weights"},
        "returns": [{"name": "context", "axes": "batch T_dec heads*d_head"}],
        **_STATED,
    }
    build = _ALONE.replace("GIVEN", "") + _PICTURES
    return Way.of(asked, "places and weights given", build, _CORE_CALL, stated)
