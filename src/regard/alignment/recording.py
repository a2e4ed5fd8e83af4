"""Recording what a Hugging Face model looks at, as a record to show.

The model runs :mod:`regard.nn.hf`'s attention, whose outputs are those of PyTorch's fused one::

    model.set_attn_implementation(regard.nn.hf.register())
    record = recorded(model, tokenizer(text, return_tensors="pt"), source=tokens)
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from regard.alignment.record import Record
from regard.errors import ConventionError, InputError, ShapeError, explain
from regard.nn.hf import look

__all__ = ["recorded"]

_MOST = 64_000_000  # weights; as many as the explorer takes


def recorded(
    model: nn.Module,
    inputs: Mapping[str, Any],
    *,
    source: Sequence[str],
    target: Sequence[str] | None = None,
    layers: Sequence[int | str] | None = None,
    heads: Sequence[int] | None = None,
    name: str = "",
) -> Record:
    """Run a model once and return what it looked at.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Whose attention is :func:`regard.nn.hf.register`'s.
    inputs : mapping
        What the model is called with: one example, without padding.
    source : sequence of str, length T_enc
        Tokens of the keys.
    target : sequence of str, length T_dec, optional
        Tokens of the queries; the source's where left out, as in self-attention.
    layers : sequence of int or str, optional
        Numbers, or names of attention modules where several have one number, as an encoder's
        and a decoder's have; named ones are numbered in their order. All if left out.
    heads : sequence of int, optional
        All if left out.
    name : str
        Of the record.

    Returns
    -------
    record : Record

    Raises
    ------
    ConventionError
        As :func:`regard.nn.hf.look` does; or a layer did not run just once.
    ShapeError
        Tokens and weights differ in number, there is no such head, or there are several
        examples.
    InputError
        There are more than 64 million weights: choose layers or heads.

    Notes
    -----
    Only what was asked for is computed, and kept in float32 until the record is made.
    """
    config: Any = getattr(model, "config", None)
    target = source if target is None else target
    if layers is None:
        layers = range(int(getattr(config, "num_hidden_layers", 0)))
    count = len(heads) if heads is not None else int(getattr(config, "num_attention_heads", 1))
    size = len(layers) * count * len(target) * len(source)
    if size > _MOST:
        raise InputError(
            explain(
                "recorded(): there are too many weights",
                expected=f"at most {_MOST:,} weights",
                got=f"{len(layers)} layers, {count} heads, {len(target)} x {len(source)} "
                f"tokens: {size:,} weights",
                help="choose layers=... or heads=..., or keep the largest of each row: "
                "regard.nn.hf.look(model, layer=..., largest=...)",
            )
        )
    with ExitStack() as stack, torch.no_grad():
        looks = [
            [
                stack.enter_context(look(model, layer=layer, head=head))
                for head in ([None] if heads is None else heads)
            ]
            for layer in layers
        ]
        model(**inputs)
    weights = [
        torch.cat([_single(looked.layer, looked.weights) for looked in row]) for row in looks
    ]
    if not weights:
        raise ConventionError(
            explain(
                "recorded(): no layer was asked for",
                expected="layers=..., numbers or names",
                got=f"layers={layers!r}; the model's config names none",
            )
        )
    numbers = [layer for layer in layers if isinstance(layer, int)]
    return Record(
        torch.stack(weights).numpy(),
        target,
        source,
        name=name,
        model=type(model).__name__,
        layers=numbers if len(numbers) == len(layers) else None,
        heads=heads,
        made_by={"layers": [row[0].layer for row in looks]},
    )


def _single(layer: str, weights: Sequence[Tensor]) -> Tensor:
    """Return the weights (heads, T_dec, T_enc) of the one example of the one run."""
    if len(weights) != 1:
        raise ConventionError(
            explain(
                f"recorded(): {layer} did not run once",
                expected="a model that is called, once, and not compiled",
                got=f"{len(weights)} runs",
                help="regard.nn.hf.look collects the steps of a generation",
            )
        )
    found = weights[0].to(device="cpu", dtype=torch.float32)
    if found.shape[0] != 1:
        raise ShapeError(
            explain(
                "recorded(): `inputs` has several examples",
                expected="one example, without padding",
                got=f"{found.shape[0]} examples",
                help="call it for each of them",
            )
        )
    return found[0] if found.ndim == 4 else found
