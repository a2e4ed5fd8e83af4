"""What benchmarks/additive.py compares: ways to compute additive attention, by name.

Each takes projected queries and keys, v and values as PyTorch tensors and returns the context.
Peers whose modules project by themselves get identity matrices; those two products, 2 T d^2
multiplications beside T^2 d tangents, are in their time.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import torch
from torch import Tensor

from regard.kernels import arrays, fused, native
from regard.kernels.attention import additive_attention
from regard.kernels.choose import VARIABLE

__all__ = ["Variant", "plain", "variants"]

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Scores = Callable[[Tensor, Tensor, Tensor], Tensor]


class Variant(NamedTuple):
    """One contender, or the reason why it does not take part."""

    name: str
    attend: Attend | None
    trains: bool = True
    reason: str = ""


def plain(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Return the scores as a tutorial computes them."""
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v


def variants(*, compiled: bool = True) -> list[Variant]:
    """Return all contenders, eager PyTorch first."""
    found = [Variant("eager torch", _with_softmax(plain))]
    found += _compiled(compiled)
    found += [_keras(), _opennmt(), _joeynmt()]
    found += [Variant("regard blocks, torch", _regards("blocks"))]
    found += [Variant("plain numpy", _numpy("off"), trains=False)]
    found += [Variant("regard blocks, numpy", _numpy("blocks"), trains=False)]
    if native.available():
        found += [Variant("regard native, torch", _regards("native"))]
        found += [Variant("regard native, numpy", _numpy("native"), trains=False)]
    else:
        reason = str(native.reason())
        found += [
            Variant(f"regard native, {x}", None, reason=reason) for x in ("torch", "numpy")
        ]
    return found


def _regards(path: str) -> Attend:
    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        os.environ[VARIABLE] = path
        return additive_attention(query, key, v, value, need_weights=False)[0]

    return attend


def _with_softmax(scores: Scores) -> Attend:
    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        return torch.bmm(torch.softmax(scores(query, key, v), -1), value)

    return attend


def _numpy(path: str) -> Attend:
    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        os.environ[VARIABLE] = path
        q, k, w, values = (each.detach().numpy() for each in (query, key, v, value))
        scores = arrays.additive_scores(q, k, w)
        if scores is None:
            scores = np.tanh(q[:, :, None] + k[:, None]) @ w
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        return torch.from_numpy(scores @ values)

    return attend


def _compiled(wanted: bool) -> list[Variant]:
    names = "torch.compile, plain", "torch.compile, factored"
    reason = "left out on request"
    if wanted and not (shutil.which("g++") or shutil.which("clang++")):
        wanted, reason = False, "PyTorch's compiler needs a C++ compiler"
    if not wanted:
        return [Variant(name, None, reason=reason) for name in names]
    formulas = plain, fused.additive_scores
    return [
        Variant(name, _with_softmax(torch.compile(formula, dynamic=False)))
        for name, formula in zip(names, formulas, strict=True)
    ]


def _keras() -> Variant:
    name = "Keras (torch)"
    if importlib.util.find_spec("keras") is None:
        return Variant(name, None, reason="keras is not installed")
    import keras  # noqa: PLC0415 - optional

    layers: dict[int, Any] = {}

    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        size = v.numel()
        if size not in layers:
            layers[size] = keras.layers.AdditiveAttention()
            layers[size].build([query.shape, value.shape, key.shape])
        layers[size].scale = v
        return layers[size]([query, value, key])

    return Variant(name, attend)


def _opennmt() -> Variant:
    name = "OpenNMT-py"
    if importlib.util.find_spec("onmt") is None:
        return Variant(name, None, reason="OpenNMT-py is not installed")
    from real_code.recurrent import placeholders  # noqa: PLC0415 - only here

    placeholders()
    try:
        from onmt.modules.global_attention import GlobalAttention  # noqa: PLC0415 - optional
    except ImportError as error:  # its package loads all its data tools, needed or not
        return Variant(name, None, reason=f"OpenNMT-py does not load: {error}")

    modules: dict[int, Any] = {}

    def scores(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
        size = v.numel()
        if size not in modules:
            modules[size] = GlobalAttention(size, attn_type="mlp")
            _pass_through(modules[size].linear_query, modules[size].linear_context)
        _use_weight(modules[size].v, v)
        return modules[size].score(query, key)

    return Variant(name, _with_softmax(scores))


def _joeynmt() -> Variant:
    name = "JoeyNMT"
    if importlib.util.find_spec("joeynmt") is None:
        return Variant(name, None, reason="JoeyNMT is not installed")
    from joeynmt.attention import BahdanauAttention  # noqa: PLC0415 - optional

    modules: dict[int, Any] = {}

    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        size = v.numel()
        if size not in modules:
            modules[size] = BahdanauAttention(size, size, size)
            _pass_through(modules[size].query_layer, modules[size].key_layer)
        module = modules[size]
        _use_weight(module.energy_layer, v)
        module.compute_proj_keys(key)
        mask = torch.ones(key.shape[0], 1, key.shape[1], dtype=torch.bool)
        # Made for one query at a time.
        steps = [module(query=q, mask=mask, values=value)[0] for q in query.split(1, 1)]
        return torch.cat(steps, 1)

    return Variant(name, attend)


def _pass_through(*layers: Any) -> None:
    for layer in layers:
        with torch.no_grad():
            layer.weight.copy_(torch.eye(len(layer.weight)))
            if layer.bias is not None:
                layer.bias.zero_()
        layer.requires_grad_(False)


def _use_weight(layer: Any, v: Tensor) -> None:
    """Let a layer of one output use v itself, so that v gets the gradient."""
    if "weight" in layer._parameters:
        del layer.weight
    layer.weight = v.unsqueeze(0)
