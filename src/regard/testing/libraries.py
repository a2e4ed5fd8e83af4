"""The libraries whose attention can be judged: how to make their arrays and read them back."""

import contextlib
import importlib.metadata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.axes import Array, namespace
from regard.errors import ConventionError, explain

__all__ = ["LIBRARIES", "Library", "library_named"]


@dataclass(frozen=True)
class Library:
    """One library of arrays, or Python's own lists."""

    name: str
    """As a user writes it: ``numpy``, ``torch``, ``jax``, ``array-api-strict``, ``lists``."""

    package: str
    """Its distribution, for the version; "" for lists."""

    dtypes: tuple[str, ...]
    """Floating-point types it has, the widest first."""

    make: Callable[[np.ndarray, str | None, str | None], Array]
    """An array of NumPy, a number type (None keeps it) and a device to one of its own, which
    may share its memory and its strides."""

    read: Callable[[Array], np.ndarray]
    """Back to NumPy; floating-point numbers as float64."""

    stack: Callable[[list[Array], int], Array]
    """Join arrays along a new axis."""

    session: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    """What must be on while it computes."""

    differentiates: bool = False
    """Whether it has gradients."""

    strided: bool = False
    """Whether its arrays can lie in memory in any order."""

    @property
    def version(self) -> str:
        """Version of the distribution, "" for lists."""
        return importlib.metadata.version(self.package) if self.package else ""


def library_named(name: str) -> Library:
    """Return the library of this name.

    Raises
    ------
    ConventionError
        There is none.
    """
    if name in LIBRARIES:
        return LIBRARIES[name]
    known = ", ".join(f"`{each}`" for each in LIBRARIES)
    raise ConventionError(
        explain(f"there is no library {name!r}", expected=f"one of {known}", got=repr(name))
    )


def _cast(array: np.ndarray, dtype: str | None) -> np.ndarray:
    return (
        array if dtype is None or array.dtype.kind != "f" else array.astype(dtype, copy=False)
    )


def _stack(items: list[Array], axis: int) -> Array:
    return namespace(items[0]).stack(items, axis=axis)


def _make_numpy(array: np.ndarray, dtype: str | None, device: str | None) -> Array:
    del device
    return _cast(array, dtype)


def _read_numpy(value: Array) -> np.ndarray:
    found = np.asarray(value)
    return found.astype(np.float64) if found.dtype.kind == "f" else found.copy()


def _make_lists(array: np.ndarray, dtype: str | None, device: str | None) -> Array:
    del dtype, device
    return array.tolist()


def _stack_lists(items: list[Array], axis: int) -> Array:
    return np.stack([np.asarray(item, dtype=np.float64) for item in items], axis=axis).tolist()


def _make_torch(array: np.ndarray, dtype: str | None, device: str | None) -> Array:
    import torch  # noqa: PLC0415 - optional

    tensor = torch.from_numpy(array)
    number = getattr(torch, dtype) if dtype and array.dtype.kind == "f" else tensor.dtype
    return tensor.to(device=device, dtype=number)


def _read_torch(value: Array) -> np.ndarray:
    import torch  # noqa: PLC0415 - optional

    held = value.detach().cpu()
    # NumPy has no bfloat16.
    held = held.to(torch.float64) if held.is_floating_point() else held
    return np.array(held.numpy())


def _make_jax(array: np.ndarray, dtype: str | None, device: str | None) -> Array:
    import jax.numpy as jnp  # noqa: PLC0415 - optional

    del device
    return jnp.asarray(array, dtype=dtype if array.dtype.kind == "f" else None)


def _read_jax(value: Array) -> np.ndarray:
    found = np.asarray(value)
    # bfloat16 is of kind "V" there.
    return found if found.dtype.kind in "biu" else found.astype(np.float64)


@contextlib.contextmanager
def _jax_session() -> Iterator[None]:
    import jax  # noqa: PLC0415 - optional

    with jax.enable_x64(True):  # for this thread and this block alone
        yield


def _make_strict(array: np.ndarray, dtype: str | None, device: str | None) -> Array:
    import array_api_strict  # noqa: PLC0415 - optional

    del device
    return array_api_strict.asarray(_cast(array, dtype))


def _read_strict(value: Array) -> np.ndarray:
    return _read_numpy(np.from_dlpack(value))


LIBRARIES = {
    each.name: each
    for each in (
        Library("lists", "", ("float64",), _make_lists, _read_numpy, _stack_lists),
        Library(
            "numpy",
            "numpy",
            ("float64", "float32", "float16"),
            _make_numpy,
            _read_numpy,
            _stack,
            strided=True,
        ),
        Library(
            "torch",
            "torch",
            ("float64", "float32", "bfloat16", "float16"),
            _make_torch,
            _read_torch,
            _stack,
            differentiates=True,
            strided=True,
        ),
        Library(
            "jax",
            "jax",
            ("float64", "float32", "bfloat16", "float16"),
            _make_jax,
            _read_jax,
            _stack,
            _jax_session,
            differentiates=True,
        ),
        Library(
            "array-api-strict",
            "array-api-strict",
            ("float64", "float32"),
            _make_strict,
            _read_strict,
            _stack,
        ),
    )
}
"""By name."""
