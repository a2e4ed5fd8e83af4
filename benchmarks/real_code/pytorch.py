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
_MEAN_WEIGHTS = {"name": "weights", "axes": "batch T_dec T_enc"}
_MEAN = {
    "returns": [{"name": "context", "axes": "batch T_dec d_model"}, _MEAN_WEIGHTS],
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
    "cross, time first": (
        "",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding)",
        {
            **_CROSS,
            **_MEAN,
            "inputs": {
                "query": "T_dec batch d_model",
                "key": "T_enc batch d_model",
                "value": "T_enc batch d_model",
                "padding": "batch T_enc",
            },
            "returns": [{"name": "context", "axes": "T_dec batch d_model"}, _MEAN_WEIGHTS],
        },
    ),
    "no biases, dropout": (
        "bias=False, dropout=0.3, batch_first=True",
        "query, key, value, padding",
        "return self.attention(query, key, value, key_padding_mask=padding)",
        {**_CROSS, **_MEAN},
    ),
    "is_causal": (
        "batch_first=True",
        "x",
        "later = nn.Transformer.generate_square_subsequent_mask(x.shape[1])\n"
        "        return self.attention(x, x, x, attn_mask=later, is_causal=True, "
        "need_weights=False)[0]",
        {**_SELF, "inputs": {"x": "batch T d_model"}, "kinds": {}, "causal": "top_left"},
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
    yield from _stacks(contract)
    yield from _functional()


def _stacks(contract: dict[str, Any]) -> Iterator[Subject]:
    """Whole stacks, in both orders of the axes."""
    for what, order, given in (
        ("", "batch {} d_model", ", batch_first=True"),
        (" (time first)", "{} batch d_model", ""),
    ):
        time = "1" if given else "0"
        encoder = (
            f"{_HEAD}class Wrapped(nn.Module):\n"
            "    def __init__(self, d_model, heads):\n"
            "        super().__init__()\n"
            f"        layer = nn.TransformerEncoderLayer(d_model, heads, 52{given})\n"
            "        self.layers = nn.TransformerEncoder(layer, 2)\n\n"
            "    def forward(self, x, padding):\n"
            "        return self.layers(x, src_key_padding_mask=padding)\n"
        )
        own = {
            **_SELF,
            "score": None,
            "inputs": {"x": order.format("T"), "padding": "batch T"},
            "returns": [{"name": "context", "axes": order.format("T")}],
        }
        yield _subject(f"TransformerEncoder{what}", encoder, "Wrapped", own)
        later = (
            f"        later = nn.Transformer.generate_square_subsequent_mask(x.shape[{time}])\n"
        )
        decoder = (
            f"{_HEAD}class Wrapped(nn.Module):\n"
            "    def __init__(self, d_model, heads):\n"
            "        super().__init__()\n"
            f"        layer = nn.TransformerDecoderLayer(d_model, heads, 52{given})\n"
            "        self.layers = nn.TransformerDecoder(layer, 2)\n\n"
            "    def forward(self, x, memory, padding):\n"
            f"{later}"
            "        return self.layers(\n"
            "            x, memory, tgt_mask=later, memory_key_padding_mask=padding\n"
            "        )\n"
        )
        whole = (
            f"{_HEAD}class Wrapped(nn.Module):\n"
            "    def __init__(self, d_model, heads):\n"
            "        super().__init__()\n"
            "        self.model = nn.Transformer(\n"
            f"            d_model, heads, 1, 1, 52{given}\n"
            "        )\n\n"
            "    def forward(self, x, memory, padding):\n"
            f"{later}"
            "        return self.model(\n"
            "            memory, x, tgt_mask=later, src_key_padding_mask=padding,\n"
            "            memory_key_padding_mask=padding,\n"
            "        )\n"
        )
        both = {
            **contract,
            "inputs": {
                "x": order.format("T_dec"),
                "memory": order.format("T_enc"),
                "padding": "batch T_enc",
            },
            "returns": [{"name": "context", "axes": order.format("T_dec")}],
        }
        yield _subject(f"TransformerDecoder{what}", decoder, "Wrapped", both)
        yield _subject(f"Transformer{what}", whole, "Wrapped", both)


def _functional() -> Iterator[Subject]:
    """The function behind the layer, its weights given in one piece and in three."""
    text = (
        f"{_HEAD}def attend(query, key, value, padding, {{weights}}, out, heads):\n"
        "    return F.multi_head_attention_forward(\n"
        "        query, key, value, query.shape[-1], heads, {given}, None, None,\n"
        "        False, 0.0, out, None, training=False, key_padding_mask=padding,\n"
        "        average_attn_weights=False{more}\n"
        "    )\n"
    )
    plain: dict[str, Any] = {
        "inputs": {
            "query": "T_dec batch d_model",
            "key": "T_enc batch d_model",
            "value": "T_enc batch d_model",
            "padding": "batch T_enc",
            "joined": "3*d_model d_model",
            "out": "d_model d_model",
            "heads": "",
        },
        "kinds": {"padding": "drop"},
        "values": {"heads": "heads"},
        "returns": [
            {"name": "context", "axes": "T_dec batch d_model"},
            {"name": "weights", "axes": "batch heads T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
    }
    source = text.format(weights="joined", given="joined, None", more="")
    yield _subject("multi_head_attention_forward", source, "attend", plain)
    inputs = {n: a for n, a in plain["inputs"].items() if n not in ("joined", "out", "heads")}
    inputs |= {
        "key": "T_enc batch d_h",
        "value": "T_enc batch d_v",
        "w_q": "d_model d_model",
        "w_k": "d_model d_h",
        "w_v": "d_model d_v",
        "out": "d_model d_model",
        "heads": "",
    }
    source = text.format(
        weights="w_q, w_k, w_v",
        given="None, None",
        more=",\n        use_separate_proj_weight=True, q_proj_weight=w_q,\n"
        "        k_proj_weight=w_k, v_proj_weight=w_v",
    )
    name = "multi_head_attention_forward (weights apart)"
    yield _subject(name, source, "attend", {**plain, "inputs": inputs})


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
