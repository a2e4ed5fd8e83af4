"""The attention layer of x-transformers in each of its options, alone and in stacks."""

from collections.abc import Iterator
from typing import Any

from real_code.subject import Subject

__all__ = ["subjects"]

# option -> (constructor's text, changes of the contract); a change to None leaves it undeclared
_FREE = {"score": None, "weights": None}
_DRAWN = {**_FREE, "random": True}
_BETWEEN = {"causal": "top_left", "score": None, "positions": "content"}
_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("", {}),
    "all keys masked": ("", {"all_masked": "zeros"}),
    "flash": ("flash=True", {"weights": None}),
    "talking heads before": ("pre_talking_heads=True", {"score": None}),
    "talking heads after": ("post_talking_heads=True", _FREE),
    "head scale": ("head_scale=True", {}),
    "top keys": ("sparse_topk=4", {"score": None}),
    "memories": ("num_mem_kv=3", _FREE),
    "gated values": ("gate_values=True", {"score": None}),
    "gated heads": ("gate_value_heads=True", {"score": None}),
    "swiglu values": ("swiglu_values=True", {"score": None}),
    "output gate": ("output_gate=True", {"score": None}),
    "on attention": ("on_attn=True", {"score": None}),
    "normalised": ("qk_norm=True", {"score": None}),
    "normalised in groups": ("qk_norm=True, qk_norm_groups=2", {"score": None}),
    "rms": ("qk_rmsnorm=True", {"score": None}),
    "rms of keys": ("k_rmsnorm=True", {"score": None}),
    "rms of values": ("value_rmsnorm=True", {"score": None}),
    "distance": ("l2_distance=True", {"score": None}),
    "sigmoid": ("sigmoid=True", _FREE),
    "hard": ("hard=True", _FREE),
    "signed": ("cog_signed=True", _FREE),
    "one key head": ("one_kv_head=True", {}),
    "fewer key heads": ("kv_heads=2", {}),
    "narrow values": ("value_dim_head=14", {}),
    "wider output": ("dim_out=d_model", {}),
    "zero key": ("add_zero_kv=True", _FREE),
    "sink": ("head_learned_sink=True", _FREE),
    "soft clamp": ("softclamp_logits=True", {"score": None}),
    "laser": ("laser=True", {"score": None}),
    "latent query": ("use_latent_q=True, dim_latent_q=14", {"score": None}),
    "latent keys": ("use_latent_kv=True, dim_latent_kv=14", {"score": None}),
    "inverted": ("inverted_attention=True", _FREE),
    "flash, narrow values": ("flash=True, value_dim_head=14", {"weights": None}),
    "flash, fewer key heads": ("flash=True, kv_heads=2", {"weights": None}),
    "flash, zero key": ("flash=True, add_zero_kv=True", _FREE),
    "flash, memories": ("flash=True, num_mem_kv=3", _FREE),
    "dropout": ("dropout=0.3, sublayer_dropout=0.2", {}),
    "top keys, straight through": (
        "sparse_topk=2, sparse_topk_straight_through=True",
        {"score": None},
    ),
    "scaled talking heads": (
        "pre_talking_heads=True, pre_scale_post_talking_heads=True",
        {**_FREE, "reweighted": True},
    ),
    "gated values of a low rank": ("gate_values=True, gate_values_rank=3", {"score": None}),
    "gated values by head": ("gate_values=True, gate_values_headwise=True", {"score": None}),
    "output gate of a low rank": ("output_gate=True, output_gate_rank=3", {"score": None}),
    "output gate by head": ("output_gate=True, output_gate_headwise=True", {"score": None}),
    "deep output": ("output_proj_depth=2", {}),
    "normalised, scaled by feature": (
        "qk_norm=True, qk_norm_dim_scale=True, qk_norm_scale=4",
        {"score": None},
    ),
    "own softmax": ("custom_attn_fn=lambda scores: scores.softmax(dim=-1)", {}),
    "gumbel": ("gumbel_softmax=True, gumbel_softmax_hard=False", _DRAWN),
    "gumbel, hard": ("gumbel_softmax=True", _DRAWN),
    "latent queries and keys": (
        "use_latent_q=True, dim_latent_q=14, use_latent_kv=True, dim_latent_kv=22",
        {"score": None},
    ),
}
_OWN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "self": ("", "", {}),
    "causal": ("causal=True", "", {"causal": "top_left"}),
    "causal, flash": ("causal=True, flash=True", "", {"causal": "top_left", "weights": None}),
    "selective": ("causal=True, selective=True", "", _BETWEEN),
    "window": ("causal=True, max_attend_past=3", "", {"causal": "top_left", "window": 4}),
    "alibi by content": (
        "causal=True, data_dependent_alibi=True",
        "",
        _BETWEEN,
    ),
    "contextual positions": (
        "causal=True, use_cope=True",
        "",
        {"causal": "top_left", "score": None, "positions": True},
    ),
    "relative projections": (
        "use_rel_proj_pos_bias=True",
        "",
        {"score": None, "positions": "relative"},
    ),
    "alibi by content of a row": (
        "causal=True, data_dependent_alibi=True, data_dependent_alibi_per_row=True",
        "",
        _BETWEEN,
    ),
    "contextual positions among heads": (
        "causal=True, use_cope=True, cope_talking_heads=True",
        "",
        {"causal": "top_left", "score": None, "positions": True},
    ),
    "own values left out": ("orthog_projected_values=True", "", {"score": None}),
    "own values left out, causal": (
        "causal=True, orthog_projected_values=True",
        "",
        {"causal": "top_left", "score": None},
    ),
    "own values left out by head, causal": (
        "causal=True, orthog_projected_values=True, orthog_projected_values_per_head=True",
        "",
        {"causal": "top_left", "score": None},
    ),
    "causal for export": ("causal=True, onnxable=True", "", {"causal": "top_left"}),
    "causal, one key head": ("causal=True, one_kv_head=True", "", {"causal": "top_left"}),
}
# Options of a stack that change neither who reads whom nor the meaning of positions.
_STACKED = (
    *("attn_num_mem_kv=3", "residual_attn=True", "macaron=True", "pre_norm=False"),
    *("pre_and_post_norm=True", "gate_residual=True", "scale_residual=True"),
    *("use_scalenorm=True", "use_simple_rmsnorm=True", "use_dynamic_tanh=True"),
    *("use_derf=True", "use_layerscale=True, layerscale_init_value=0.5"),
    *("softclamp_output=True", "orthog_residual=True", "num_residual_streams=2"),
    *("ff_swish=True, ff_glu=True", "ff_no_bias=True", "attn_gate_values=True"),
    *("attn_kv_heads=2", "attn_value_dim_head=14", "attn_head_scale=True"),
    *("reinject_input=True", "add_value_residual=True", "only_attn=True"),
    *("sandwich_coef=1", "weight_tie_layers=True", "attn_sigmoid=True"),
)
_KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Encoder", {}),
    ("Decoder", {"causal": "top_left"}),
)


