"""Additive attention in the native library: scores, softmax and context in one pass.

Scores live in a cache, a few queries' at a time, and become weights there; the context is made
of them before they are gone. Nothing of size T_dec T_enc is written unless weights are wanted.
"""

import ctypes
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from regard.axes import Array, checked
from regard.kernels import native
from regard.kernels.threads import threads_for

__all__ = ["Arrays", "NativeRead", "attend", "attend_at", "softmax_gradient_at"]


class _Attention(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("d_v", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("mask", "weights", "context")),
    )


class Arrays(NamedTuple):
    """Addresses of contiguous arrays; None where an optional one is left out."""

    query: int
    key: int
    v: int
    value: int
    key_mask: int | None
    mask: int | None
    weights: int | None
    context: int


class NativeRead(NamedTuple):
    """What the queries read; unpacks as ``context, weights``."""

    context: Array
    """(*batch, T_dec, d_v), float32; zero for a query that may attend nowhere."""

    weights: Array | None
    """(*batch, T_dec, T_enc), float32; None where they were not asked for."""


@checked
def attend(
    query: Float[Array, "*batch T_dec d_attn"],
    key: Float[Array, "*batch T_enc d_attn"],
    v: Float[Array, " d_attn"],
    value: Float[Array, "*batch T_enc d_v"],
    *,
    key_mask: Bool[Array, "*batch T_enc"] | None = None,
    mask: Bool[Array, "*batch T_dec T_enc"] | None = None,
    need_weights: bool = True,
    variant: str | None = None,
) -> NativeRead:
    r"""Attend NumPy arrays with weights softmax(v . tanh(query + key)).

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn), float32
        Already projected.
    v : (d_attn,), float32
    value : (*batch, T_enc, d_v), float32
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended. Other keys and values are never read.
    mask : (*batch, T_dec, T_enc), bool, optional
        True = may attend; holds together with `key_mask`.
    need_weights : bool
        Whether to return the weights. The context is the same, bit for bit, either way.
    variant : str, optional
        One of :func:`regard.kernels.native.variants`; the fastest if left out.

    Returns
    -------
    read : NativeRead

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.
    MaskError
        A mask is not boolean.
    BackendError
        The arrays are not NumPy float32, or the library is not available.
    ConventionError
        This processor, or this library, has no such variant.
    """
    native.require_float32("attend", query)
    native.require_float32("attend", value)
    given = [np.ascontiguousarray(each) for each in (query, key, v, value)]
    masks = [None if each is None else np.ascontiguousarray(each) for each in (key_mask, mask)]
    sizes = native.sizes_of(query, key)
    context = np.empty((*query.shape[:-1], value.shape[-1]), np.float32)
    weights = np.empty((*query.shape[:-1], key.shape[-2]), np.float32) if need_weights else None
    addresses = map(native.address_of, (*given, *masks, weights, context))
    arrays = Arrays(*addresses)  # type: ignore[arg-type] # None only where it may be
    attend_at(arrays, sizes, value.shape[-1], variant)
    return NativeRead(context, weights)


def attend_at(
    arrays: Arrays, sizes: native.Sizes, d_v: int, variant: str | None = None
) -> None:
    """Write context, and weights where they have an address; nothing is checked.

    Parameters
    ----------
    arrays : Arrays
    sizes : Sizes
    d_v : int
        Features of a value.
    variant : str, optional
    """
    asked = _Attention(arrays.value, d_v, arrays.mask, arrays.weights, arrays.context)
    given = (arrays.query, arrays.key, arrays.v, arrays.key_mask, ctypes.addressof(asked))
    batch, T_dec, T_enc, d_attn = sizes
    threads = threads_for(batch * T_dec * T_enc * d_attn)
    native.call("regard_attend", variant, *given, *sizes, threads)


def softmax_gradient_at(weights: int, grad: int, rows: int, T_enc: int) -> None:
    """Turn a gradient by weights into that by their scores, in place; nothing is checked.

    Parameters
    ----------
    weights, grad : int
        Addresses of (rows, T_enc), float32, contiguous. Where a weight is 0 so is the result,
        whatever stood there.
    rows, T_enc : int
    """
    native.call("regard_softmax_backward", None, weights, grad, rows, T_enc)
