"""The subjects that need no description: this package's own attentions.

:data:`FUNCTIONS` is a table from function to describer; a new function is one more row.
Modules are in :mod:`regard.testing.known_modules`, which needs PyTorch.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from operator import mul
from typing import Any

import numpy as np

from regard.attention import reference, reference_variants, steps
from regard.attention.attend import attend, self_attention
from regard.attention.heads import multi_head
from regard.errors import ConventionError, explain
from regard.testing.subject import Oracle, Subject

__all__ = ["FUNCTIONS", "describe", "oracle_of", "parameters_of_score", "shared_keywords"]

_D_S, _D_H, _D_V, _D_ATTN = 5, 7, 17, 11
_D_HEAD, _D_VALUE = 3, 5
_SAME_SIZE = ("dot", "scaled_dot")
_ALIASES = {
    "bahdanau": "additive",
    "mlp": "additive",
    "bilinear": "general",
    "multiplicative": "general",
}


def describe(target: Any, **options: Any) -> Subject:
    """Return the subject of a known function or module; see :meth:`Subject.of`."""
    if target in FUNCTIONS:
        return FUNCTIONS[target](target, **options)
    if hasattr(target, "named_parameters"):
        from regard.testing.known_modules import describe_module  # noqa: PLC0415 - needs PyTorch

        return describe_module(target, **options)
    raise ConventionError(
        explain(
            f"Subject.of() does not know {getattr(target, '__name__', repr(target))}",
            expected="a function or module of regard, or torch.nn.MultiheadAttention",
            got=type(target).__name__,
            help="Subject(call=..., d_s=..., d_h=...) says how any attention is called",
        )
    )


def parameters_of_score(
    score: str, d_s: int, d_h: int, d_attn: int = _D_ATTN, heads: tuple[int, ...] = ()
) -> dict[str, np.ndarray]:
    """Draw the parameters of a score, the same each time; with `heads`, one set a head."""
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "additive": {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)},
        "general": {"W": (d_s, d_h)},
        "concat": {"W_c": (d_attn, d_s + d_h), "v_c": (d_attn,)},
    }
    rng = np.random.default_rng(2015)
    return {
        name: rng.normal(size=(*heads, *shape)) / np.sqrt(shape[-1])
        for name, shape in shapes.get(score, {}).items()
    }


def shared_keywords(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part options into fields of :class:`Subject` and everything else."""
    fields = {each.name for each in dataclasses.fields(Subject)}
    own = {name: value for name, value in options.items() if name in fields}
    return own, {name: value for name, value in options.items() if name not in fields}


def _attend(target: Callable[..., Any], *, score: str = "dot", **options: Any) -> Subject:
    own, rest = shared_keywords(options)
    d_s = own.pop("d_s", _D_S)
    d_h = own.pop("d_h", d_s if score in _SAME_SIZE else _D_H)
    given = {
        "d_v": _D_V,
        "parameters": parameters_of_score(_ALIASES.get(score, score), d_s, d_h),
        "oracle": oracle_of(score, rest.get("normalizer", "softmax"))
        if set(rest) <= {"normalizer"}
        else None,
        "name": ", ".join(["attend", score, *map(str, rest.values())]),
    }
    return Subject(
        call=partial(target, score=score, **rest), d_s=d_s, d_h=d_h, **{**given, **own}
    )


