"""Draws held at their means: code that draws at random by intent, made to repeat itself.

Where a contract states ``random``, every number that the code draws is replaced by its mean
while it runs, so that all other relations can be asked as of any other code: noise of mean 0
vanishes, dropout keeps everything. What an own generator draws is held too if the code makes
it in the call, or keeps it in the module or the object.
"""

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["held"]

# Of Python's own module; the other names mean something else there.
_PYTHONS = ("random", "uniform", "gauss", "normalvariate", "choice", "shuffle", "randrange")
_EULER = 0.5772156649015329  # mean of the standard Gumbel distribution


@contextlib.contextmanager
def held(*owners: Any) -> Iterator[None]:
    """Hold what is drawn by PyTorch, NumPy and Python's ``random`` in this block.

    Parameters
    ----------
    *owners : object
        What may keep generators of its own: a module, an object.
    """
    with contextlib.ExitStack() as stack:
        if "torch" in sys.modules:
            from regard.check.draws_torch import Held  # noqa: PLC0415 - needs torch

            stack.enter_context(Held())  # type: ignore[no-untyped-call]
        means = _Means()
        numpys = [n for n in vars(_Means) if not n.startswith("_") and hasattr(np.random, n)]
        for library, names in ((np.random, numpys), (random, _PYTHONS)):
            for name in names:
                stack.enter_context(_set(library, name, getattr(means, name)))
        for name in ("default_rng", "RandomState"):
            stack.enter_context(_set(np.random, name, lambda *_, **__: means))
        kinds = (np.random.Generator, random.Random)
        for owner in owners:
            own = getattr(owner, "__dict__", {})
            for name, value in list(own.items()):
                if isinstance(value, kinds) or type(value).__name__ == "RandomState":
                    stack.enter_context(_set(owner, name, means))
        yield


@contextlib.contextmanager
def _set(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    try:
        setattr(owner, name, value)
    except (AttributeError, TypeError):  # it guards what it has: its draws are not held
        yield
        return
    try:
        yield
    finally:
        setattr(owner, name, before)


class _Means:
    """A generator that gives means: NumPy's names, old and new, and those of ``random``."""

    def random(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return _filled(0.5, size)

    random_sample = ranf = sample = random

    def rand(self, *size: int) -> Any:
        return _filled(0.5, size or None)

    def randn(self, *size: int) -> Any:
        return _filled(0.0, size or None)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return _filled((np.asarray(low) + high) / 2, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(loc, size, scale)

    laplace = logistic = normal

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        del sigma
        return mu

    normalvariate = gauss

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return _filled(0.0, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(np.asarray(loc) + _EULER * np.asarray(scale), size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(scale, size)

    def standard_exponential(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return _filled(1.0, size)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        return _filled(np.asarray(shape) * scale, size)

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        return _filled(np.asarray(a) / (np.asarray(a) + b), size)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        return _filled(np.rint(lam).astype(int), size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        return _filled(np.rint(np.asarray(n) * p).astype(int), size)

    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        mean = np.asarray(alpha, dtype=float) / np.sum(alpha)
        rows = () if size is None else tuple(np.atleast_1d(size))
        return np.broadcast_to(mean, (*rows, *mean.shape)).copy()

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = int, **more: Any
    ) -> Any:
        low, high = (0, low) if high is None else (low, high)
        last = np.asarray(high) - (0 if more.get("endpoint") else 1)
        found = _filled((np.asarray(low) + last) // 2, size)
        return found if size is None and np.ndim(found) == 0 else found.astype(dtype)

    randint = integers

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        steps = range(start) if stop is None else range(start, stop, step)
        return steps[(len(steps) - 1) // 2]

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, **_: Any
    ) -> Any:
        items = np.arange(a) if isinstance(a, int | np.integer) else a
        count = 1 if size is None else int(np.prod(size))
        chances = np.zeros(len(items)) if p is None else np.asarray(p)
        order = np.argsort(-chances, kind="stable")
        if replace:
            order = np.repeat(order[:1], count)
        picked = [items[i] for i in order[:count]]
        return picked[0] if size is None else np.asarray(picked).reshape(size)

    def permutation(self, x: Any, *_: Any, **__: Any) -> Any:
        return np.arange(x) if isinstance(x, int | np.integer) else np.array(x)

    def shuffle(self, x: Any, *_: Any, **__: Any) -> None:
        del x


def _filled(mean: Any, size: Any, *like: Any) -> Any:
    shape = np.broadcast_shapes(np.shape(mean), *(np.shape(other) for other in like))
    if size is None and not shape:
        return mean.item() if hasattr(mean, "item") else mean
    return np.broadcast_to(mean, shape if size is None else size).copy()
