"""PyTorch's own attention, called as its manual says, and as it is often called by mistake."""

from collections.abc import Iterator
from typing import Any

from real_code.subject import Subject

__all__ = ["subjects"]

_HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\n\n"

_Q = {"query": "batch heads T_dec d_head", "key": "batch heads T_enc d_head"}
_SDPA: dict[str, tuple[str, str, dict[str, Any]]] = {
    "boolean mask": (
        "query, key, value, mask",
        "attn_mask=mask",
        {
            "inputs": {**_Q, "value": "batch heads T_enc d_v", "mask": "batch 1 T_dec T_enc"},
            "kinds": {"mask": "keep"},
            "all_masked": "zeros",
        },
    ),
    "additive mask": (
        "query, key, value, mask",
        "attn_mask=mask",
        {
            "inputs": {**_Q, "value": "batch heads T_enc d_v", "mask": "batch 1 1 T_enc"},
            "kinds": {"mask": "additive"},
        },
    ),
    "causal": (
        "query, key, value",
        "is_causal=True",
        {
            "inputs": dict.fromkeys(("query", "key", "value"), "batch heads T d_head"),
            "causal": "top_left",
            "returns": [{"name": "context", "axes": "batch heads T d_head"}],
        },
    ),
    "causal, more keys than queries": (
        "query, key, value",
        "is_causal=True",
        {"inputs": {**_Q, "value": "batch heads T_enc d_v"}, "causal": "top_left"},
    ),
    "no scale": (
        "query, key, value",
        "scale=1.0",
        {"inputs": {**_Q, "value": "batch heads T_enc d_v"}, "scale": "1"},
    ),
    "fewer key heads": (
        "query, key, value",
        "enable_gqa=True",
        {
            "inputs": {
                "query": "batch heads T_dec d_head",
                "key": "batch kv_heads T_enc d_head",
                "value": "batch kv_heads T_enc d_v",
            }
        },
    ),
}


def subjects() -> Iterator[Subject]:
    """Functions, the layer in its many forms, and layers made of it."""
    for name, (arguments, given, contract) in _SDPA.items():
        source = (
            f"{_HEAD}def attend({arguments}):\n"
            f"    return F.scaled_dot_product_attention(query, key, value, {given})\n"
        )
        whole = {
            "returns": [{"name": "context", "axes": "batch heads T_dec d_v"}],
            "score": "scaled_dot",
            **contract,
        }
        yield _subject(f"scaled_dot_product_attention ({name})", source, "attend", whole)
    yield from _layers()
    yield from _flex()


