"""What is called attention and has another form: decays, averages, hashes, gates, steps."""

from real_code.kinds.base import OWN, Asked, Way, own

__all__ = ["ways"]

_ALONE = {"inputs": {"hidden_states": "batch T d_model"}}

# -- products without a softmax that fade with the distance, block by block ------------------

_DECAYING_BUILD = """
config = CONFIG
config.block_size = BLOCK
self.attention = NAME(config, 0)
"""
_DECAYING_CALL = """
return self.attention(
    hidden_states=hidden_states, position_embeddings=None, attention_mask=mask
)[0]
"""

# -- queries and keys that a convolution over earlier positions makes ------------------------

_CONVOLVED_BUILD = """
config = CONFIG
self.width = d_head // 4 * 2
self.attention = NAME(config, 0)
"""
_CONVOLVED_CALL = """
n, t = hidden_states.shape[:2]
rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)
angle = torch.arange(t)[:, None] * rate
angle = torch.cat((angle, angle), dim=-1)[None].expand(n, -1, -1)
keep = mask[:, None, None] & torch.ones(t, t, dtype=torch.bool).tril()
return self.attention(
    hidden_states=hidden_states,
    attention_mask={"causal": torch.where(keep, 0.0, LOWEST), "conv": mask},
    position_embeddings=(angle.cos(), angle.sin()),
)[:2]
"""

# -- a running average whose weights decay at learned rates ----------------------------------

# Rates of the size that the model starts with: the class leaves their memory as it is.
_AVERAGING_BUILD = """
config = CONFIG
config.attention_hidden_size = d_model
self.attention = NAME(config)
with torch.no_grad():
    self.attention.time_decay.fill_(-4.0)
    self.attention.time_first.fill_(0.3)
"""

# -- keys that are queries, in one chunk or in the chunk of their bucket ---------------------

_HASHED_BUILD = """
config = CONFIG
config.lsh_attn_chunk_length = config.local_attn_chunk_length = CHUNK
config.hash_seed, config.is_decoder, config.num_hashes = 3, CAUSAL, 2
config.attn_layers = ["KIND"] * 2
self.attention = NAME(config, 0)
"""
_HASHED_CALL = """
return self.attention(hidden_states, attention_mask=mask)[0]
"""

# -- blocks, and tokens that all read --------------------------------------------------------

_BLOCKED_BUILD = """
self.attention = NAME(d_model, heads, 1)
"""
_ONE_BLOCK_CALL = """
self.attention.block_size = hidden_states.shape[1]
bias = torch.where(mask, 0.0, LOWEST)
return self.attention(hidden_states, memory, attention_mask=bias)[:2]
"""
# Blocks of one sequence know no more of each other than examples of a batch.
_BLOCKS_CALL = """
n, t = hidden_states.shape[:2]
self.attention.block_size = t
bias = torch.where(mask.reshape(1, n * t), 0.0, LOWEST)
whole = hidden_states.reshape(1, n * t, -1)
found = self.attention(whole, memory[None], attention_mask=bias)
return found[0].reshape(n, t, -1)
"""

_PLAIN_CALL = """
return self.attention(hidden_states)
"""

# -- one step of a decoder -------------------------------------------------------------------

_STEP_BUILD = """
self.attention = NAME(d_h, d_s, d_emb)
"""
_STEP_CALL = """
return self.attention(state, memory, symbol)
"""
_STEP = {
    "init": {n: n for n in ("d_h", "d_s", "d_emb")},
    "inputs": {"state": "batch d_s", "memory": "batch T_enc d_h", "symbol": "batch d_emb"},
    "returns": [
        {"name": "state", "axes": "batch d_s"},
        {"name": "weights", "axes": "batch 1 T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "additive",
}


def ways(asked: Asked) -> list[Way]:  # noqa: PLR0911 - one a kind
    """Ways to ask a class of these kinds; none for any other."""
    takes = set(asked.takes)
    if {"num_hashes", "past_buckets_states"} <= takes:
        return _hashed(asked)
    code = asked.said.code
    if "slope_rate" in code and "cache" in takes:
        return _decaying(asked)
    if '.get("conv")' in code:
        stated = own(
            causal="top_left",
            positions="recurrent",
            returns=[*OWN["returns"], {"name": "weights", "axes": "batch heads T T"}],
            weights={"output": "weights", "sums_to_one_over": -1},
        )
        return [
            Way.of(
                asked,
                "convolved before",
                _CONVOLVED_BUILD,
                _CONVOLVED_CALL,
                stated,
                config=asked.config(),
            )
        ]
    if {"hidden", "state", "use_cache"} <= takes:
        stated = own(**_ALONE, kinds={}, causal="top_left", positions="recurrent")
        call = "return self.attention(hidden_states)[0]"
        return [
            Way.of(
                asked,
                "average that decays",
                _AVERAGING_BUILD,
                call,
                stated,
                config=asked.config(),
            )
        ]
    if {"token_hidden_states", "global_hidden_states"} <= takes:
        return _blocks(asked)
    if {"prev_hidden", "batch_hidden"} <= takes:
        return [Way.of(asked, "one step", _STEP_BUILD, _STEP_CALL, _STEP)]
    if takes == {"x"} and "to_query" in code:
        stated = own(**_ALONE, kinds={}, score="none")
        build, config = "self.attention = NAME(CONFIG, d_model)", asked.config()
        return [Way.of(asked, "queries pooled", build, _PLAIN_CALL, stated, config=config)]
    if {"in_size", "out_size"} == set(asked.built_with):
        # A gate weighs features: a position knows no other.
        stated = own(**_ALONE, kinds={}, window=1)
        build = "self.attention = NAME(d_model, d_model)"
        return [Way.of(asked, "gate", build, _PLAIN_CALL, stated)]
    return []


def _decaying(asked: Asked) -> list[Way]:
    stated = own(causal="top_left", positions="relative", score="none")
    return [
        Way.of(
            asked,
            form,
            _DECAYING_BUILD.replace("BLOCK", str(block)),
            _DECAYING_CALL,
            stated,
            config=asked.config(),
        )
        for form, block in (("one block", 64), ("blocks", 4))
    ]


def _hashed(asked: Asked) -> list[Way]:
    found = []
    for form, chunk, more in (
        ("one chunk", 64, {}),
        ("one chunk, causal", 64, {"causal": "top_left"}),
        ("buckets", 4, {"sparse": True, "positions": "recurrent", "sizes": {"T": 12}}),
    ):
        build = _HASHED_BUILD.replace("CHUNK", str(chunk)).replace("KIND", "lsh")
        build = build.replace("CAUSAL", str("causal" in more))
        found.append(
            Way.of(asked, form, build, _HASHED_CALL, own(**more), config=asked.config())
        )
    return found


def _blocks(asked: Asked) -> list[Way]:
    rows, summary = OWN["inputs"]["hidden_states"], "batch n_global d_model"
    sizes = {"n_global": 3}
    given = {"hidden_states": rows, "memory": summary, "mask": "batch T"}
    whole = own(
        inputs=given,
        returns=[*OWN["returns"], {"name": "summary", "axes": summary}],
        sizes=sizes,
    )
    apart = own(inputs={**given, "memory": "n_global d_model"}, sizes=sizes)
    return [
        Way.of(asked, "one block", _BLOCKED_BUILD, _ONE_BLOCK_CALL, whole),
        Way.of(asked, "blocks", _BLOCKED_BUILD, _BLOCKS_CALL, apart),
    ]
