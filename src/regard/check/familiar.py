"""Layers whose signature is known: their contract as their manual has it.

``regard.check(nn.MultiheadAttention(...))`` has nothing to guess: the order of the axes is
that of ``batch_first``, True in ``key_padding_mask`` is padding, and the sizes of keys and
values are ``kdim`` and ``vdim``. A subclass with a call of its own is not known.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html and
the pages of the two layers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Familiar", "familiar"]

_Described = tuple[dict[str, Any], tuple[str, ...]]


@dataclass(frozen=True)
class Familiar:
    """The contract of a known layer, and sentences about what the object's options mean."""

    kind: type  # the class whose signature is known; the object's own may be below it
    contract: Mapping[str, Any]
    says: tuple[str, ...]


def familiar(target: Any) -> Familiar | None:
    """Return the contract of an object whose class is known, else None.

    Parameters
    ----------
    target : object
        Any object; of a class nothing is known, as its options are not.

    Returns
    -------
    known : Familiar or None

    Examples
    --------
    >>> familiar("a text") is None
    True
    """
    for kind in type(target).__mro__:
        describe = _KNOWN.get(f"{kind.__module__}.{kind.__qualname__}")
        if describe is not None:
            # With a constructor or a call of its own, a subclass asks for something else.
            names = ("__init__", "forward")
            own = any(getattr(type(target), n) is not getattr(kind, n) for n in names)
            return None if own else Familiar(kind, *describe(target))
    return None


def _multihead(layer: Any) -> _Described:
    order = "batch {} {}" if layer.batch_first else "{} batch {}"
    init: dict[str, Any] = {"embed_dim": "d_model", "num_heads": "heads"}
    widths = {"key": "d_model", "value": "d_model"}
    if layer.kdim != layer.embed_dim or layer.vdim != layer.embed_dim:
        init |= {"kdim": "d_h", "vdim": "d_v"}
        widths = {"key": "d_h", "value": "d_v"}
    more_keys = layer.bias_k is not None or layer.add_zero_attn
    init |= _given(
        batch_first=layer.batch_first,
        bias=None if layer.in_proj_bias is not None else False,
        add_bias_kv=layer.bias_k is not None,
        add_zero_attn=layer.add_zero_attn,
    )
    contract: dict[str, Any] = {
        "init": init,
        "inputs": {
            "query": order.format("T_dec", "d_model"),
            "key": order.format("T_enc", widths["key"]),
            "value": order.format("T_enc", widths["value"]),
            "key_padding_mask": "batch T_enc",
        },
        "kinds": {"key_padding_mask": "drop"},
        "returns": [{"name": "attn_output", "axes": order.format("T_dec", "d_model")}],
    }
    if not more_keys:
        contract["returns"].append({"name": "weights", "axes": "batch T_dec T_enc"})
        contract["weights"] = {"output": "weights", "sums_to_one_over": -1}
        contract["score"] = "scaled_dot"
    says = (*_said_order(layer.batch_first, "query"), _PADDING, "`attn_mask` is left out")
    return contract, says


def _encoder(layer: Any) -> _Described:
    first = layer.self_attn.batch_first
    axes = "batch T d_model" if first else "T batch d_model"
    contract = {
        "init": {**_layer(layer), **_given(batch_first=first)},
        "inputs": {"src": axes, "src_key_padding_mask": "batch T"},
        "kinds": {"src_key_padding_mask": "drop"},
        "returns": [{"name": "output", "axes": axes}],
    }
    return contract, (*_said_order(first, "src"), _PADDING, "`src_mask` is left out")


def _decoder(layer: Any) -> _Described:
    first = layer.self_attn.batch_first
    order = "batch {} d_model" if first else "{} batch d_model"
    contract = {
        "init": {**_layer(layer), **_given(batch_first=first)},
        "inputs": {
            "tgt": order.format("T_dec"),
            "memory": order.format("T_enc"),
            "tgt_mask": "T_dec T_dec",
            "memory_key_padding_mask": "batch T_enc",
        },
        "kinds": {"tgt_mask": "additive", "memory_key_padding_mask": "drop"},
        "returns": [{"name": "output", "axes": order.format("T_dec")}],
        "positions": "recurrent",  # rows know the rows before them
    }
    return contract, (*_said_order(first, "tgt"), _PADDING, "`tgt_mask` is causal")


def _layer(layer: Any) -> dict[str, Any]:
    bias = getattr(layer.linear1, "bias", None) is not None
    return {
        "d_model": "d_model",
        "nhead": "heads",
        "dim_feedforward": 52,
        **_given(norm_first=layer.norm_first, bias=None if bias else False),
    }


def _given(**options: Any) -> dict[str, Any]:
    """Options that are not as they are by default: False, save for ``bias``."""
    return {n: v for n, v in options.items() if v or (n == "bias" and v is False)}


_PADDING = "True in a key padding mask is padding, which no query may attend to"


def _said_order(first: bool, name: str) -> tuple[str, ...]:
    batch, axes = ("True", "(batch, T, d)") if first else ("False", "(T, batch, d)")
    return (f"`{name}` is {axes}, as batch_first={batch} has it",)


_KNOWN: dict[str, Callable[[Any], _Described]] = {
    "torch.nn.modules.activation.MultiheadAttention": _multihead,
    "torch.nn.modules.transformer.TransformerEncoderLayer": _encoder,
    "torch.nn.modules.transformer.TransformerDecoderLayer": _decoder,
}
