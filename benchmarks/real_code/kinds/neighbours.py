"""Attention to a neighbourhood: sliding windows, blocks, chunks, squares of a picture.

Each is asked where the neighbourhood is wider than the text, so that every relation of plain
attention must hold across the borders of its blocks, and where it is narrow, with what is seen
declared: a window, or `sparse` where no window says it.
"""

import inspect

from real_code.kinds.base import Asked, Way, own

__all__ = ["ways"]

_SLIDING_BUILD = """
config = CONFIG
config.attention_window = [WINDOW] * 4
self.window = WINDOW
self.attention = NAME(config, 0)
"""
# Projections of tokens that see everything are idle where there are none.
_WITHOUT = """
for module in list(self.attention.modules()):
    if hasattr(module, "query_global"):
        module.query_global = module.key_global = module.value_global = None
"""
_SLIDING_CALL = """
behind = -hidden_states.shape[1] % self.window
whole = F.pad(hidden_states, (0, 0, 0, behind))
bias = torch.where(F.pad(mask, (0, behind)), 0.0, -10000.0)
FIRST
found = self.attention(
    whole,
    attention_mask=bias,
    is_index_masked=bias < 0,
    is_index_global_attn=bias > 0,
    is_global_attn=bool((bias > 0).any()),
)
return found[0][:, : hidden_states.shape[1]]
"""
_FIRST = "bias[:, 0] = torch.where(mask[:, 0], 10000.0, -10000.0)"
_RADIUS_BUILD = """
config = CONFIG
config.local_radius, config.global_block_size = RADIUS, 4
self.length = RADIUS + 1
self.attention = NAME(config, has_relative_attention_bias=BIAS)
"""
_RADIUS_CALL = """
seen = _get_local_attention_mask(mask.long(), self.length, mask.device)
return self.attention(hidden_states, seen)[0]
"""
_SUMMARIES_CALL = """
return self.attention(hidden_states, mask.long())[0]
"""
_BLOCKS_BUILD = """
config = CONFIG
config.attention_type, config.block_size, config.num_random_blocks = "block_sparse", 2, 2
self.attention = NAME(config, seed=0)
"""
_BLOCKS_CALL = """
t = hidden_states.shape[1]
behind = max(20 - t, -t % 2)
seen = F.pad(mask.float(), (0, behind))
blocks, band, rows, columns = MAKER.create_masks_for_block_sparse_attn(seen, 2)
found = self.attention(
    F.pad(hidden_states, (0, 0, 0, behind)),
    band_mask=band,
    from_mask=rows,
    to_mask=columns,
    from_blocked_mask=blocks,
    to_blocked_mask=blocks,
)
return found[0][:, :t], found[1][:, :, :t, :t]
"""
_CHUNKS_BUILD = """
config = CONFIG
config.conf_num_attention_heads, config.conf_attention_chunk_size = heads, CHUNK
config.conf_attention_context_left, config.conf_attention_context_right = LEFT, RIGHT
self.attention = NAME(config)
"""
_CHUNKS_CALL = """
return self.attention(hidden_states, ~mask).flatten(2)
"""
_BLOCKED_BUILD = """
self.config = CONFIG
self.config.attention_chunk_size = CHUNK
self.config.attention_context_left, self.config.attention_context_right = LEFT, 0
self.attention, self.places = NAME(self.config, 0), PLACES(self.config)
"""
_BLOCKED_CALL = """
place = torch.arange(hidden_states.shape[1])
back = place[:, None] - place
near = (back >= 0) & (back < self.config.attention_context_left - 1)
bias = torch.where(mask[:, None, None, :] & near, 0.0, LOWEST)
blocked = MODEL._convert_4d_mask_to_blocked_5d(self, bias)
return self.attention(hidden_states, self.places(hidden_states), blocked)[0]
"""
_SQUARES_BUILD = """
config = CONFIG
config.embed_dim, config.num_heads, config.window_size = [d_model], [heads], WINDOW
self.attention = NAME(config, 0)
"""
_SQUARES_CALL = """
return self.attention(hidden_states)
"""
_CHOSEN_BUILD = """
config = CONFIG
config.index_topk, config.index_kpool, config.index_kpool_always_select_tail = MOST, 3, True
config.index_n_heads, config.index_head_dim, config.qk_rope_head_dim = 24, 8, 0
config.indexer_types = ["full"] * 4
self.attention = NAME(config, 0)
"""
_CHOSEN_CALL = """
mask = torch.arange(hidden_states.shape[1]) < lengths[:, None]
return self.attention(hidden_states, mask)[:2]
"""


def ways(asked: Asked) -> list[Way]:
    """Ways to ask a class that looks at a neighbourhood; none for any other."""
    takes, code = asked.takes, asked.said.code
    told = (
        ("is_index_global_attn" in takes, _sliding),
        ("prev_topk_indices" in takes and _has_pools(asked), _chosen),
        ("band_mask" in takes, _blocks),
        ("self.block_len" in code, _radius),
        ("max_past_horizon" in code, _chunks),
        ("padded_height" in code and takes == ("hidden_states",), _squares),
    )
    return next((ask(asked) for is_one, ask in told if is_one), [])


def _has_pools(asked: Asked) -> bool:
    """Whether keys are chosen a pool of neighbours at a time."""
    return "index_kpool" in inspect.getsource(asked.said.loaded)


