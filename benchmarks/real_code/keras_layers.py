"""Keras' attention layers on its PyTorch backend."""

from collections.abc import Iterator
from typing import Any

from real_code.subject import Subject

__all__ = ["subjects"]

_HEAD = (
    "import os\n\nos.environ.setdefault('KERAS_BACKEND', 'torch')\n\n"
    "import keras\nimport torch\nfrom torch import nn\n\n\n"
)
_OUT = {
    "returns": [
        {"name": "context", "axes": "batch T_dec d_v"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
}
_HEADS = {
    "returns": [
        {"name": "context", "axes": "batch T_dec d_s"},
        {"name": "weights", "axes": "batch heads T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
}


def subjects() -> Iterator[Subject]:
    """Attention, AdditiveAttention, MultiHeadAttention, GroupQueryAttention."""
    plain: dict[str, Any] = {
        "init": {"d_s": "d_s"},
        "inputs": {
            "query": "batch T_dec d_s",
            "value": "batch T_enc d_v",
            "key": "batch T_enc d_s",
            "mask": "batch T_enc",
        },
        "kinds": {"mask": "keep"},
        **_OUT,
    }
    text = (
        _HEAD + "class Wrapped(nn.Module):\n"
        "    def __init__(self, d_s):\n"
        "        super().__init__()\n"
        "        self.layer = keras.layers.{made}\n"
        "        self.layer([torch.zeros(1, 2, d_s)] * 3)\n\n"
        "    def forward(self, query, value, key, mask):\n"
        "        return self.layer(\n"
        "            [query, value, key], mask=[None, mask], return_attention_scores=True\n"
        "        )\n"
    )
    for name, score in (
        ("Attention()", "dot"),
        ("Attention(use_scale=True)", None),
        ("Attention(score_mode='concat')", None),
        ("AdditiveAttention()", None),
    ):
        contract = {**plain, **({"score": score} if score else {})}
        yield _subject("keras", name, text.format(made=name), contract)
    causal = (
        text.replace("return_attention_scores=True", "use_causal_mask=True")
        .replace("query, value, key, mask)", "query, value, key)")
        .replace("mask=[None, mask], ", "")
    )
    contract = {
        "init": {"d_s": "d_s"},
        "inputs": dict.fromkeys(("query", "value", "key"), "batch T d_s"),
        "returns": [{"name": "context", "axes": "batch T d_s"}],
        "causal": "top_left",
        "score": "dot",
    }
    yield _subject("keras", "Attention (causal)", causal.format(made="Attention()"), contract)
    heads = (
        _HEAD + "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, kv_heads, d_head, d_s, d_v):\n"
        "        super().__init__()\n"
        "        self.layer = keras.layers.{made}\n"
        "        like = torch.zeros(1, 2, d_s), torch.zeros(1, 3, d_v)\n"
        "        self.layer(*like, torch.zeros(1, 3, d_s))\n\n"
        "    def forward(self, query, value, key{argument}):\n"
        "        return self.layer(query, value, key, {given})\n"
    )
    many: dict[str, Any] = {
        "init": {n: n for n in ("heads", "kv_heads", "d_head", "d_s", "d_v")},
        "inputs": {
            "query": "batch T_dec d_s",
            "value": "batch T_enc d_v",
            "key": "batch T_enc d_s",
            "mask": "batch 1 T_enc",
        },
        "kinds": {"mask": "keep"},
        **_HEADS,
        "score": "scaled_dot",
    }
    weighed = "attention_mask=mask, return_attention_scores=True"
    one = {"returns": [{"name": "context", "axes": "batch T_dec d_s"}], "weights": {}}
    layer = "MultiHeadAttention(heads, d_head)"
    for what, argument, given, changes in (
        ("", ", mask", weighed, {}),
        (" (no weights)", ", mask", "attention_mask=mask", one),
        (
            " (key mask)",
            ", mask",
            "key_mask=mask, return_attention_scores=True",
            {"inputs": {**many["inputs"], "mask": "batch T_enc"}},
        ),
        (
            " (value mask)",
            ", mask",
            "value_mask=mask, return_attention_scores=True",
            {"inputs": {**many["inputs"], "mask": "batch T_enc"}},
        ),
        (
            " (query mask)",
            ", mask",
            "query_mask=mask, return_attention_scores=True",
            {"inputs": {**many["inputs"], "mask": "batch T_dec"}},
        ),
        (" (all keys masked, weights asked for)", ", mask", weighed, {"all_masked": "zeros"}),
        (
            " (all keys masked, no weights)",
            ", mask",
            "attention_mask=mask",
            {**one, "all_masked": "zeros"},
        ),
    ):
        contract = {k: v for k, v in {**many, **changes}.items() if v}
        source = heads.format(made=layer, argument=argument, given=given)
        yield _subject("keras", f"MultiHeadAttention{what}", source, contract)
    source = heads.format(
        made="GroupQueryAttention(d_head, heads, kv_heads)", argument=", mask", given=weighed
    )
    yield _subject("keras", "GroupQueryAttention", source, many)

    for what, more, changes in (
        (" (values of their own size)", "value_dim=14", {}),
        (" (no biases)", "use_bias=False", {}),
        (" (gate)", "use_gate=True", {}),
        (" (dropout)", "dropout=0.3", {}),
        (
            " (output of its own size)",
            "output_shape=52",
            {"returns": [{"name": "context", "axes": "batch T_dec 52"}, _HEADS["returns"][1]]},
        ),
    ):
        made = f"MultiHeadAttention(heads, d_head, {more})"
        source = heads.format(made=made, argument=", mask", given=weighed)
        yield _subject("keras", f"MultiHeadAttention{what}", source, {**many, **changes})
    source = heads.format(
        made="GroupQueryAttention(d_head, heads, kv_heads, use_gate=True, use_bias=False)",
        argument=", mask",
        given=weighed,
    )
    yield _subject("keras", "GroupQueryAttention (gate, no biases)", source, many)
    source = text.format(made="AdditiveAttention(use_scale=False, dropout=0.3)")
    yield _subject("keras", "AdditiveAttention (no scale)", source, plain)
    yield from _own()


def _own() -> Iterator[Subject]:
    """Self-attention by the layers with heads: causal, in a window, padded, at any sizes."""
    text = (
        _HEAD + "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, kv_heads, d_head, d_s):\n"
        "        super().__init__()\n"
        "        self.layer = keras.layers.{made}\n"
        "        self.layer(torch.zeros(1, 3, d_s), torch.zeros(1, 3, d_s))\n\n"
        "    def forward(self, x{argument}):\n"
        "        return self.layer(x, x, {given})\n"
    )
    contract: dict[str, Any] = {
        "init": {n: n for n in ("heads", "kv_heads", "d_head", "d_s")},
        "inputs": {"x": "batch T d_s"},
        "returns": [{"name": "context", "axes": "batch T d_s"}],
        "score": "scaled_dot",
    }
    masked = {**contract["inputs"], "mask": "batch T"}
    kinds = {"mask": "keep"}
    for kind, start in (
        ("MultiHeadAttention", "MultiHeadAttention(heads, d_head"),
        ("GroupQueryAttention", "GroupQueryAttention(d_head, heads, kv_heads"),
    ):
        for what, more, argument, given, changes in (
            ("causal", "", "", "use_causal_mask=True", {"causal": "top_left"}),
            ("window", ", sliding_window=3", "", "use_causal_mask=False", {"window": 3}),
            (
                "causal window",
                ", sliding_window=3",
                "",
                "use_causal_mask=True",
                {"causal": "top_left", "window": 3},
            ),
            (
                "causal and padded",
                "",
                ", mask",
                "use_causal_mask=True, attention_mask=mask[:, None, :]",
                {"causal": "top_left", "inputs": masked, "kinds": kinds},
            ),
        ):
            source = text.format(made=f"{start}{more})", argument=argument, given=given)
            yield _subject("keras", f"{kind} ({what})", source, {**contract, **changes})


def _subject(library: str, name: str, source: str, contract: dict[str, Any]) -> Subject:
    whole = {"target": "wrapped.py:Wrapped", **contract}
    return Subject(f"{library}/{name}", library, library, source, "Wrapped", whole)
