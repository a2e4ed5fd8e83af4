"""The check at the door of every module: sizes, number types and masks, before any arithmetic.

A module knows some sizes from its construction (``d_s``); others (``T_enc``) are born with the
first argument that has them. Nothing is broadcast: leading axes must be equal.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.errors import BackendError, MaskError, ShapeError, explain

__all__ = ["Given", "fit", "positive"]

Given = tuple[Any, str]
"""A value and what it should be: ``(mask, "bool *batch T_dec T_enc")``."""

_SAID = {
    "float": "a floating-point tensor",
    "bool": "a boolean tensor",
    "int": "an integer tensor",
}


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
        Arguments in the order in which they are believed. None is skipped.

    Raises
    ------
    ShapeError
        An axis has another size than the module or an earlier argument says.
    MaskError
        A mask is not boolean.
    BackendError
        No tensor, or a tensor of another number type.
    """
    if torch.compiler.is_compiling():
        return  # the eager call before has checked, and a compiler cannot trace error texts
    known: dict[str, tuple[Any, str]] = {
        axis: (size, f"the module was built with {axis} = {size}")
        for axis, size in sizes.items()
    }
    typed = None if dtype is None else (dtype, f"the module's parameters have dtype {dtype}")
    for name, (value, annotation) in given.items():
        if value is None:
            continue
        kind, *axes = annotation.split()
        leading = axes.pop(0)[1:] if axes[0].startswith("*") else ""
        _require_kind(call, name, value, kind)
        if kind == "float":
            typed = typed or (value.dtype, f"`{name}` has dtype {value.dtype}")
            _require_type(call, name, value, *typed)
        _require_rank(call, name, value, axes, leading)
        shape = tuple(value.shape)
        rest = len(shape) - len(axes)
        claims = [(leading, shape[:rest])] * bool(leading)
        claims += list(zip(axes, shape[rest:], strict=True))
        for axis, size in claims:
            right, because = known.setdefault(axis, (size, _born(axis, size, name)))
            if right == size:
                continue
            wanted = [known.get(each, (shape[rest + n],))[0] for n, each in enumerate(axes)]
            batch = known[leading][0] if leading else ()
            stated = [f"{each}={known[each][0]}" if each in known else each for each in axes]
            turned = len(axes) >= 2 and [*wanted[:-2], wanted[-1], wanted[-2]] == list(
                shape[rest:]
            )
            raise ShapeError(
                explain(
                    f"{call}(): `{name}` does not fit on axis {axis}",
                    expected=f"{name} ({', '.join([*map(str, batch), *stated])})",
                    got=f"{name} {shape}",
                    because=because,
                    help=f"exchange the last two axes of `{name}`"
                    if turned and shape[:rest] == batch
                    else None,
                )
            )


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


def _born(axis: str, size: Any, name: str) -> str:
    return f"{axis} = {size} comes from `{name}`"


def _require_kind(call: str, name: str, value: Any, kind: str) -> None:
    if not isinstance(value, Tensor):
        raise BackendError(
            explain(
                f"{call}(): `{name}` is no tensor",
                expected=_SAID[kind],
                got=type(value).__name__,
                help="torch.as_tensor(...) turns arrays and lists into a tensor",
            )
        )
    found = value.dtype
    if kind == "bool" and found is not torch.bool:
        raise MaskError(
            explain(
                f"{call}(): `{name}` is not boolean",
                expected=_SAID[kind],
                got=f"dtype {found}",
                because="a mask is True where a query may attend",
                help=None
                if found.is_floating_point
                else f"`{name} != 0` if 1 means may attend, `{name} == 0` if 1 means padding",
            )
        )
    integer = not (found.is_floating_point or found.is_complex or found is torch.bool)
    if kind == "int" and not integer:
        raise BackendError(
            explain(
                f"{call}(): `{name}` is not integer", expected=_SAID[kind], got=f"dtype {found}"
            )
        )
    if kind == "float" and not found.is_floating_point:
        raise BackendError(
            explain(
                f"{call}(): `{name}` is not floating-point",
                expected=_SAID[kind],
                got=f"dtype {found}",
            )
        )


def _require_type(
    call: str, name: str, value: Tensor, dtype: torch.dtype, because: str
) -> None:
    if value.dtype == dtype or torch.is_autocast_enabled(value.device.type):
        return
    raise BackendError(
        explain(
            f"{call}(): `{name}` has another number type",
            expected=f"`{name}` of dtype {dtype}",
            got=f"dtype {value.dtype}",
            because=because,
            help=f"`{name}.to({dtype})`: nothing is promoted silently",
        )
    )


def _require_rank(call: str, name: str, value: Tensor, axes: list[str], leading: str) -> None:
    if value.ndim == len(axes) or (leading and value.ndim > len(axes)):
        return
    missing = value.ndim == len(axes) - 1
    step = axes[-2] if len(axes) > 1 and axes[-2] in ("T_dec", "T_enc") else ""
    stated = ", ".join([*(["*" + leading] * bool(leading)), *axes])
    raise ShapeError(
        explain(
            f"{call}(): `{name}` has {value.ndim} {'axis' if value.ndim == 1 else 'axes'}, not "
            f"{'at least ' * bool(leading)}{len(axes)}",
            expected=f"{name} ({stated}{',' * (len(axes) == 1 and not leading)})",
            got=f"{name} {tuple(value.shape)}",
            help=f"one step is {step} = 1: add that axis, none is squeezed away"
            if missing and step
            else None,
        )
    )