_CROSS = {
    "init": {"d_model": "d_model", "heads": "heads"},
    "inputs": {
        "query": "batch T_dec d_model",
        "key": "batch T_enc d_model",
        "value": "batch T_enc d_model",
        "padding": "batch T_enc",
    },
    "kinds": {"padding": "drop"},
    "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
    "score": "scaled_dot",
}
_EVERY_HEAD = {
    "returns": [
        {"name": "context", "axes": "batch T_dec d_model"},
        {"name": "weights", "axes": "batch heads T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
}
_MEAN = {
    "returns": [
        {"name": "context", "axes": "batch T_dec d_model"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
}
_SELF = {
    "init": {"d_model": "d_model", "heads": "heads"},
    "inputs": {"x": "batch T d_model", "padding": "batch T"},
    "kinds": {"padding": "drop"},
    "returns": [{"name": "context", "axes": "batch T d_model"}],
    "score": "scaled_dot",
}

# name -> (constructor's rest, forward's arguments, lines of its body, contract)
_MHA: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "cross, weights of every head": (
        "batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding, "
        "average_attn_weights=False)",
        {**_CROSS, **_EVERY_HEAD},
    ),
    "cross, mean weights": (
        "batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding)",
        {**_CROSS, **_MEAN},
    ),
    "cross, no weights": (
        "batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding, "
        "need_weights=False)[0]",
        _CROSS,
    ),
    "keys and values of other sizes": (
        "kdim=38, vdim=46, batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding)",
        {
            **_CROSS,
            **_MEAN,
            "inputs": {
                "query": "batch T_dec d_model",
                "key": "batch T_enc d_h",
                "value": "batch T_enc d_v",
                "padding": "batch T_enc",
            },
            "sizes": {"d_h": 38, "d_v": 46},
        },
    ),
    "self": (
        "batch_first=True",
        "x, padding",
        "return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]",
        _SELF,
    ),
    "self, time first": (
        "",
        "x, padding",
        "return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]",
        {
            **_SELF,
            "inputs": {"x": "T batch d_model", "padding": "batch T"},
            "returns": [{"name": "context", "axes": "T batch d_model"}],
        },
    ),
    "self, causal": (
        "batch_first=True",
        "x",
        "later = nn.Transformer.generate_square_subsequent_mask(x.shape[1])\n"
        "        return self.attention(x, x, x, attn_mask=later, need_weights=False)[0]",
        {**_SELF, "inputs": {"x": "batch T d_model"}, "kinds": {}, "causal": "top_left"},
    ),
    "self, causal and padded": (
        "batch_first=True",
        "x, padding",
        "later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)\n"
        "        return self.attention(x, x, x, key_padding_mask=padding, attn_mask=later, "
        "need_weights=False)[0]",
        {**_SELF, "causal": "top_left"},
    ),
    "a bias as a further key": (
        "add_bias_kv=True, batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding, "
        "need_weights=False)[0]",
        {**_CROSS, "score": None},
    ),
    "a zero as a further key": (
        "add_zero_attn=True, batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding, "
        "need_weights=False)[0]",
        {**_CROSS, "score": None},
    ),
    "all keys masked, weights asked for": (
        "batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding)",
        {**_CROSS, **_MEAN, "all_masked": "zeros"},
    ),
    "all keys masked, no weights": (
        "batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding, "
        "need_weights=False)[0]",
        {**_CROSS, "all_masked": "zeros"},
    ),
    "one mask a head, by repeat": (
        "batch_first=True",
        "query, key, value, padding",
        "shape = (query.shape[0], query.shape[1], key.shape[1])\n"
        "        masks = padding[:, None].expand(shape)\n"
        "        masks = masks.repeat(self.attention.num_heads, 1, 1)\n"
        "        return self.attention(query, key, value, attn_mask=masks, "
        "need_weights=False)[0]",
        _CROSS,
    ),
    "one mask a head, by repeat_interleave": (
        "batch_first=True",
        "query, key, value, padding",
        "shape = (query.shape[0], query.shape[1], key.shape[1])\n"
        "        masks = padding[:, None].expand(shape)\n"
        "        masks = masks.repeat_interleave(self.attention.num_heads, dim=0)\n"
        "        return self.attention(query, key, value, attn_mask=masks, "
        "need_weights=False)[0]",
        _CROSS,
    ),
    "batch_first forgotten": (
        "",
        "x",
        "return self.attention(x, x, x, need_weights=False)[0]",
        {**_SELF, "inputs": {"x": "batch T d_model"}, "kinds": {}},
    ),
}


def _layers() -> Iterator[Subject]:
    for name, (built, arguments, body, contract) in _MHA.items():
        source = (
            f"{_HEAD}class Wrapped(nn.Module):\n"
            "    def __init__(self, d_model, heads):\n"
            "        super().__init__()\n"
            f"        self.attention = nn.MultiheadAttention(d_model, heads, {built})\n\n"
            f"    def forward(self, {arguments}):\n"
            f"        {body}\n"
        )
        yield _subject(f"MultiheadAttention ({name})", source, "Wrapped", contract)
    encoder = (
        f"{_HEAD}class Wrapped(nn.Module):\n"
        "    def __init__(self, d_model, heads):\n"
        "        super().__init__()\n"
        "        self.layer = nn.TransformerEncoderLayer(\n"
        "            d_model, heads, 52, batch_first=True{more}\n"
        "        )\n\n"
        "    def forward(self, x, padding):\n"
        "        return self.layer(x, src_key_padding_mask=padding)\n"
    )
    for what, more in (("", ""), (" (norm first)", ", norm_first=True, activation='gelu'")):
        contract = {**_SELF, "score": None}
        yield _subject(
            f"TransformerEncoderLayer{what}", encoder.format(more=more), "Wrapped", contract
        )
    decoder = (
        f"{_HEAD}class Wrapped(nn.Module):\n"
        "    def __init__(self, d_model, heads):\n"
        "        super().__init__()\n"
        "        self.layer = nn.TransformerDecoderLayer(\n"
        "            d_model, heads, 52, batch_first=True\n"
        "        )\n\n"
        "    def forward(self, x, memory, padding):\n"
        "        later = nn.Transformer.generate_square_subsequent_mask(x.shape[1])\n"
        "        return self.layer(\n"
        "            x, memory, tgt_mask=later, memory_key_padding_mask=padding\n"
        "        )\n"
    )
    contract = {
        "init": {"d_model": "d_model", "heads": "heads"},
        "inputs": {
            "x": "batch T_dec d_model",
            "memory": "batch T_enc d_model",
            "padding": "batch T_enc",
        },
        "kinds": {"padding": "drop"},
        "positions": "recurrent",  # rows know the rows before them
        "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
    }
    yield _subject("TransformerDecoderLayer", decoder, "Wrapped", contract)


def _flex() -> Iterator[Subject]:
    source = (
        "import torch\nfrom torch.nn.attention.flex_attention import flex_attention\n\n\n"
        "def attend(query, key, value):\n"
        "    def near(score, b, h, q, k):\n"
        "        return score - 0.3 * (q - k).abs()\n\n"
        "    return flex_attention(query, key, value, score_mod={mod})\n"
    )
    contract: dict[str, Any] = {
        "inputs": {**_Q, "value": "batch heads T_enc d_head"},
        "returns": [{"name": "context", "axes": "batch heads T_dec d_head"}],
    }
    yield _subject("flex_attention", source.format(mod="None"), "attend", contract)
    placed = {**contract, "positions": "relative"}
    yield _subject("flex_attention (distance)", source.format(mod="near"), "attend", placed)


def _subject(name: str, source: str, entry: str, contract: dict[str, Any]) -> Subject:
    whole = {"target": f"wrapped.py:{entry}", **contract}
    whole = {k: v for k, v in whole.items() if v is not None and v != {}}
    return Subject(f"torch/{name}", "torch", "torch", source, entry, whole)
