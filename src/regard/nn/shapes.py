"""The check at the door of every module: sizes, number types and masks, before any arithmetic.

A module knows some sizes from its construction (``d_s``); others (``T_enc``) are born with the
first argument that has them. Nothing is broadcast: leading axes must be equal.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from regard._blame import Argument, Built, diagnose
from regard.axes import describe, kind_of
from regard.errors import ShapeError, explain

__all__ = ["Given", "fit", "positive", "recorded"]

Given = tuple[Any, str]
"""A value and what it should be: ``(mask, "bool *batch T_dec T_enc | None")``."""


def fit(
    call: str, sizes: Mapping[str, int], dtype: torch.dtype | None = None, **given: Given
) -> None:
    """Check that arguments fit a module and each other.

    Parameters
    ----------
    call : str
        What the error text calls the function.
    sizes : mapping of str to int
        Axes whose size the module's construction fixed.
    dtype : torch.dtype, optional
        Number type of the module, the first floating-point argument's if left out. All of them
        must have it, unless autocast is on.
    **given : Given
        Arguments; None is skipped where the annotation allows it.

    Raises
    ------
    ShapeError
        An axis has another size than the module, or than most arguments say.
    MaskError
        A mask is not boolean.
    BackendError
        No tensor, or a tensor of another number type or on another device.
    """
    if torch.compiler.is_compiling():
        return  # the eager call before has checked, and a compiler cannot trace error texts
    pairs = [(_argument(name, note), value) for name, (value, note) in given.items()]
    passed = [(each, value) for each, value in pairs if value is not None or not each.optional]
    lenient = any(isinstance(v, Tensor) and _autocasts(v) for _, v in passed)
    if not _fits(sizes, None if lenient else dtype, passed, typed=not lenient):
        told = [describe(argument, value) for argument, value in passed]
        raise diagnose(call, told, Built(sizes, dtype))


def _fits(
    sizes: Mapping[str, int],
    dtype: torch.dtype | None,
    passed: Sequence[tuple[Argument, Any]],
    *,
    typed: bool,
) -> bool:
    known: dict[str, Any] = dict(sizes)
    device = None
    for argument, value in passed:
        if not isinstance(value, Tensor) or kind_of(value) != argument.kind:
            return False
        device = value.device if device is None else device
        if argument.kind == "float" and typed:
            dtype = value.dtype if dtype is None else dtype
            if value.dtype != dtype:
                return False
        rest = value.ndim - len(argument.axes)
        if value.device != device or rest < 0 or (rest and not argument.leading):
            return False
        shape = value.shape
        if argument.leading and known.setdefault("*", shape[:rest]) != shape[:rest]:
            return False
        for axis, size in zip(argument.axes, shape[rest:], strict=True):
            if known.setdefault(axis, size) != size:
                return False
    return True


@functools.cache
def _argument(name: str, annotation: str) -> Argument:
    shape, _, rest = annotation.partition(" | ")
    kind, *axes = shape.split()
    leading = axes.pop(0)[1:] if axes[0].startswith("*") else ""
    return Argument(
        name, kind, leading, tuple(axes), position=-1, lists=False, optional=rest == "None"
    )


def _autocasts(value: Tensor) -> bool:
    kind = value.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def recorded() -> bool:
    """Return whether a compiler, exporter or tracer records what is computed here and now.

    It cannot follow a decision that depends on numbers, such as a check of lengths.
    """
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def positive(call: str, **sizes: int) -> None:
    """Check that sizes at construction are positive integers.

    Raises
    ------
    ShapeError
        One is not.
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ShapeError(
                explain(
                    f"{call}(): `{name}` is not a size",
                    expected=f"{name} as an integer of at least 1",
                    got=repr(size),
                )
            )
