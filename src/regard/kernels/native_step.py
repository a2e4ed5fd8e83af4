"""Decoder steps in the native library: keys prepared once, then one call a step.

Between steps keys do not change, and preparing them is most of what one query would cost. The
arrays here are the library's own; they are read by address, so nothing that made them, NumPy or
PyTorch, is asked again.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from regard.axes import Array, checked
from regard.errors import BackendError, ShapeError, explain
from regard.kernels import native
from regard.kernels.threads import threads_for

__all__ = ["NativeKeys", "Stepped", "prepare", "step", "step_forward"]

_PAD = 32  # REGARD_PAD of csrc/interface.h


class _Keys(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("batch", "T_enc", "d", "padded")),
        *(
            (name, ctypes.c_void_p)
            for name in ("key", "factor", "shift", "limit", "reach", "counts", "rows", "kinds")
        ),
    )


class _Step(ctypes.Structure):
    _fields_ = (
        ("keys", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("d_v", ctypes.c_int64),
    )


class NativeKeys:
    """Projected keys as the library wants them, their batch axes flattened to one.

    Attributes
    ----------
    batch, T_enc, d_attn : int
    padded : int
        Features of a prepared row: d_attn, rounded up.
    """

    def __init__(self, key: int, T_enc: int, d_attn: int, arrays: dict[str, Any]) -> None:
        self.batch = len(arrays["counts"])
        self.T_enc = T_enc
        self.d_attn = d_attn
        self.padded = arrays["shift"].shape[1]
        self._arrays = arrays
        addresses = {name: array.ctypes.data for name, array in arrays.items()}
        self._keys = _Keys(self.batch, T_enc, d_attn, self.padded, key, **addresses)

    @classmethod
    def of(
        cls,
        key: int,
        key_mask: int | None,
        sizes: tuple[int, int, int],
        variant: str | None = None,
    ) -> "NativeKeys":
        """Prepare keys that lie at an address, contiguous.

        Parameters
        ----------
        key : int
            Address of (batch, T_enc, d_attn), float32, which must outlive the result unchanged.
        key_mask : int, optional
            Address of (batch, T_enc), bool; True = may be attended.
        sizes : (batch, T_enc, d_attn)
        variant : str, optional
            One of :func:`regard.kernels.native.variants`; every one reads the result.
        """
        batch, T_enc, d_attn = sizes
        padded = -(-d_attn // _PAD) * _PAD
        arrays = {
            "factor": np.empty((batch, T_enc, padded), np.float32),
            "shift": np.empty((batch, padded), np.float32),
            "limit": np.empty((batch, padded), np.float32),
            "reach": np.empty(batch, np.float32),
            "counts": np.empty(batch, np.int64),
            "rows": np.empty((batch, T_enc), np.int32),
            "kinds": np.empty(batch, np.uint8),
        }
        made = cls(key, T_enc, d_attn, arrays)
        # An exponential costs about ten pairs.
        threads = threads_for(10 * batch * T_enc * d_attn)
        native.call("regard_prepare", variant, ctypes.addressof(made._keys), key_mask, threads)
        return made

    def select(self, key: int, indices: NDArray[np.int64]) -> "NativeKeys":
        """Return these examples, whose keys lie at another address, in this order."""
        chosen = {name: array[indices] for name, array in self._arrays.items()}
        return NativeKeys(key, self.T_enc, self.d_attn, chosen)

    @property
    def work(self) -> int:
        """Pairs times features of one step."""
        return self.batch * self.T_enc * self.d_attn

    def with_values(self, v: int, value: int, d_v: int) -> _Step:
        """Return what every step needs; v and value, by address, must outlive it.

        Parameters
        ----------
        v, value : int
            Addresses of (d_attn,) and (batch, T_enc, d_v), float32, contiguous.
        """
        return _Step(ctypes.addressof(self._keys), v, value, d_v)


class Stepped(NamedTuple):
    """What one decoder step makes."""

    context: Array
    """(*batch, 1, d_v); zero for an example without any permitted key."""

    weights: Array
    """(*batch, 1, T_enc); 0 for keys that may not be attended."""

    scores: Array
    """(*batch, 1, T_enc); 0 for keys that may not be attended."""


class _PreparedArrays(NamedTuple):
    keys: NativeKeys
    shape: tuple[int, ...]
    key: Array  # the keys lie in it


@checked
def prepare(
    key: Float[Array, "*batch T_enc d_attn"],
    *,
    key_mask: Bool[Array, "*batch T_enc"] | None = None,
    variant: str | None = None,
) -> Any:
    """Make NumPy keys ready for any number of calls of :func:`step`.

    Parameters
    ----------
    key : (*batch, T_enc, d_attn), float32
        Already projected; not to be written to afterwards.
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended. Other keys are never read.
    variant : str, optional
        One of :func:`regard.kernels.native.variants`; the fastest if left out.

    Returns
    -------
    keys
        For :func:`step` only.

    Raises
    ------
    ShapeError, MaskError, BackendError, ConventionError
        As :func:`regard.kernels.native.additive_scores` raises them.
    """
    native.require_float32("prepare", key)
    key = np.ascontiguousarray(key)
    mask = None if key_mask is None else np.ascontiguousarray(key_mask)
    sizes = (int(np.prod(key.shape[:-2])), *key.shape[-2:])
    made = NativeKeys.of(
        key.ctypes.data, None if mask is None else mask.ctypes.data, sizes, variant
    )
    return _PreparedArrays(made, key.shape, key)


@checked
def step(
    query: Float[Array, "*batch T_dec d_attn"],
    keys: Any,
    v: Float[Array, " d_attn"],
    value: Float[Array, "*batch T_enc d_v"],
    *,
    variant: str | None = None,
) -> Stepped:
    """Attend with one NumPy query an example to prepared keys, in one pass.

    Parameters
    ----------
    query : (*batch, 1, d_attn), float32
        Already projected.
    keys
        What :func:`prepare` returned.
    v : (d_attn,), float32
    value : (*batch, T_enc, d_v), float32
    variant : str, optional
        One of :func:`regard.kernels.native.variants`; the fastest if left out.

    Returns
    -------
    stepped : Stepped

    Raises
    ------
    ShapeError, BackendError, ConventionError
        As :func:`regard.kernels.native.additive_scores` raises them, and where `keys` are not
        those of the other arguments.
    """
    native.require_float32("step", query)
    if not isinstance(keys, _PreparedArrays):
        raise BackendError(
            explain(
                "step(): `keys` are not prepared",
                expected="what prepare(key) returned",
                got=type(keys).__name__,
            )
        )
    if query.shape[-2] != 1:
        raise ShapeError(
            explain(
                "step(): `query` holds more than one query an example, or none",
                expected="query (*batch, T_dec=1, d_attn)",
                got=f"query {query.shape}",
                help="native.additive_scores takes any number",
            )
        )
    wanted = (*query.shape[:-2], value.shape[-2], query.shape[-1])
    if keys.shape != wanted:
        raise ShapeError(
            explain(
                "step(): `keys` do not fit `query` and `value`",
                expected=f"prepared keys of shape {wanted}",
                got=f"prepared keys of shape {keys.shape}",
            )
        )
    given = [np.ascontiguousarray(each) for each in (query, v, value)]
    shape = (*query.shape[:-1], value.shape[-2])
    scores, weights = np.empty(shape, np.float32), np.empty(shape, np.float32)
    context = np.empty((*query.shape[:-1], value.shape[-1]), np.float32)
    asked = keys.keys.with_values(given[1].ctypes.data, given[2].ctypes.data, value.shape[-1])
    step_forward(
        keys.keys,
        asked,
        query=given[0].ctypes.data,
        scores=scores.ctypes.data,
        weights=weights.ctypes.data,
        context=context.ctypes.data,
        variant=variant,
    )
    return Stepped(context, weights, scores)


def step_forward(
    keys: NativeKeys,
    asked: Any,
    *,
    query: int,
    scores: int | None,
    weights: int,
    context: int,
    variant: str | None = None,
) -> None:
    """Run one step on contiguous float32 arrays by address; nothing is checked.

    Parameters
    ----------
    keys : NativeKeys
    asked
        What ``keys.with_values`` returned.
    query : int
        Address of (batch, d_attn).
    scores, weights, context : int
        Addresses of (batch, T_enc) twice, the first may be None, and (batch, d_v); written.
    variant : str, optional
    """
    native.call(
        "regard_step_forward",
        variant,
        ctypes.addressof(asked),
        query,
        keys.d_attn,
        None,
        None,
        scores,
        weights,
        context,
        threads_for(keys.work),
    )
