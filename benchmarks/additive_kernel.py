"""The native kernel by itself, on one thread and on two.

    python benchmarks/additive_kernel.py

One thread is CPU time, which a busy machine disturbs little. Two threads against one is wall
time, the best of many interleaved calls, and means something on an idle machine only: the load
average is part of what is returned.
"""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from additive_sizes import SIZES, Size
from regard.kernels import native

__all__ = ["rates", "two_threads"]

_PAIRS = 10**9  # pairs x features to measure


def rates() -> dict[str, dict[str, float]] | str:
    """Return billions of pairs x features a second for scores and for gradients, by size."""
    if not native.available():
        return str(native.reason())
    torch.set_num_threads(1)
    found: dict[str, dict[str, float]] = {}
    for name, size in SIZES.items():
        found[name] = {}
        for what, run in zip(("scores", "gradients"), _runs(size), strict=True):
            work = int(np.prod(size))
            times = [_spent(run, time.process_time_ns) for _ in range(5 + _PAIRS // work)]
            found[name][what] = work / statistics.median(times)
    return found


def two_threads(size: str = "S2", repeats: int = 30) -> dict[str, Any] | str:
    """Return wall times on one and two threads, their ratio and the machine's load.

    Parameters
    ----------
    size : str
        One of SIZES.
    repeats : int
    """
    if not native.available():
        return str(native.reason())
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    found: dict[str, Any] = {"size": size, "load_average": load, "processors": os.cpu_count()}
    for what, run in zip(("scores", "gradients"), _runs(SIZES[size]), strict=True):
        times: dict[int, list[int]] = {1: [], 2: []}
        for _ in range(repeats):
            for threads, spent in times.items():
                torch.set_num_threads(threads)
                spent.append(_spent(run, time.perf_counter_ns))
        one, two = (min(times[threads]) / 1e6 for threads in (1, 2))
        found[what] = {"one_ms": one, "two_ms": two, "ratio": one / two}
    torch.set_num_threads(1)
    return found


def _runs(size: Size) -> tuple[Callable[[], None], Callable[[], None]]:
    batch, T_dec, T_enc, d = size
    rng = np.random.default_rng(0)
    shapes = ((batch, T_dec, d), (batch, T_enc, d), (d,), (batch, T_dec, T_enc))
    query, key, v, grad = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    scores, found = np.empty_like(grad), [np.empty_like(each) for each in (query, key, v)]
    given = [each.ctypes.data for each in (query, key, v)]
    sizes = native.Sizes(*size)
    # The arrays are kept by what reads them.
    keep = (query, key, v, grad, scores, found)

    def forward() -> None:
        native.forward([*given, None, keep[4].ctypes.data], sizes)

    def backward() -> None:
        native.backward(
            [*given, None, grad.ctypes.data, *(each.ctypes.data for each in keep[5])], sizes
        )

    return forward, backward


def _spent(run: Callable[[], None], clock: Callable[[], int]) -> int:
    began = clock()
    run()
    return clock() - began


if __name__ == "__main__":
    print(f"billions of pairs x features a second, one thread: {rates()}")
    print(f"wall time on two threads: {two_threads()}")
