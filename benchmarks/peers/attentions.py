"""How each peer is called, as subjects of the contract.

A peer is imported only when its subject is made, and its parameters are drawn by the seed that
the caller set.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from regard.attention import reference
from regard.testing import Subject

__all__ = [
    "allennlp",
    "joeynmt",
    "keras_attention",
    "keras_multi_head",
    "opennmt",
    "torch_mha",
    "torch_sdpa",
    "x_transformers",
]


# What computes in float32 whatever its inputs are promises no float64.
_NARROW = ("float32", "bfloat16", "float16")


def torch_mha(*, weights: bool) -> Subject:
    def blind(module: Any, query: Any, key: Any, value: Any, mask: Any = None) -> Any:
        return module(query, key, value, key_padding_mask=mask, need_weights=False)

    def of(module: nn.MultiheadAttention, **options: Any) -> Subject:
        blinded = {} if weights else {"call": blind, "weights": "never"}
        return Subject.of(module, **blinded, **options)

    one = of(nn.MultiheadAttention(5, 1, batch_first=True))
    return of(nn.MultiheadAttention(6, 2, batch_first=True), one_head=one)


def torch_sdpa() -> Subject:
    def call(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return Subject(
        call=call,
        library="torch",
        d_s=5,
        d_h=5,
        d_v=7,
        weights="never",
        float_masks=True,
        oracle="scaled_dot",
        names={"mask": "attn_mask"},
    )


class _KerasLayers:
    """One layer in several number types, with the same parameters in each."""

    def __init__(self, make: Callable[[str], Any], inputs: list[np.ndarray], call: Any) -> None:
        self._make, self._inputs, self._call = make, inputs, call
        rng = np.random.default_rng(7)
        shapes = [tuple(weight.shape) for weight in self._built("float64").weights]
        self.arrays = [rng.normal(size=shape) / 2 for shape in shapes]

    def __call__(self, dtype: str) -> Any:
        layer = self._built(dtype)
        layer.set_weights(self.arrays)
        return layer.eval()

    def _built(self, dtype: str) -> Any:
        layer = self._make(dtype)
        arrays = [torch.from_numpy(each).to(getattr(torch, dtype)) for each in self._inputs]
        self._call(layer, *arrays)
        return layer


def _keras_single(
    layer: Any, query: Any, key: Any, value: Any, mask: Any = None, *, need_weights: bool = True
) -> Any:
    return layer(
        [query, value, key],
        mask=None if mask is None else [None, mask],
        return_attention_scores=need_weights,
    )


def keras_attention(name: str) -> Subject:
    import keras  # noqa: PLC0415 - optional

    inputs = [np.zeros((2, 3, 5)), np.zeros((2, 13, 5)), np.zeros((2, 13, 7))]
    layers = _KerasLayers(
        lambda dtype: getattr(keras.layers, name)(dtype=dtype, name="peer"),
        inputs,
        _keras_single,
    )

    def additive(query: Any, key: Any, value: Any, *, mask: Any, **_: Any) -> Any:
        same = np.eye(5).tolist()
        v_a = layers.arrays[0].tolist()
        return reference.attend(
            query, key, value, score="additive", mask=mask, W_a=same, U_a=same, v_a=v_a
        )

    return Subject(
        call=_keras_single,
        module=layers,
        library="torch",
        d_s=5,
        d_h=5,
        d_v=7,
        mask_axes="T_enc",
        oracle="dot" if name == "Attention" else additive,
        dtypes=_NARROW,
        name=f"keras {name}",
    )


def keras_multi_head() -> Subject:
    import keras  # noqa: PLC0415 - optional

    def call(
        layer: Any, query: Any, key: Any, value: Any, mask: Any = None, *, need_weights: bool
    ) -> Any:
        return layer(
            query, value, key, attention_mask=mask, return_attention_scores=need_weights
        )

    def build(heads: int) -> Subject:
        inputs = [np.zeros((2, 3, 6)), np.zeros((2, 13, 7)), np.zeros((2, 13, 11))]
        layers = _KerasLayers(
            lambda dtype: keras.layers.MultiHeadAttention(
                heads, 3, value_dim=5, dtype=dtype, name="peer"
            ),
            inputs,
            partial(call, need_weights=True),
        )
        # (d, heads, d_head) and (heads, d_head) of query, key and value; then the output's.
        *projections, W_o, b_o = layers.arrays

        def head(n: int) -> Callable[..., Any]:
            def one(query: Any, key: Any, value: Any, mask: Any = None, **_: Any) -> Any:
                rows = [
                    (
                        np.asarray(x) @ projections[2 * i][:, n] + projections[2 * i + 1][n]
                    ).tolist()
                    for i, x in enumerate((query, key, value))
                ]
                return reference.attend(*rows, score="scaled_dot", mask=mask)

            return one

        def join(contexts: Any, **_: Any) -> Any:
            return contexts @ W_o.reshape(-1, W_o.shape[-1]) + b_o

        def oracle(query: Any, key: Any, value: Any, *, mask: Any, **_: Any) -> Any:
            each = [head(n)(query, key, value, mask) for n in range(heads)]
            context = join(np.concatenate([np.asarray(c) for c, _ in each], axis=-1))
            return context, [weights for _, weights in each]

        return Subject(
            call=call,
            module=layers,
            library="torch",
            d_s=6,
            d_h=7,
            d_v=11,
            heads=heads,
            oracle=oracle,
            alone=lambda n: _on_lists(head(n), 6, 7, 11),
            join=join,
            empty=lambda **_: b_o,
            names={"mask": "attention_mask"},
            name="keras MultiHeadAttention",
        )

    return dataclasses.replace(build(2), one_head=build(1))


def _on_lists(call: Callable[..., Any], d_s: int, d_h: int, d_v: int | None) -> Subject:
    return Subject(
        call=call, d_s=d_s, d_h=d_h, d_v=d_v, library="lists", layout="T d", weights="always"
    )


def joeynmt(kind: str) -> Subject:
    from joeynmt import attention  # noqa: PLC0415 - optional

    def call(module: Any, query: Any, key: Any, mask: Any = None) -> Any:
        if mask is None:
            mask = torch.ones(key.shape[:2], dtype=torch.bool)  # it requires one
        module.compute_proj_keys(key)
        context, weights = module(query=query.unsqueeze(1), mask=mask.unsqueeze(1), values=key)
        return context.squeeze(1), weights.squeeze(1)

    def bahdanau(query: Any, key: Any, value: Any, *, mask: Any, **p: Any) -> Any:
        own = {"W_a": p["query_layer.weight"], "U_a": p["key_layer.weight"]}
        v_a = p["energy_layer.weight"][0]
        return reference.attend(query, key, value, score="additive", mask=mask, v_a=v_a, **own)

    def luong(query: Any, key: Any, value: Any, *, mask: Any, **p: Any) -> Any:
        W = p["key_layer.weight"]
        return reference.attend(query, key, value, score="general", mask=mask, W=W)

    first = kind == "Bahdanau"
    module = attention.BahdanauAttention(11, 7, 5) if first else attention.LuongAttention(5, 7)
    return Subject(
        call=call,
        module=module,
        library="torch",
        d_s=5,
        d_h=7,
        layout="batch d",
        mask_axes="T_enc",
        weights="always",
        oracle=bahdanau if first else luong,
        names={"key": "values"},
        staged=True,
        name=f"joeynmt {kind}Attention",
    )


def opennmt(kind: str) -> Subject:
    from onmt.modules.global_attention import GlobalAttention  # noqa: PLC0415 - optional

    module = GlobalAttention(5, attn_type=kind)
    with torch.no_grad():
        # Its output layer reads [context; query]; set so that it passes the context through.
        module.linear_out.weight.copy_(torch.eye(5, 10))
        if module.linear_out.bias is not None:
            module.linear_out.bias.zero_()

    def call(own: Any, query: Any, key: Any, mask: Any = None) -> Any:
        return own(query, key, src_len=mask)

    def oracle(query: Any, key: Any, value: Any, *, mask: Any, **p: Any) -> Any:
        if kind == "general":
            W = np.asarray(p["linear_in.weight"]).T.tolist()
            context, weights = reference.attend(
                query, key, value, score="general", mask=mask, W=W
            )
            return np.tanh(context), weights
        W_a, bias = p["linear_query.weight"], p["linear_query.bias"]
        # The bias on the query is one more feature that is always 1.
        query = [[*row, 1.0] for row in query]
        W_a = [[*row, b] for row, b in zip(W_a, bias, strict=True)]
        own = {"W_a": W_a, "U_a": p["linear_context.weight"], "v_a": p["v.weight"][0]}
        return reference.attend(query, key, value, score="additive", mask=mask, **own)

    return Subject(
        call=call,
        module=module,
        library="torch",
        d_s=5,
        d_h=5,
        mask="lengths",
        weights="always",
        oracle=oracle,
        names={"query": "src", "key": "enc_out", "mask": "src_len"},
        name=f"onmt GlobalAttention, {kind}",
    )


def allennlp(kind: str) -> Subject:
    from allennlp_light.modules import attention  # noqa: PLC0415 - optional
    from allennlp_light.nn.util import weighted_sum  # noqa: PLC0415

    def call(module: Any, query: Any, key: Any, mask: Any = None) -> Any:
        weights = module(query, key, mask)
        return weighted_sum(key, weights), weights

    def oracle(query: Any, key: Any, value: Any, *, mask: Any, **p: Any) -> Any:
        W, U, v = (np.asarray(p[name]).T for name in ("_w_matrix", "_u_matrix", "_v_vector"))
        own = {"W_a": W.tolist(), "U_a": U.tolist(), "v_a": v[0].tolist()}
        return reference.attend(query, key, value, score="additive", mask=mask, **own)

    first = kind == "Additive"
    return Subject(
        call=call,
        module=attention.AdditiveAttention(5, 7) if first else attention.DotProductAttention(),
        library="torch",
        d_s=5,
        d_h=7 if first else 5,
        layout="batch d",
        mask_axes="T_enc",
        weights="always",
        oracle=oracle if first else "dot",
        names={"query": "vector", "key": "matrix", "mask": "matrix_mask"},
        staged=True,
        dtypes=("float64", "float32", "float16"),
        name=f"allennlp {kind}Attention",
    )


def x_transformers() -> Subject:
    from x_transformers.x_transformers import Attention  # noqa: PLC0415 - optional

    def call(
        module: Any, query: Any, key: Any, mask: Any = None, *, need_weights: bool = True
    ) -> Any:
        found = module(query, context=key, context_mask=mask, return_intermediates=need_weights)
        return (found[0], found[1].post_softmax_attn) if need_weights else found

    def oracle(heads: int, query: Any, key: Any, value: Any, *, mask: Any, **p: Any) -> Any:
        projections = {f"W_{name}": p[f"to_{name}.weight"] for name in "qkv"}
        return reference.multi_head(
            query, key, value, heads=heads, mask=mask, W_o=p.get("to_out.weight"), **projections
        )

    def join(contexts: Any, **p: Any) -> Any:
        # With one head of the right size it leaves the output projection out.
        return contexts @ p["to_out.weight"].T if "to_out.weight" in p else contexts

    def build(heads: int, **options: Any) -> Subject:
        module = Attention(5, dim_head=3, heads=heads, dim_context=7)
        held = {name: p.detach().double().numpy() for name, p in module.named_parameters()}

        def alone(n: int) -> Subject:
            own = slice(3 * n, 3 * n + 3)

            def one(query: Any, key: Any, mask: Any = None) -> Any:
                rows = [
                    (np.asarray(x) @ held[f"to_{name}.weight"][own].T).tolist()
                    for name, x in zip("qkv", (query, key, key), strict=True)
                ]
                return reference.attend(*rows, score="scaled_dot", mask=mask)

            return _on_lists(one, 5, 7, None)

        return Subject(
            call=call,
            module=module,
            library="torch",
            d_s=5,
            d_h=7,
            heads=heads,
            mask_axes="T_enc",
            oracle=partial(oracle, heads),
            dtypes=_NARROW,
            alone=alone,
            join=join,
            names={"query": "x", "key": "context", "mask": "context_mask"},
            name="x-transformers Attention",
            **options,
        )

    return build(2, one_head=build(1))
