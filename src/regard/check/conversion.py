"""One door between NumPy arrays by name and the user's own library."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["apply", "as_numpy", "digest", "dtype_name", "flat", "to_library", "torch_dtype"]


def apply(target: Any, given: dict[str, Any]) -> Any:
    """Call by name; positional-only and var-positional parameters by position."""
    try:
        parameters = inspect.signature(getattr(target, "forward", target)).parameters
    except (TypeError, ValueError):
        return target(**given)
    by_position = [
        n
        for n, p in parameters.items()
        if p.kind is inspect.Parameter.POSITIONAL_ONLY and n in given
    ]
    rest = {n: v for n, v in given.items() if n not in by_position}
    star = [p for p in parameters.values() if p.kind is inspect.Parameter.VAR_POSITIONAL]
    if star and any(n not in parameters for n in rest):
        return target(*given.values())
    return target(*(given[n] for n in by_position), **rest)


def flat(raw: Any) -> Iterator[Any]:
    """Every array of a result: tuples, lists of arrays, dicts and dataclasses opened."""
    if raw is None or hasattr(raw, "shape"):
        yield raw
    elif isinstance(raw, Mapping):
        for value in raw.values():
            yield from flat(value)
    elif isinstance(raw, tuple):
        for value in raw:
            yield from flat(value)
    elif isinstance(raw, list):
        if raw and all(hasattr(v, "shape") for v in raw):
            for value in raw:
                yield from flat(value)
        else:
            yield raw
    elif hasattr(raw, "__dataclass_fields__"):
        for name in raw.__dataclass_fields__:
            yield from flat(getattr(raw, name))
    else:
        yield raw


def as_numpy(value: Any) -> np.ndarray:
    """An array of any library in NumPy; floats in float64."""
    if hasattr(value, "detach"):
        value = value.detach()
        if value.is_floating_point():
            value = value.double()
        return np.asarray(value.cpu().numpy())
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), dtype=object)
        array[()] = value
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array


def dtype_name(value: Any) -> str:
    """Name of an array's number type, such as ``"float32"``."""
    return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")


def digest(value: Any) -> Any:
    """What tells whether an argument was changed: equal for equal contents."""
    if isinstance(value, tuple | list):
        return tuple(digest(v) for v in value)
    if hasattr(value, "detach"):
        value = value.detach()
        return (tuple(value.shape), value.double().cpu().numpy().tobytes())
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    return repr(value)


def torch_dtype(name: str) -> Any:
    """PyTorch's number type of that name."""
    import torch  # noqa: PLC0415

    return getattr(torch, name)


def to_library(value: Any, library: str, dtype: str) -> Any:
    """Convert an argument: arrays to fresh arrays of the library, the rest as it is."""
    if isinstance(value, tuple):
        return tuple(to_library(v, library, dtype) for v in value)
    if not isinstance(value, np.ndarray):
        return value
    floating = np.issubdtype(value.dtype, np.floating)
    if library == "torch":
        import torch  # noqa: PLC0415

        tensor = torch.from_numpy(np.ascontiguousarray(value).copy())
        return tensor.to(torch_dtype(dtype)) if floating else tensor
    if library == "lists":
        return value.tolist()
    if floating:
        kind = dtype if dtype != "bfloat16" else "float32"
        return value.astype(kind)
    return value.copy()