def _sliding(asked: Asked) -> list[Way]:
    found = []
    for form, window, more in (
        ("whole text in the window", 64, {}),
        ("window", 4, {"window": 3}),
        ("window and one token that sees all", 4, {"sparse": True}),
    ):
        sees_all = "sees all" in form
        build = _SLIDING_BUILD.replace("WINDOW", str(window)) + ("" if sees_all else _WITHOUT)
        call = _SLIDING_CALL.replace("FIRST", _FIRST if sees_all else "")
        stated = own(**more)
        found.append(Way.of(asked, form, build, call, stated, config=asked.config()))
    return found


def _radius(asked: Asked) -> list[Way]:
    has_summaries = "global_block_size" in asked.said.code
    call = _SUMMARIES_CALL if has_summaries else _RADIUS_CALL
    found = []
    for form, radius, bias, more in (
        ("whole text in the radius", 63, False, {}),
        ("radius", 2, True, {"window": 3, "positions": "recurrent"}),
    ):
        if has_summaries:  # of blocks, so that places count and nothing is out of reach
            more = {"positions": "recurrent"}  # noqa: PLW2901
        build = _RADIUS_BUILD.replace("RADIUS", str(radius)).replace(
            "BIAS", str(bias or has_summaries)
        )
        of = {"config": asked.config(), "beside": ("_get_local_attention_mask",)}
        found.append(Way.of(asked, form, build, call, own(**more), **of))
    return found


def _blocks(asked: Asked) -> list[Way]:
    maker = asked.beside("create_masks_for_block_sparse_attn")
    weights = {"name": "weights", "axes": "batch heads T T"}
    stated = own(
        sparse=True,
        returns=[*own()["returns"], weights],
        weights={"output": "weights", "sums_to_one_over": -1},
    )
    call = _BLOCKS_CALL.replace("MAKER", maker)
    of = {"config": asked.config(), "beside": (maker,)}
    alone = call.replace(", found[1][:, :, :t, :t]", "")
    return [
        Way.of(asked, "blocks", _BLOCKS_BUILD, call, stated, **of),
        Way.of(asked, "blocks, context alone", _BLOCKS_BUILD, alone, own(sparse=True), **of),
    ]


def _chosen(asked: Asked) -> list[Way]:
    found = []
    for form, most, more in (
        ("every pool of keys is chosen", 64, {}),
        ("two pools of keys are chosen", 6, {"sparse": True}),
    ):
        # Pools begin at the first word, and know of no padding between words.
        stated = own(
            inputs={"hidden_states": "batch T d_model", "lengths": "batch"},
            kinds={"lengths": "lengths"},
            causal="top_left",
            positions="recurrent",
            returns=[*own()["returns"], {"name": "weights", "axes": "batch heads T T"}],
            weights={"output": "weights", "sums_to_one_over": -1},
            **more,
        )
        build = _CHOSEN_BUILD.replace("MOST", str(most))
        of = {"config": asked.config("Text")}
        found.append(Way.of(asked, form, build, _CHOSEN_CALL, stated, **of))
    return found


def _chunks(asked: Asked) -> list[Way]:
    config = asked.config("Audio")
    if "position_embeddings" in asked.takes:
        return _blocked(asked, config)
    found = []
    for form, sizes, more in (
        ("whole text in reach", (4, 65, 64), {}),
        ("chunks", (4, 4, 0), {"causal": "top_left", "window": 4}),
    ):
        build = _CHUNKS_BUILD
        for name, size in zip(("CHUNK", "LEFT", "RIGHT"), sizes, strict=True):
            build = build.replace(name, str(size))
        stated = own(positions="recurrent", **more)
        found.append(Way.of(asked, form, build, _CHUNKS_CALL, stated, config=config))
    return found


def _blocked(asked: Asked, config: tuple[str, str]) -> list[Way]:
    model = asked.beside("_convert_4d_mask_to_blocked_5d")
    places = next(n for n in vars(asked.said.loaded) if n.endswith("RelPositionalEncoding"))
    found = []
    for form, chunk, left, more in (
        ("earlier text in reach", 32, 33, {}),
        ("chunks", 4, 5, {"window": 4}),
    ):
        build = _BLOCKED_BUILD.replace("CHUNK", str(chunk)).replace("LEFT", str(left))
        build = build.replace("PLACES", places)
        call = _BLOCKED_CALL.replace("MODEL", model)
        stated = own(positions="recurrent", causal="top_left", **more)
        of = {"config": config, "beside": (model, places)}
        found.append(Way.of(asked, form, build, call, stated, **of))
    return found


def _squares(asked: Asked) -> list[Way]:
    found = []
    for form, window, more in (
        ("one window", 5, {"sizes": {"height": 5, "width": 5}}),
        ("windows", 5, {"sizes": {"height": 5, "width": 10}, "sparse": True}),
        ("window larger than the picture", 10, {}),
    ):
        stated = {
            "init": own()["init"],
            "inputs": {"hidden_states": "batch height width d_model"},
            "returns": [{"name": "context", "axes": "batch height*width d_model"}],
            **more,
        }
        build = _SQUARES_BUILD.replace("WINDOW", str(window))
        config = asked.config("Vision")
        found.append(Way.of(asked, form, build, _SQUARES_CALL, stated, config=config))
    return found
