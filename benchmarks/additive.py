"""Additive attention's scores, softmax and context: regard's paths beside eager PyTorch's.

All variants run interleaved in one process, on one thread; what is reported is the median of
CPU time, so that a busy machine disturbs little. Projections are done beforehand, the same for
all. Errors are those of the context and of all gradients against float64, relative to their
largest value. Half of eager's time at these sizes goes into fresh memory pages; run with
``MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=20000000000 MALLOC_TOP_PAD_=268435456`` as well.

    python benchmarks/additive.py [--repeats 7] [--compile] [--json FILE]
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import torch
from torch import Tensor

import regard
from regard.kernels import native
from regard.kernels.additive import additive_scores
from regard.kernels.choose import VARIABLE

SIZES = {  # batch, T_dec, T_enc, d_attn
    "S1": (8, 64, 64, 256),
    "M": (16, 100, 100, 256),
    "D": (64, 1, 50, 512),
    "S2": (4, 512, 512, 256),
}
Scores = Callable[[Tensor, Tensor, Tensor], Tensor]


def plain(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
    """Return the scores as a tutorial computes them."""
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v


def regards(path: str) -> Scores:
    """Return regard's scores by one path."""

    def scores(query: Tensor, key: Tensor, v: Tensor) -> Tensor:
        os.environ[VARIABLE] = path
        return additive_scores(query, key, v)

    return scores


def with_softmax(scores: Scores) -> Callable[..., Tensor]:
    """Return the whole of attention around a score."""

    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        return torch.bmm(torch.softmax(scores(query, key, v), -1), value)

    return attend


def keras_attend() -> Callable[..., Tensor] | None:
    """Return Keras' layer on the torch backend, or None where Keras is not installed."""
    try:
        import keras  # noqa: PLC0415 - optional
    except ImportError:
        return None
    layers: dict[int, Any] = {}

    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        size = v.numel()
        if size not in layers:
            layers[size] = keras.layers.AdditiveAttention()
            layers[size].build([query.shape, value.shape, key.shape])
        layers[size].scale = v
        return layers[size]([query, value, key])

    return attend


def variants(compiled: bool) -> dict[str, Callable[..., Tensor]]:
    """Return what is compared, by name."""
    found = {"eager torch": with_softmax(plain)}
    layer = keras_attend()
    if layer is not None:
        found["Keras (torch)"] = layer
    if compiled:
        found["torch.compile"] = with_softmax(torch.compile(plain))
    found["regard blocks"] = with_softmax(regards("blocks"))
    if native.available():
        found["regard native"] = with_softmax(regards("native"))
    return found


def given(size: tuple[int, int, int, int], dtype: torch.dtype) -> list[Tensor]:
    """Return query, key, v and value for one size, the same for every type."""
    batch, T_dec, T_enc, d = size
    torch.manual_seed(0)
    shapes = ((batch, T_dec, d), (batch, T_enc, d), (d,), (batch, T_enc, d))
    drawn = [torch.randn(shape) for shape in shapes]
    drawn[2] *= 3 / d**0.5
    return [each.to(dtype).requires_grad_() for each in drawn]


def outcome(attend: Callable[..., Tensor], arrays: list[Tensor]) -> list[Tensor]:
    """Return the context and all gradients of its weighted sum."""
    torch.manual_seed(1)
    context = attend(*arrays)
    upstream = torch.randn(context.shape).to(context.dtype)
    return [context.detach(), *torch.autograd.grad(context, arrays, upstream)]


def exact(arrays: list[Tensor]) -> list[Tensor]:
    """Return the outcome in float64, a few queries at a time to spare memory."""

    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        rows = [plain(part, key, v) for part in query.split(max(1, 10**7 // key.numel()), 1)]
        return torch.bmm(torch.softmax(torch.cat(rows, 1), -1), value)

    return outcome(attend, arrays)


def seconds(attend: Callable[..., Tensor], arrays: list[Tensor], *, train: bool) -> float:
    """Return the CPU time of one call, with its backward pass if asked for."""
    began = time.process_time()
    if train:
        context = attend(*arrays)
        torch.autograd.grad(context, arrays, torch.ones_like(context))
    else:
        with torch.no_grad():
            attend(*arrays)
    return time.process_time() - began


def measure(name: str, repeats: int, compiled: bool) -> list[dict[str, Any]]:
    """Time every variant on one size."""
    size = SIZES[name]
    contenders = variants(compiled)
    arrays = given(size, torch.float32)
    # The largest size would need 8 GB in float64: there, errors are left out.
    wanted = exact(given(size, torch.float64)) if name != "S2" else None
    times: dict[tuple[str, bool], list[float]] = {}
    for turn in range(repeats + 1):
        for label, attend in contenders.items():
            for train in (False, True):
                spent = seconds(attend, arrays, train=train)
                if turn:  # the first turn warms up
                    times.setdefault((label, train), []).append(spent)
    medians = {at: statistics.median(spent) for at, spent in times.items()}
    rows = []
    for label, attend in contenders.items():
        row: dict[str, Any] = {"size": name, "variant": label}
        for train, column in ((False, "forward"), (True, "train")):
            row[f"{column}_ms"] = 1e3 * medians[label, train]
            row[f"{column}_ratio"] = medians["eager torch", train] / medians[label, train]
        if wanted is not None:
            errors = [
                float((mine - right).abs().max() / right.abs().max())
                for mine, right in zip(outcome(attend, arrays), wanted, strict=True)
            ]
            row["error"], row["gradient_error"] = errors[0], max(errors[1:])
        rows.append(row)
    return rows


def main() -> None:
    """Measure all sizes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="also torch.compile (slow)")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    backend = regard.backend()
    print(
        f"{'size':<5}{'variant':<16}{'forward ms':>11}{'x':>7}{'train ms':>10}{'x':>7}  errors"
    )
    rows = []
    for name in options.sizes:
        for row in measure(name, options.repeats, options.compile):
            rows.append(row)
            errors = (
                f"{row['error']:.0e}, {row['gradient_error']:.0e}" if "error" in row else ""
            )
            print(
                f"{row['size']:<5}{row['variant']:<16}{row['forward_ms']:>11.2f}"
                f"{row['forward_ratio']:>7.1f}{row['train_ms']:>10.2f}"
                f"{row['train_ratio']:>7.1f}  {errors}",
                flush=True,
            )
    if options.json:
        report = {"torch": torch.__version__, "threads": 1, "backend": backend, "rows": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
