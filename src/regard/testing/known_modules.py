"""The PyTorch modules that need no description: those of :mod:`regard.nn`, and PyTorch's own.

:data:`MODULES` is a table from class to describer; a new module is one more row.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.attention import reference
from regard.errors import ConventionError, explain
from regard.nn.decoder import Decoder
from regard.nn.modules import AdditiveAttention, LuongAttention
from regard.nn.multihead import MultiHeadAttention
from regard.testing.known import oracle_of, shared_keywords
from regard.testing.subject import Subject

__all__ = ["MODULES", "describe_module"]

_D_V = 17


def describe_module(target: Any, **options: Any) -> Subject:
    """Return the subject of a known module; see :meth:`Subject.of`."""
    own, rest = shared_keywords(options)
    describer = _describer(target)
    described = None if describer is None else describer(target)
    if not described or rest:
        unknown = ", ".join(f"`{name}`" for name in rest)
        raise ConventionError(
            explain(
                f"Subject.of() does not know {unknown or 'this module'}",
                expected="fields of Subject" if rest else f"one of {', '.join(_known())}",
                got=unknown or type(target).__name__,
                help="Subject(call=..., module=..., d_s=..., d_h=...) says how any is called",
            )
        )
    return Subject(**{"library": "torch", "module": target, **described, **own})


def _single(module: AdditiveAttention | LuongAttention) -> dict[str, Any]:
    score = getattr(module, "score", "additive")
    return {
        "call": _forward,
        "d_s": module.d_s,
        "d_h": module.d_h,
        "d_v": _D_V,
        "oracle": oracle_of(score, getattr(module, "normalizer", "softmax")),
        "name": type(module).__name__ + (f", {score}" if score != "additive" else ""),
    }


def _forward(module: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
    return module(query, key, value, **options)


def _multi_head(module: MultiHeadAttention) -> dict[str, Any]:
    return {
        "call": _forward,
        "d_s": module.d_model,
        "d_h": module.kdim,
        "d_v": module.vdim,
        "name": f"MultiHeadAttention, {module.score}, heads={module.heads}",
        **_projected(module, module.heads, module.score),
    }


def _torch_mha(module: nn.MultiheadAttention) -> dict[str, Any]:
    def call(
        own: Any, query: Any, key: Any, value: Any, *, need_weights: bool, mask: Any = None
    ) -> Any:
        return own(
            query,
            key,
            value,
            key_padding_mask=mask,
            need_weights=need_weights,
            average_attn_weights=False,
        )

    plain = module.bias_k is None and not module.add_zero_attn
    return {
        "call": call,
        "d_s": module.embed_dim,
        "d_h": module.kdim,
        "d_v": module.vdim,
        "layout": "batch T d" if module.batch_first else "T batch d",
        "mask": "ignore",
        "mask_axes": "T_enc",
        "float_masks": True,
        "names": {"mask": "key_padding_mask"},
        "name": f"{type(module).__module__.split('.')[0]} {type(module).__name__}",
        **(
            _projected(module, module.num_heads, "scaled_dot")
            if plain
            else {"heads": module.num_heads}
        ),
    }


def _projected(module: nn.Module, heads: int, score: str) -> dict[str, Any]:
    """Return what follows from PyTorch's names of projections, for clauses 3, 8 and 10."""
    known = getattr(module, "normalizer", "softmax") == "softmax"
    return {
        "heads": heads,
        "oracle": partial(_projected_oracle, heads, score) if known else None,
        "alone": partial(_head_alone, module, heads, score) if known else None,
        "join": _out_projection,
        "empty": _out_bias,
    }


def _projected_oracle(
    heads: int, score: str, query: Any, key: Any, value: Any, *, mask: Any, **parameters: Any
) -> tuple[Any, Any]:
    d_model = len(parameters["out_proj.weight"])
    W_q, W_k, W_v, *biases = _projections(parameters, d_model)
    rows = [
        (np.asarray(x) @ W.T + b).tolist()
        for x, W, b in zip((query, key, value), (W_q, W_k, W_v), biases, strict=True)
    ]
    score_parameters = {name: each for name, each in parameters.items() if "proj" not in name}
    context, weights = reference.multi_head(
        *rows, heads=heads, score=score, mask=mask, **score_parameters
    )
    return _out_projection(np.asarray(context), **parameters), weights


