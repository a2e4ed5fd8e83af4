"""What `regard.watch` costs: calls of PyTorch under watch beside the same without.

An attention layer of four projections, forward and one training step, one thread; the two are
interleaved, and the least of several runs counts, since other work only ever adds time.

    python benchmarks/watch.py [--repeats 9]
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import regard

SIZES = [(2, 7, 16), (8, 32, 64), (16, 128, 256)]  # batch, T, d_model
HEADS = 4


class Layer(nn.Module):
    """Self-attention as tutorials write it."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        """Return contexts (batch, T, d_model)."""
        batch, length, width = x.shape
        q, k, v = (
            layer(x).view(batch, length, HEADS, -1).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        weights = (q @ k.transpose(-1, -2) / (width // HEADS) ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class _Counter(TorchFunctionMode):
    """Counts the calls that a watch sees."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.calls += 1
        return func(*args, **(kwargs or {}))


def main() -> None:
    """Print one row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    print("batch    T  d_model  what           plain us  watched us   more  us a call")
    for batch, length, width in SIZES:
        layer, x = Layer(width), torch.randn(batch, length, width)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)

        def forward(layer: Layer = layer, x: Tensor = x) -> None:
            with torch.no_grad():
                layer(x)

        def step(layer: Layer = layer, x: Tensor = x, by: torch.optim.SGD = optimizer) -> None:
            by.zero_grad()
            layer(x).square().mean().backward()
            by.step()

        for name, run in (("forward", forward), ("training step", step)):
            with _Counter() as counter:
                run()
            plain, watched = _both(run, repeats)
            each = (watched - plain) / counter.calls
            print(
                f"{batch:5}  {length:3}  {width:7}  {name:13} {plain * 1e6:9.0f} "
                f"{watched * 1e6:11.0f}  {watched / plain - 1:+5.0%}  {each * 1e6:9.1f}"
            )


def _both(run: Callable[[], None], repeats: int) -> tuple[float, float]:
    plain, watched = [], []
    run()
    for _ in range(repeats):
        plain.append(_seconds(run))
        with regard.watch(report=False):
            watched.append(_seconds(run))
    return min(plain), min(watched)


def _seconds(run: Callable[[], None], least: float = 0.02) -> float:
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < least or not count:
        run()
        count += 1
    return spent / count


if __name__ == "__main__":
    main()
