"""Attention of a textbook's own library."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

from real_code.subject import Subject

__all__ = ["imported", "subjects"]

# Pictures and tables, which the attention uses none of.
_UNUSED = (
    *("torchvision", "PIL", "pandas", "requests", "IPython", "matplotlib.pyplot"),
    *("matplotlib_inline", "scipy.spatial", "matplotlib", "scipy"),
)

_HEAD = "import torch\nfrom torch import nn\nfrom d2l.torch import {name}\n\n\n"
_OUT = [
    {"name": "context", "axes": "batch T_dec d_v"},
    {"name": "weights", "axes": "batch T_dec T_enc"},
]
_SUM = {"output": "weights", "sums_to_one_over": -1}


def imported() -> Any:
    """The library, imported beside stand-ins for what is not installed."""
    if importlib.util.find_spec("d2l") is None:
        return None
    made = {n: mock.MagicMock(name=n) for n in _UNUSED if _is_missing(n)}
    sys.modules.update(made)
    try:
        return importlib.import_module("d2l.torch")
    finally:
        for name in made:  # other libraries ask whether these are there
            del sys.modules[name]


def _is_missing(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return True
    return False


def subjects() -> Iterator[Subject]:
    """The masked softmax, both scores, the heads."""
    imported()
    source = (
        _HEAD.format(name="masked_softmax") + "def softmax(scores, lengths):\n"
        "    return masked_softmax(scores, lengths)\n"
    )
    contract: dict[str, Any] = {
        "inputs": {"scores": "batch T_dec T_enc", "lengths": "batch"},
        "kinds": {"lengths": "lengths"},
        "returns": [{"name": "weights", "axes": "batch T_dec T_enc"}],
        "weights": _SUM,
        "score": "none",
    }
    yield _subject("masked_softmax", source, "softmax", contract)
    inputs = {
        "queries": "batch T_dec d_s",
        "keys": "batch T_enc d_s",
        "values": "batch T_enc d_v",
        "lengths": "batch",
    }
    layer = (
        _HEAD + "class Wrapped(nn.Module):\n"
        "    def __init__(self{options}):\n"
        "        super().__init__()\n"
        "        self.attention = {made}\n"
        "        {first}\n\n"
        "    def forward(self, queries, keys, values, lengths):\n"
        "        context = self.attention(queries, keys, values, lengths)\n"
        "        return context, {weights}\n"
    )
    shown = "self.attention.attention_weights"
    for name, made, options, score, changes in (
        ("DotProductAttention", "DotProductAttention(0.0)", (), "scaled_dot", {}),
        (
            "AdditiveAttention",
            "AdditiveAttention(d_attn, 0.0)",
            ("d_attn", "d_s", "d_h", "d_v"),
            "additive",
            {"keys": "batch T_enc d_h"},
        ),
    ):
        # Layers that take their sizes from the first call get one.
        ones = ", ".join(f"torch.zeros(1, 2, {d})" for d in ("d_s", "d_h", "d_v"))
        first = f"self.attention({ones}, None)" if options else "pass"
        source = layer.format(
            name=name,
            made=made,
            options="".join(f", {o}" for o in options),
            first=first,
            weights=shown,
        )
        contract = {
            "init": {o: o for o in options},
            "inputs": {**inputs, **changes},
            "kinds": {"lengths": "lengths"},
            "returns": _OUT,
            "weights": _SUM,
            "score": score,
        }
        contract = {k: v for k, v in contract.items() if v}
        yield _subject(name, source, "Wrapped", contract)
    source = layer.format(
        name="MultiHeadAttention",
        made="MultiHeadAttention(d_model, heads, 0.0)",
        options=", d_model, heads",
        first="self.attention(*[torch.zeros(1, 2, d_model)] * 3, None)",
        weights="self.attention.attention.attention_weights",
    )
    contract = {
        "init": {"d_model": "d_model", "heads": "heads"},
        "inputs": {
            "queries": "batch T_dec d_model",
            "keys": "batch T_enc d_model",
            "values": "batch T_enc d_model",
            "lengths": "batch",
        },
        "kinds": {"lengths": "lengths"},
        "returns": [
            {"name": "context", "axes": "batch T_dec d_model"},
            {"name": "weights", "axes": "batch*heads T_dec T_enc"},
        ],
        "weights": _SUM,
        "score": "scaled_dot",
    }
    yield _subject("MultiHeadAttention", source, "Wrapped", contract)


def _subject(name: str, source: str, entry: str, contract: dict[str, Any]) -> Subject:
    whole = {"target": f"wrapped.py:{entry}", **contract}
    return Subject(f"d2l/{name}", "d2l", "d2l", source, entry, whole)
