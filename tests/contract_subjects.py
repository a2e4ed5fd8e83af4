"""The table of everything that has to keep the contract: one more row is one more subject."""

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import regard as rg
from regard.testing import Subject

SCORES = ("additive", "dot", "general", "concat", "scaled_dot")
LIBRARIES = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax",
    "array-api-strict": "array_api_strict",
}
STEPS = ("additive_attention", "dot_attention", "general_attention", "concat_attention")
NORMALIZERS = ("sparsemax", "entmax15", "smoothed")


def functions() -> Iterator[tuple[str, str, Callable[[], Subject]]]:
    """Yield name, library and subject of every function."""

    def row(function: Any, library: str, **options: Any) -> Callable[[], Subject]:
        return lambda: Subject.of(function, library=library, **options)

    for library in LIBRARIES:
        # JAX compiles anew for every shape and number type: half precision is left to one
        # row.
        wide = {"dtypes": ("float64", "float32")} if library == "jax" else {}
        for score in SCORES:
            options = {} if score == "general" else wide
            yield f"attend-{score}", library, row(rg.attend, library, score=score, **options)
            make = row(rg.multi_head, library, score=score, **wide)
            yield f"multi_head-{score}", library, make
        for name in STEPS:
            yield f"step-{name}", library, row(getattr(rg, name), library, **wide)
        for name in NORMALIZERS:
            options = {"score": "general", "normalizer": name, **wide}
            yield f"attend-{name}", library, row(rg.attend, library, **options)
        yield "projected-heads", library, row(rg.multi_head, library, projected=True, **wide)
        yield "self_attention-", library, row(rg.self_attention, library, **wide)
    for name in STEPS:
        yield f"lists-{name}", "lists", row(getattr(rg, name), "lists")


def modules() -> Iterator[tuple[str, str, Callable[[], Subject]]]:
    """Yield name, library and subject of every module."""

    def row(
        name: str, *sizes: int, places: bool = False, **options: Any
    ) -> Callable[[], Subject]:
        def make() -> Subject:
            import torch

            torch.manual_seed(2015)
            module = getattr(rg.nn, name)(*sizes, **options)
            return Subject.of(module, content_based=not places)

        return make

    rows = {
        "AdditiveAttention": row("AdditiveAttention", 5, 7, 11),
        "AdditiveAttention-entmax15": row("AdditiveAttention", 5, 7, 11, normalizer="entmax15"),
        "LuongAttention-dot": row("LuongAttention", 5, 5),
        "LuongAttention-general": row("LuongAttention", 5, 7, score="general"),
        "LuongAttention-concat": row("LuongAttention", 5, 7, score="concat", d_attn=11),
        "BahdanauDecoder": row("BahdanauDecoder", 3, 5, 7, 11),
        "LuongDecoder-dot": row("LuongDecoder", 3, 5, 5),
        "LuongDecoder-general": row("LuongDecoder", 3, 5, 7, score="general"),
        "CoverageDecoder": row("CoverageDecoder", 3, 5, 7, 11),
        "InputFeedingDecoder": row("InputFeedingDecoder", 3, 5, 7, score="general"),
        "PaperBahdanauDecoder": row("PaperBahdanauDecoder", 3, 5, 22, 11),
        # Local-p is not here: its paper scales the weights by a Gaussian, and no row sums to 1.
        "LocalLuongDecoder-m": row(
            "LocalLuongDecoder", 3, 5, 7, kind="m", D=2.0, score="general", places=True
        ),
        "LocationDecoder": row("LocationDecoder", 3, 5, 7, 11, k=2, r=1, places=True),
        "LuongDecoder-concat": row("LuongDecoder", 3, 5, 7, score="concat", d_attn=11),
    }
    for score in SCORES:
        more = {"d_attn": 11} if score in ("additive", "concat") else {}
        name = f"MultiHeadAttention-{score}"
        rows[name] = row("MultiHeadAttention", 6, 2, score=score, **more)
        rows[f"{name}-one-head"] = row("MultiHeadAttention", 5, 1, score=score, **more)
        rows[f"{name}-sizes"] = row(
            "MultiHeadAttention", 6, 3, score=score, kdim=5, vdim=7, bias=False, **more
        )
    for name, make in rows.items():
        yield name, "torch", make

    def drop_in() -> Subject:
        from regard.nn.compat import MultiheadAttention

        return Subject.of(MultiheadAttention(6, 2))

    yield "compat-MultiheadAttention", "torch", drop_in


def every(*clauses: Any) -> list[Any]:
    """Return a test case for every subject and clause, skipped where its library is absent."""
    cases = []
    for name, library, make in [*functions(), *modules()]:
        absent = library in LIBRARIES and not importlib.util.find_spec(LIBRARIES[library])
        for clause in clauses:
            marks = [pytest.mark.skipif(absent, reason=f"{library} is not installed")]
            cases.append(
                pytest.param(make, clause, id=f"{library}-{name}-{clause}", marks=marks)
            )
    return cases