def _multi_head(
    target: Callable[..., Any],
    *,
    score: str = "scaled_dot",
    heads: int = 2,
    projected: bool = False,
    **options: Any,
) -> Subject:
    own, rest = shared_keywords(options)
    score = _ALIASES.get(score, score)
    sizes = (heads * _D_HEAD, heads * _D_HEAD, heads * _D_VALUE)
    d_s, d_h, d_v = (_D_S, _D_H, _D_V) if projected else sizes
    stacked = parameters_of_score(score, _D_HEAD, _D_HEAD, heads=(heads,))
    projections: dict[str, np.ndarray] = {}
    if projected:
        rng = np.random.default_rng(2017)
        shapes = zip(
            ("W_q", "W_k", "W_v"), zip(sizes, (d_s, d_h, d_v), strict=True), strict=True
        )
        projections = {name: rng.normal(size=shape) / shape[1] ** 0.5 for name, shape in shapes}
        projections["W_o"] = rng.normal(size=(_D_ATTN, sizes[2]))

    def alone(head: int) -> Subject:
        def call(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
            rows = []
            for x, name, size in zip(
                (query, key, value), ("W_q", "W_k", "W_v"), sizes, strict=True
            ):
                features = np.asarray(x) @ projections[name].T if projected else np.asarray(x)
                own_size = size // heads
                rows.append(features[:, head * own_size : (head + 1) * own_size].tolist())
            one = {name: each[head].tolist() for name, each in stacked.items()}
            return reference.attend(*rows, score=score, mask=mask, **one)

        return Subject(
            call=call,
            d_s=d_s,
            d_h=d_h,
            d_v=d_v,
            library="lists",
            layout="T d",
            weights="always",
        )

    def join(contexts: Any, **parameters: Any) -> Any:
        return contexts @ parameters["W_o"].T if projected else contexts

    plain = not rest
    words = ["multi_head", score, f"heads={heads}", *["projected"] * projected]
    given: dict[str, Any] = {
        "parameters": stacked | projections,
        "oracle": partial(reference.multi_head, heads=heads, score=score) if plain else None,
        "alone": alone if plain else None,
        "join": join,
        "name": ", ".join([*words, *map(str, rest.values())]),
    }
    if heads > 1:
        given["one_head"] = _multi_head(
            target, score=score, heads=1, projected=projected, **options
        )
    call = partial(target, heads=heads, score=score, **rest)
    return Subject(call=call, d_s=d_s, d_h=d_h, d_v=d_v, heads=heads, **{**given, **own})


def _step(target: Callable[..., Any], **options: Any) -> Subject:
    own, rest = shared_keywords(options)
    score = target.__name__.removesuffix("_attention")
    library = own.pop("library", "lists")
    d_s = own.pop("d_s", _D_S)
    d_h = own.pop("d_h", d_s if score in _SAME_SIZE else _D_H)
    given: dict[str, Any] = {
        "layout": "d" if library == "lists" else "batch d",
        "weights": "always",
        "parameters": parameters_of_score(score, d_s, d_h),
        "oracle": score,
        "names": {"query": "decoder_state", "key": "encoder_states"},
        "name": target.__name__,
    }
    call = partial(target, **rest)
    return Subject(call=call, d_s=d_s, d_h=d_h, library=library, **{**given, **own})


def _self_attention(
    target: Callable[..., Any], *, score: str = "scaled_dot", **options: Any
) -> Subject:
    own, rest = shared_keywords(options)
    rng = np.random.default_rng(2017)
    shapes = {"W_q": (_D_HEAD, _D_S), "W_k": (_D_HEAD, _D_S), "W_v": (_D_V, _D_S)}
    compared = oracle_of(score)

    def oracle(query: Any, key: Any, value: Any, *, mask: Any, **parameters: Any) -> Any:
        assert compared is not None  # used only where there is one
        rows = [
            (np.asarray(x) @ np.asarray(parameters.pop(name)).T).tolist()
            for x, name in zip((query, key, value), shapes, strict=True)
        ]
        return compared(*rows, mask=mask, **parameters)

    given: dict[str, Any] = {
        "parameters": {
            **{name: rng.normal(size=shape) for name, shape in shapes.items()},
            **parameters_of_score(_ALIASES.get(score, score), _D_HEAD, _D_HEAD),
        },
        "oracle": oracle if compared is not None and not rest else None,
        "names": {"query": "x"},
        "name": ", ".join(["self_attention", score, *map(str, rest.values())]),
    }
    call = partial(target, score=score, **rest)
    return Subject(call=call, d_s=_D_S, d_h=_D_S, self_attention=True, **{**given, **own})


def oracle_of(score: str, normalizer: Any = "softmax") -> Oracle | None:
    """Return the plain-list form of a score and normaliser; None where there is none."""
    score = _ALIASES.get(score, score)
    if score not in reference.SCORES or normalizer not in _NORMALIZERS:
        return None
    return partial(_reference, score, _NORMALIZERS[normalizer])


def _reference(
    score: str,
    normalise: Callable[..., list[float]],
    query: Any,
    key: Any,
    value: Any,
    *,
    mask: Any,
    **parameters: Any,
) -> tuple[Any, Any]:
    scores = reference.SCORES[score](query, key, **parameters)
    rows = [None] * len(query) if mask is None else mask
    weights = [normalise(row, may) for row, may in zip(scores, rows, strict=True)]
    columns = list(zip(*value, strict=True))
    context = [[math.fsum(map(mul, row, column)) for column in columns] for row in weights]
    return context, weights


_NORMALIZERS: dict[Any, Callable[..., list[float]]] = {
    "softmax": reference.softmax,
    "sparsemax": reference_variants.sparsemax,
    "entmax15": reference_variants.entmax15,
}


FUNCTIONS: dict[Any, Callable[..., Subject]] = {
    attend: _attend,
    multi_head: _multi_head,
    self_attention: _self_attention,
    steps.additive_attention: _step,
    steps.concat_attention: _step,
    steps.dot_attention: _step,
    steps.general_attention: _step,
}
"""From function to what describes it."""