def subjects() -> Iterator[Subject]:
    """The attention layer in each of its options, alone and in stacks."""
    text = (
        "import torch\nfrom torch import nn\n"
        "from x_transformers.x_transformers import Attention\n\n\nclass Wrapped(nn.Module):\n"
        "    def __init__(self, d_model, heads, d_head):\n"
        "        super().__init__()\n"
        "        self.attention = Attention(d_model, dim_head=d_head, heads=heads{more})\n\n"
        "    def forward(self, {arguments}):\n"
        "        found, seen = self.attention(\n"
        "            {given}, return_intermediates=True\n"
        "        )\n"
        "        return found{weights}\n"
    )
    cross: dict[str, Any] = {
        "init": {n: n for n in ("d_model", "heads", "d_head")},
        "inputs": {
            "x": "batch T_dec d_model",
            "context": "batch T_enc d_model",
            "mask": "batch T_enc",
        },
        "kinds": {"mask": "keep"},
        "returns": [
            {"name": "context", "axes": "batch T_dec d_model"},
            {"name": "weights", "axes": "batch heads T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
    }
    for name, (more, changes) in _OPTIONS.items():
        call = ("x, context, mask", "x, context=context, context_mask=mask")
        yield _option(text, f"Attention ({name})", more, call, {**cross, **changes})
    own = {
        **cross,
        "inputs": {"x": "batch T d_model", "mask": "batch T"},
        "returns": [
            {"name": "context", "axes": "batch T d_model"},
            {"name": "weights", "axes": "batch heads T T"},
        ],
    }
    for name, (more, _, changes) in _OWN.items():
        call = ("x, mask", "x, mask=mask")
        yield _option(text, f"Attention ({name})", more, call, {**own, **changes})
    stack = (
        "import torch\nfrom torch import nn\nfrom x_transformers.x_transformers import "
        "{kind}\n\n\nclass Wrapped(nn.Module):\n"
        "    def __init__(self, d_model, heads, d_head):\n"
        "        super().__init__()\n"
        "        self.layers = {kind}(\n"
        "            dim=d_model, depth=1, heads=heads, attn_dim_head=d_head{more}\n"
        "        )\n\n"
        "    def forward(self, {arguments}):\n"
        "        return self.layers({given})\n"
    )
    alone = {
        **{k: v for k, v in own.items() if k not in ("score", "weights")},
        "returns": [{"name": "context", "axes": "batch T d_model"}],
    }
    for kind, more, changes in (
        ("Encoder", "", {}),
        ("Encoder", "rotary_pos_emb=True", {"positions": "rotary"}),
        ("Encoder", "rel_pos_bias=True", {"positions": "relative"}),
        ("Encoder", "alibi_pos_bias=True", {"positions": "alibi"}),
        ("Encoder", "dynamic_pos_bias=True", {"positions": "relative"}),
        ("Encoder", "attn_qk_norm=True", {}),
        ("Encoder", "sandwich_norm=True", {}),
        ("Encoder", "use_rmsnorm=True, ff_glu=True", {}),
        ("Decoder", "", {"causal": "top_left"}),
        ("Decoder", "rotary_pos_emb=True", {"causal": "top_left", "positions": "rotary"}),
        ("Decoder", "alibi_pos_bias=True", {"causal": "top_left", "positions": "alibi"}),
        ("Decoder", "attn_flash=True", {"causal": "top_left"}),
        ("Decoder", "shift_tokens=1", {"causal": "top_left", "positions": True}),
        ("PrefixDecoder", "", {"causal": "top_left"}),
        ("TransformerBlock", "", {}),
        *((kind, more, like) for more in _STACKED for kind, like in _KINDS),
    ):
        source = stack.format(
            kind=kind,
            more=f", {more}" if more else "",
            arguments="x, mask",
            given="x, mask=mask",
        )
        what = f"{kind} ({more.removesuffix('=True') or 'plain'})"
        yield _subject("x_transformers", what, source, {**alone, **changes})
    source = stack.format(
        kind="CrossAttender",
        more="",
        arguments="x, context, mask",
        given="x, context=context, context_mask=mask",
    )
    contract = {
        **{k: v for k, v in cross.items() if k not in ("score", "weights")},
        "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
    }
    yield _subject("x_transformers", "CrossAttender", source, contract)
    pool = (
        "import torch\nfrom torch import nn\n"
        "from x_transformers.x_transformers import AttentionPool\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, d_model, heads, d_head):\n"
        "        super().__init__()\n"
        "        self.pool = AttentionPool(\n"
        "            d_model, heads=heads, dim_head=d_head, num_pooled_tokens=5{more}\n"
        "        )\n\n"
        "    def forward(self, context, mask):\n"
        "        return self.pool(context, mask=mask)\n"
    )
    contract = {
        "init": {n: n for n in ("d_model", "heads", "d_head")},
        "inputs": {"context": "batch T_enc d_model", "mask": "batch T_enc"},
        "kinds": {"mask": "keep"},
        "returns": [{"name": "pooled", "axes": "batch 5 d_model"}],
    }
    for what, more in (
        ("", ""),
        (" (residual)", ", add_residual=True"),
        (" (deep)", ", depth=2"),
    ):
        source = pool.format(more=more)
        yield _subject("x_transformers", f"AttentionPool{what}", source, contract)
    attend = (
        "import torch\nfrom torch import nn\nfrom x_transformers.attend import Attend\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads):\n"
        "        super().__init__()\n"
        "        self.attend = Attend(heads=heads{more})\n\n"
        "    def forward(self, q, k, v, mask):\n"
        "        found, seen = self.attend(q, k, v, mask=mask[:, None, None, :])\n"
        "        return found{weights}\n"
    )
    bare: dict[str, Any] = {
        "init": {"heads": "heads"},
        "inputs": {
            "q": "batch heads T_dec d_head",
            "k": "batch heads T_enc d_head",
            "v": "batch heads T_enc d_head",
            "mask": "batch T_enc",
        },
        "kinds": {"mask": "keep"},
        "returns": [
            {"name": "context", "axes": "batch heads T_dec d_head"},
            {"name": "weights", "axes": "batch heads T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
    }
    for name, more, changes in (
        ("", "", {}),
        (" (flash)", ", flash=True", {"weights": None}),
        (" (scale)", ", scale=0.5", {"scale": "0.5"}),
        (" (soft clamp)", ", softclamp_logits=True", {"score": None}),
        (" (distance)", ", l2_distance=True", {"score": None}),
    ):
        yield _option(attend, f"Attend{name}", more[2:], ("", ""), {**bare, **changes})


def _option(
    text: str, name: str, more: str, call: tuple[str, str], contract: dict[str, Any]
) -> Subject:
    weights = ", seen.post_softmax_attn"
    if contract.get("weights") is None:
        contract["returns"] = contract["returns"][:1]
        weights = ""
    contract = {k: v for k, v in contract.items() if v is not None}
    source = text.format(
        more=f", {more}" if more else "", arguments=call[0], given=call[1], weights=weights
    )
    return _subject("x_transformers", name, source, contract)


def _subject(library: str, name: str, source: str, contract: dict[str, Any]) -> Subject:
    whole = {"target": "wrapped.py:Wrapped", **contract}
    return Subject(f"{library}/{name}", library, library, source, "Wrapped", whole)
