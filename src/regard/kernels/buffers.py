"""Arrays for blockwise work: written over again and again, or new where they cannot be.

Fresh memory costs more than the arithmetic at these sizes: a system hands it out by pages.
"""

import importlib
from math import prod
from typing import Any

import numpy as np

from regard.axes import Array, library, namespace
from regard.kernels.grouped import exponentials, products

__all__ = ["NewArrays", "Reused", "buffers_for"]

_WRITABLE = ("NumPy", "PyTorch")


def buffers_for(like: Array) -> "NewArrays":
    """Return the operations for arrays of the library and number type of `like`."""
    return (Reused if library(type(like)) in _WRITABLE else NewArrays)(like)


class NewArrays:
    """Operations that make new arrays; the name of a buffer means nothing to them."""

    writable = False
    """Whether :meth:`accumulate` can add to some rows of a total."""

    def __init__(self, like: Array) -> None:
        self.xp = namespace(like)

    def add(self, name: str, a: Array, b: Array) -> Array:
        """Return a + b."""
        return self.xp.add(a, b, **self._out(name, a, b))

    def multiply(self, name: str, a: Array, b: Array) -> Array:
        """Return a * b."""
        return self.xp.multiply(a, b, **self._out(name, a, b))

    def divide(self, name: str, a: Array, b: Array) -> Array:
        """Return a / b."""
        return self.xp.divide(a, b, **self._out(name, a, b))

    def tanh(self, name: str, x: Array) -> Array:
        """Return the hyperbolic tangent."""
        return self.xp.tanh(x, **self._out(name, x, x))

    def matmul(self, name: str, a: Array, b: Array) -> Array:
        """Return the matrix product; leading axes are equal."""
        return self.xp.matmul(a, b, **self._shaped(name, (*a.shape[:-1], b.shape[-1])))

    def products(self, name: str, factors: Array) -> Array:
        """Return :func:`regard.kernels.grouped.products`."""
        del name
        return products(factors)

    def accumulate(self, total: Array, rows: slice, part: Array) -> Array:
        """Return total (n, T_dec, T_enc) with `part` added to these rows; here all of them."""
        del rows
        return total + self.xp.reshape(part, total.shape)

    def exponentials(self, name: str, x: Array, shift: Array, limit: Array) -> Array:
        """Return :func:`regard.kernels.grouped.exponentials`."""
        del name
        return exponentials(x, shift, limit)

    def _out(self, name: str, a: Array, b: Array) -> dict[str, Array]:
        return self._shaped(name, tuple(map(max, a.shape, b.shape)))

    def _shaped(self, name: str, shape: tuple[int, ...]) -> dict[str, Array]:
        del name, shape
        return {}


class Reused(NewArrays):
    """The same, each result in a buffer that the next use of its name overwrites."""

    writable = True

    def __init__(self, like: Array) -> None:
        super().__init__(like)
        # The library itself: the standard's form of it costs as much as a small block.
        home = "numpy" if library(type(like)) == "NumPy" else "torch"
        self.xp = importlib.import_module(home)
        self._kind: dict[str, Any] = {"dtype": like.dtype}
        if home == "torch":
            self._kind["device"] = like.device
        self._buffers: dict[str, Array] = {}
        self._views: dict[tuple[str, tuple[int, ...]], dict[str, Array]] = {}

    def products(self, name: str, factors: Array) -> Array:
        """Return :func:`regard.kernels.grouped.products`."""
        group, *rest = factors.shape
        out = self._shaped(name, (2**group, *rest))["out"]
        out[0] = 1
        for i in range(group):
            n = 2**i
            self.xp.multiply(out[:n], factors[i : i + 1], out=out[n : 2 * n])
        return out

    def empty(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return the buffer itself, holding anything."""
        return self._shaped(name, shape)["out"]

    def squares(self, name: str, factors: Array) -> Array:
        """Return 1, x and x^2 for factors x, on a new first axis."""
        out = self._shaped(name, (3, *factors.shape))["out"]
        out[0] = 1
        out[1] = factors
        self.xp.multiply(factors, factors, out=out[2])
        return out

    def accumulate(self, total: Array, rows: slice, part: Array) -> Array:
        """Add `part` to these rows of `total`, and return it."""
        here = total[:, rows]
        here += self.xp.reshape(part, here.shape)
        return total

    def exponentials(self, name: str, x: Array, shift: Array, limit: Array) -> Array:
        """Return :func:`regard.kernels.grouped.exponentials`, laid out in that order."""
        xp = self.xp
        work = self.add("shifted", x, shift)
        xp.minimum(work, limit, out=work)
        xp.maximum(work, -limit, out=work)
        xp.multiply(work, 2, out=work)
        xp.exp(work, out=work)
        examples, T, d_attn = x.shape
        out = self._shaped(name, (d_attn, examples, T))["out"]
        out[...] = xp.permute_dims(work, (2, 0, 1)) if xp is np else work.permute(2, 0, 1)
        return out

    def _shaped(self, name: str, shape: tuple[int, ...]) -> dict[str, Array]:
        at = (name, shape)
        if at not in self._views:
            size = prod(shape)
            if name not in self._buffers or self._buffers[name].shape[0] < size:
                self._buffers[name] = self.xp.empty(size, **self._kind)
            self._views[at] = {"out": self._buffers[name][:size].reshape(shape)}
        return self._views[at]
