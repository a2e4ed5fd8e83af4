"""Arrays for blockwise work: written over again and again, or new where they cannot be.

Fresh memory costs more than the arithmetic at these sizes: a system hands it out by pages.
"""

import importlib
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from regard.axes import Array, library, namespace
from regard.kernels.grouped import exponentials, products

__all__ = ["NewArrays", "Plan", "Reused", "buffers_for", "spans"]

_PAD = 16  # one line of a cache
_WRITABLE = ("NumPy", "PyTorch")


class Plan(NamedTuple):
    """How much goes into one block: examples, groups of features, queries."""

    examples: int
    groups: int
    queries: int


def spans(n: int, step: int) -> Iterator[slice]:
    """Yield slices that cut n into parts of this length, the last one shorter."""
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def buffers_for(like: Array) -> "NewArrays":
    """Return the operations for arrays of the library and number type of `like`."""
    return (Reused if library(type(like)) in _WRITABLE else NewArrays)(like)


class NewArrays:
    """Operations that make new arrays; the name of a buffer means nothing to them."""

    writable = False
    """Whether :meth:`quotients` can write some rows of a total."""

    def __init__(self, like: Array) -> None:
        self.xp = namespace(like)

    def add(self, name: str, a: Array, b: Array) -> Array:
        """Return a + b."""
        return self.xp.add(a, b, **self._out(name, a, b))

    def multiply(self, name: str, a: Array, b: Array) -> Array:
        """Return a * b, where b is no larger than a."""
        return self.xp.multiply(a, b, **self._out(name, a, b))

    def tanh(self, name: str, x: Array) -> Array:
        """Return the hyperbolic tangent."""
        return self.xp.tanh(x, **self._out(name, x, x))

    def products(self, name: str, factors: Array) -> Array:
        """Return :func:`regard.kernels.grouped.products`."""
        del name
        return products(factors)

    def quotients(self, queries: Array, keys: Array, counted: Array, plan: Plan) -> Array:
        """Return the sum over groups of queries . counted / queries . keys.

        Parameters
        ----------
        queries, keys : (2 ** group, groups, n, T_dec), (2 ** group, groups, n, T_enc)
            :meth:`products`.
        counted : (2 ** group, groups, n, T_enc)
        plan : Plan
            What to multiply at once, for all n.

        Returns
        -------
        total : (n, T_dec, T_enc)
        """
        total = None
        left = self.xp.permute_dims(queries, (1, 2, 3, 0))
        right, upper = (self.xp.permute_dims(each, (1, 2, 0, 3)) for each in (keys, counted))
        for some in spans(left.shape[0], plan.groups):
            below = self.xp.matmul(left[some, ...], right[some, ...])
            above = self.xp.matmul(left[some, ...], upper[some, ...])
            summed = self.xp.sum(above / below, axis=0)
            total = summed if total is None else total + summed
        return total

    def exponentials(self, query: Array, key: Array, shift: Array, limit: Array) -> Array:
        """Return :func:`regard.kernels.grouped.exponentials`."""
        return exponentials(query, key, shift, limit)

    def turned(self, rows: Array) -> Array:
        """Return (n, T, d_attn) as (d_attn, n, T)."""
        return self.xp.permute_dims(rows, (2, 0, 1))

    def _out(self, name: str, a: Array, b: Array) -> dict[str, Array]:
        shape = a.shape if a.shape == b.shape else tuple(map(max, a.shape, b.shape))
        return self._shaped(name, shape)

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
        # Of stacks of matrices, without asking what else they might be.
        self._matmul = self.xp.matmul if home == "numpy" else self.xp.bmm
        self._kind: dict[str, Any] = {"dtype": like.dtype}
        if home == "torch":
            self._kind["device"] = like.device
        self._buffers: dict[str, Array] = {}
        self._steps: dict[tuple[str, tuple[int, ...]], Any] = {}
        self._views: dict[tuple[str, tuple[int, ...]], dict[str, Array]] = {}

    def divide(self, name: str, a: Array, b: Array) -> Array:
        """Return a / b."""
        return self.xp.divide(a, b, **self._out(name, a, b))

    def matmul(self, name: str, a: Array, b: Array) -> Array:
        """Return the matrix product; leading axes are equal."""
        return self.xp.matmul(a, b, **self._shaped(name, (*a.shape[:-1], b.shape[-1])))

    def products(self, name: str, factors: Array) -> Array:
        """Return :func:`regard.kernels.grouped.products`."""
        out = self._apart(name, (2 ** factors.shape[0], *factors.shape[1:]))
        out[0] = 1
        steps = self._same(
            (name, out.shape),
            lambda: [(out[: 2**i], out[2**i : 2 ** (i + 1)]) for i in range(factors.shape[0])],
        )
        for each, (found, larger) in zip(factors, steps, strict=True):
            self.xp.multiply(found, each, out=larger)
        return out

    def quotients(self, queries: Array, keys: Array, counted: Array, plan: Plan) -> Array:
        """Return the sum over groups of queries . counted / queries . keys."""
        (n, T_dec), T_enc = queries.shape[2:], keys.shape[3]
        total = self.xp.empty((n, T_dec, T_enc), **self._kind)
        steps = self._same(
            ("quotients", (*queries.shape, T_enc)),
            lambda: list(self._quotients(queries, keys, counted, plan)),
        )
        xp, flat_total = self.xp, total.reshape(1, -1)
        for left, right, upper, below, above, flat, ones, here, summed in steps:
            self._matmul(left, right, out=below)
            self._matmul(left, upper, out=above)
            xp.divide(above, below, out=above)
            # A product sums faster than a sum.
            xp.matmul(ones, flat, out=flat_total[:, here] if summed is None else summed)
            if summed is not None:
                flat_total[:, here] += summed
        return total

    def _quotients(
        self, queries: Array, keys: Array, counted: Array, plan: Plan
    ) -> Iterator[tuple[Any, ...]]:
        xp, axes = self.xp, (1, 2, 0, 3)
        terms, groups, n, T_dec = queries.shape
        T_enc = keys.shape[3]
        for some in spans(groups, plan.groups):
            left, right, upper = (
                (each.transpose(axes) if xp is np else each.permute(axes))[some].reshape(
                    -1, terms, each.shape[3]
                )
                for each in (queries, keys, counted)
            )
            ones = xp.ones((1, some.stop - some.start), **self._kind)
            for rows in spans(T_dec, plan.queries):
                asking = xp.swapaxes(left[..., rows], 1, 2)
                size = n * asking.shape[1] * T_enc
                shape = (*asking.shape[:2], T_enc)
                below, above = self.empty("below", shape), self.empty("above", shape)
                here = slice(n * rows.start * T_enc, n * rows.start * T_enc + size)
                summed = self.empty("summed", (1, size)) if some.start else None
                flat = above.reshape(-1, size)
                yield asking, right, upper, below, above, flat, ones, here, summed

    def empty(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return the buffer itself, holding anything."""
        return self._shaped(name, shape)["out"]

    def squares(self, name: str, factors: Array) -> Array:
        """Return 1, x and x^2 for factors x, on a new first axis."""
        out = self._apart(name, (3, *factors.shape))
        out[0] = 1
        out[1] = factors
        self.xp.multiply(factors, factors, out=out[2])
        return out

    def exponentials(self, query: Array, key: Array, shift: Array, limit: Array) -> Array:
        """Return :func:`regard.kernels.grouped.exponentials`."""
        xp = self.xp
        n, T_dec, d_attn = query.shape
        T = T_dec + key.shape[1]
        out = self._apart("sides", (n * T, d_attn)).reshape(n, T, d_attn)
        xp.add(query, shift, out=out[:, :T_dec])
        xp.subtract(key, shift, out=out[:, T_dec:])
        xp.minimum(out, limit, out=out)  # NumPy's clip is slow
        xp.maximum(out, -limit, out=out)
        xp.multiply(out, 2, out=out)
        return xp.exp(out, out=out)

    def turned(self, rows: Array) -> Array:
        """Return (n, T, d_attn) as (d_attn, n, T), and laid out so."""
        n, T, d_attn = rows.shape
        out = self.empty("turned", (d_attn, n, T))
        out[...] = rows.transpose(2, 0, 1) if self.xp is np else rows.permute(2, 0, 1)
        return out

    def _apart(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return a buffer whose parts along the first axis are no power of two apart.

        Caches put numbers that are a large power of two apart in the same few places.
        """
        first, *rest = shape
        at = f"{name}, apart", shape
        if at not in self._views:
            size = prod(rest)
            wide = self.empty(name, (first, size + _PAD))
            self._views[at] = {"out": wide[:, :size].reshape(shape)}
        return self._views[at]["out"]

    def _same(self, at: tuple[str, tuple[int, ...]], make: Callable[[], Any]) -> Any:
        """Return what `make` made of buffers of these sizes: finding it out takes its time."""
        if at not in self._steps:
            self._steps[at] = make()
        return self._steps[at]

    def _shaped(self, name: str, shape: tuple[int, ...]) -> dict[str, Array]:
        at = (name, shape)
        if at not in self._views:
            size = prod(shape)
            if name not in self._buffers or self._buffers[name].shape[0] < size:
                self._buffers[name] = self.xp.empty(size, **self._kind)
            self._views[at] = {"out": self._buffers[name][:size].reshape(shape)}
        return self._views[at]
