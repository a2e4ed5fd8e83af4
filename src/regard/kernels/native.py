"""The native library behind additive scores: float32, on the CPU.

It is a plain shared library that ctypes loads when it is first asked for; a machine without it
loses speed and nothing else. The arithmetic and its limits stand in ``csrc/prepare.h``.
"""

import ctypes
import functools
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from regard.axes import Array, checked
from regard.errors import BackendError, ConventionError, explain
from regard.kernels.compile import LIBRARY
from regard.kernels.threads import threads_for

__all__ = [
    "Sizes",
    "additive_gradients",
    "additive_scores",
    "address_of",
    "available",
    "backward",
    "call",
    "forward",
    "reason",
    "require_float32",
    "sizes_of",
    "variants",
]

_INTERFACE = 3
_VARIANTS = ("plain", "avx2", "avx512", "avx512r")  # in the order of dispatch.cpp
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
# Of every function after the variant; the same order as in csrc/interface.h.
_ARGUMENTS: dict[str, list[Any]] = {
    "regard_forward": [*[_POINTER] * 5, *[_INT] * 4, ctypes.c_int],
    "regard_backward": [*[_POINTER] * 8, *[_INT] * 4, ctypes.c_int],
    "regard_attend": [*[_POINTER] * 5, *[_INT] * 4, ctypes.c_int],
    "regard_softmax_backward": [_POINTER, _POINTER, _INT, _INT],
    "regard_prepare": [_POINTER, _POINTER, ctypes.c_int],
    "regard_step_forward": [*[_POINTER] * 2, _INT, *[_POINTER] * 5, ctypes.c_int],
    "regard_step_backward": [
        *[_POINTER] * 6,
        *[_INT, _POINTER, _POINTER, _INT],
        ctypes.c_int,
    ],
    "regard_gru_forward": [_POINTER] * 7,
    "regard_gru_backward": [_POINTER, _POINTER, _INT, *[_POINTER] * 6],
}


class Sizes(NamedTuple):
    """The axes of one call, its batch axes flattened to one."""

    batch: int
    T_dec: int
    T_enc: int
    d_attn: int


class _Loaded(NamedTuple):
    library: Any
    variants: tuple[str, ...]
    reason: str | None


def available() -> bool:
    """Return whether the native library is there and runs on this machine."""
    return _load().library is not None


def reason() -> str | None:
    """Return why the native library is not available, or None where it is."""
    return _load().reason


def variants() -> tuple[str, ...]:
    """Return the builds that run on this processor; the last is its fastest and is used.

    ``plain`` needs what every processor has, ``avx2`` and ``avx512`` these instruction sets;
    ``avx512r`` puts a refined approximation where ``avx512`` divides.
    """
    return _load().variants