def _head_alone(module: nn.Module, heads: int, score: str, head: int) -> Subject:
    """Return one head on plain lists, its projections cut out of the module's."""
    parameters = {
        name: np.asarray(each.detach().cpu().double())
        for name, each in module.named_parameters()
    }
    *matrices, b_q, b_k, b_v = _projections(parameters, len(parameters["out_proj.weight"]))
    size = len(b_q) // heads
    own = slice(head * size, (head + 1) * size)
    cut = [(W[own], b[own]) for W, b in zip(matrices, (b_q, b_k, b_v), strict=True)]
    score_parameters = {
        name: each[head].tolist() for name, each in parameters.items() if "proj" not in name
    }

    def call(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
        rows = [
            (np.asarray(x) @ W.T + b).tolist()
            for x, (W, b) in zip((query, key, value), cut, strict=True)
        ]
        return reference.attend(*rows, score=score, mask=mask, **score_parameters)

    d_s, d_h, d_v = (W.shape[1] for W, _ in cut)
    return Subject(
        call=call,
        d_s=d_s,
        d_h=d_h,
        d_v=d_v,
        library="lists",
        layout="T d",
        weights="always",
    )


def _projections(parameters: dict[str, Any], d_model: int) -> list[np.ndarray]:
    if "in_proj_weight" in parameters:
        matrices = np.split(np.asarray(parameters["in_proj_weight"]), 3)
    else:
        matrices = [np.asarray(parameters[f"{each}_proj_weight"]) for each in "qkv"]
    packed = parameters.get("in_proj_bias")
    biases = np.zeros((3, d_model)) if packed is None else np.split(np.asarray(packed), 3)
    return [*matrices, *biases]


def _out_projection(joined: np.ndarray, **parameters: Any) -> np.ndarray:
    W_o = np.asarray(parameters["out_proj.weight"])
    return np.asarray(joined @ W_o.T + _out_bias(**parameters))


def _out_bias(**parameters: Any) -> np.ndarray:
    bias = parameters.get("out_proj.bias")
    size = len(parameters["out_proj.weight"])
    return np.zeros(size) if bias is None else np.asarray(bias)


def _decoder(module: Decoder) -> dict[str, Any]:
    """Describe a decoder by its contexts and weights; {} if it attends to nothing."""

    def call(own: Any, query: Any, key: Any, *, mask: Any = None) -> Any:
        memory = own.prepare(key, key_mask=mask)
        start = torch.zeros(len(query), own.d_s, dtype=query.dtype, device=query.device)
        decoded = own(query, memory, start)
        return decoded.contexts, decoded.weights

    if module.d_h is None:
        return {}
    score = getattr(getattr(module, "attention", None), "score", "")
    return {
        "call": call,
        "d_s": module.d_in,
        "d_h": module.d_h,
        "mask_axes": "T_enc",
        "weights": "always",
        "names": {"query": "inputs", "key": "encoder_states", "mask": "key_mask"},
        "staged": True,
        "name": ", ".join([type(module).__name__, *[score] * bool(score)]),
    }


def _describer(target: Any) -> Callable[[Any], dict[str, Any]] | None:
    return next((found for kind, found in MODULES.items() if isinstance(target, kind)), None)


def _known() -> list[str]:
    return [kind.__name__ for kind in MODULES]


MODULES: dict[type, Callable[[Any], dict[str, Any]]] = {
    AdditiveAttention: _single,
    LuongAttention: _single,
    MultiHeadAttention: _multi_head,
    nn.MultiheadAttention: _torch_mha,
    Decoder: _decoder,
}
"""From class to what describes its instances."""