@checked
def additive_scores(
    query: Float[Array, "*batch T_dec d_attn"],
    key: Float[Array, "*batch T_enc d_attn"],
    v: Float[Array, " d_attn"],
    *,
    key_mask: Bool[Array, "*batch T_enc"] | None = None,
    variant: str | None = None,
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score NumPy arrays with v . tanh(query + key) for every pair.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn), float32
        Already projected.
    v : (d_attn,), float32
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended. Other keys are never read, and their scores are 0.
    variant : str, optional
        One of :func:`variants`; the fastest if left out.

    Returns
    -------
    scores : (*batch, T_dec, T_enc), float32
        Within 1e-7 sum(abs(v)) of the exact value for features enough to average over; a NaN or
        infinity gives what the plain formula gives.

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.
    MaskError
        `key_mask` is not boolean.
    BackendError
        The arrays are not NumPy float32, or the library is not available.
    ConventionError
        This processor, or this library, has no such variant.
    """
    require_float32("additive_scores", query)
    sizes = sizes_of(query, key)
    given = [np.ascontiguousarray(each) for each in (query, key, v)]
    mask = None if key_mask is None else np.ascontiguousarray(key_mask)
    scores = np.empty((*query.shape[:-1], key.shape[-2]), np.float32)
    forward(map(address_of, (*given, mask, scores)), sizes, variant)
    return scores


@checked
def additive_gradients(
    query: Float[Array, "*batch T_dec d_attn"],
    key: Float[Array, "*batch T_enc d_attn"],
    v: Float[Array, " d_attn"],
    grad: Float[Array, "*batch T_dec T_enc"],
    *,
    key_mask: Bool[Array, "*batch T_enc"] | None = None,
    variant: str | None = None,
) -> tuple[Array, Array, Array]:
    """Return the gradients of sum(grad * scores) by query, key and v.

    Parameters
    ----------
    query, key, v, key_mask, variant
        As :func:`additive_scores` takes them.
    grad : (*batch, T_dec, T_enc), float32
        The gradient by the scores; not read where `key_mask` is False.

    Returns
    -------
    d_query, d_key, d_v : float32
        In the shapes of `query`, `key` and `v`; zero for keys that may not be attended.

    Raises
    ------
    ShapeError, MaskError, BackendError, ConventionError
        As :func:`additive_scores` raises them.
    """
    require_float32("additive_gradients", query)
    sizes = sizes_of(query, key)
    given = [np.ascontiguousarray(each) for each in (query, key, v)]
    mask = None if key_mask is None else np.ascontiguousarray(key_mask)
    found = [np.empty(each.shape, np.float32) for each in given]
    upstream = np.ascontiguousarray(grad)
    backward(map(address_of, (*given, mask, upstream, *found)), sizes, variant)
    return found[0], found[1], found[2]


def forward(addresses: Iterable[int | None], sizes: Sizes, variant: str | None = None) -> None:
    """Write scores to memory; all arrays contiguous, nothing is checked.

    Parameters
    ----------
    addresses : int or None
        Of query, key, v, key_mask and scores.
    sizes : Sizes
    variant : str, optional
    """
    call("regard_forward", variant, *addresses, *sizes, threads_for(prod(sizes)))


def backward(addresses: Iterable[int | None], sizes: Sizes, variant: str | None = None) -> None:
    """Write gradients to memory; all arrays contiguous, nothing is checked.

    Parameters
    ----------
    addresses : int or None
        Of query, key, v, key_mask, grad, d_query (None where it is not wanted), d_key and d_v.
    sizes : Sizes
    variant : str, optional
    """
    call("regard_backward", variant, *addresses, *sizes, threads_for(prod(sizes)))


def call(name: str, variant: str | None, *given: Any) -> None:
    """Call one of the library's functions; what it is given is not checked.

    Raises
    ------
    BackendError
        The library is not available.
    ConventionError
        This processor, or this library, has no such variant.
    MemoryError
        There was no memory for the function's workspace.
    """
    loaded = _load()
    if loaded.library is None:
        raise BackendError(
            explain(
                "the native kernel cannot be used",
                expected="the library that the package's build compiles",
                got=loaded.reason or "none",
                help="`python -m regard.kernels.compile` builds it where a C++ compiler is",
            )
        )
    if variant is None:
        variant = loaded.variants[-1]
    elif variant not in loaded.variants:
        raise ConventionError(
            explain(
                "the native kernel has no such `variant` here",
                expected=f"one of {', '.join(loaded.variants)}",
                got=f"variant={variant!r}",
            )
        )
    if getattr(loaded.library, name)(_VARIANTS.index(variant), *given):
        raise MemoryError("no memory for the native kernel's workspace")


def address_of(array: Any) -> int | None:
    """Return where a NumPy array or a PyTorch tensor lies, None for None."""
    if array is None:
        return None
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


def require_float32(call: str, array: Any) -> None:
    """Refuse what is not a NumPy array in float32.

    Raises
    ------
    BackendError
        It is not.
    """
    if isinstance(array, np.ndarray) and array.dtype == np.float32:
        return
    raise BackendError(
        explain(
            f"{call}(): the native kernel takes NumPy arrays in float32",
            expected="numpy.ndarray, float32",
            got=f"{type(array).__module__}.{type(array).__name__}, {array.dtype}",
            help="regard.scores.additive takes arrays of every library and float type",
        )
    )


def sizes_of(query: Any, key: Any) -> Sizes:
    """Return the axes of (*batch, T_dec, d_attn) and (*batch, T_enc, d_attn)."""
    return Sizes(prod(query.shape[:-2]), query.shape[-2], key.shape[-2], query.shape[-1])


@functools.cache
def _load() -> _Loaded:
    path = Path(__file__).with_name(LIBRARY)
    if not path.exists():
        return _Loaded(None, (), "the native library was not built")
    try:
        library = ctypes.CDLL(str(path))
        interface = library.regard_interface()
    except (OSError, AttributeError) as error:
        return _Loaded(None, (), f"the native library does not load: {error}")
    if interface != _INTERFACE:
        return _Loaded(None, (), "the native library was built from another version")
    for name, arguments in _ARGUMENTS.items():
        getattr(library, name).argtypes = [ctypes.c_int, *arguments]
    runs = [i for i in range(len(_VARIANTS)) if library.regard_supports(i)]
    runs.sort(key=library.regard_best().__eq__)
    return _Loaded(library, tuple(_VARIANTS[i] for i in runs), None)
