"""Additive attention's scores, softmax and context: regard's paths beside everyone else's.

All variants run interleaved in one process, on one thread; what is reported is the median of
CPU time, so that a busy machine disturbs little. Projections are done beforehand, the same for
all. Errors are those of the context and of all gradients against float64, relative to their
largest value. Half of eager's time at these sizes goes into fresh memory pages, so everything
runs twice, in two child processes: with the system's allocator as it comes, and with one that
keeps its pages. Peers that are not installed are shown as such. Then the most memory beyond the
inputs, in fresh processes, and the native kernel's wall time on two threads beside one.

    python benchmarks/additive.py [--repeats 7] [--json docs/results/additive.json]
    python benchmarks/additive.py --quick       # does it run? its figures mean nothing
    python benchmarks/additive_page.py          # the page, from the JSON
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import regard
from additive_kernel import rates, two_threads
from additive_memory import SHOWN, peak
from additive_sizes import ALLOCATORS, SIZES, Size, processor
from additive_variants import Attend, Variant, plain, variants
from register_limit import register_limit

QUICK: dict[str, Size] = {"quick": (2, 32, 31, 67)}
LENGTHS = (16, 32, 64, 128, 256, 512)  # with batch 4 and d_attn 256
WIDTHS = (32, 64, 128, 256, 512, 1024)  # with batch 4 and 128 queries and keys
# In float64, autograd's pairs of more than these would not fit into memory.
_MOST_EXACT = 10**8


def given(size: Size, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return query, key, v and value for one size, the same for every type."""
    batch, T_dec, T_enc, d = size
    torch.manual_seed(0)
    shapes = ((batch, T_dec, d), (batch, T_enc, d), (d,), (batch, T_enc, d))
    drawn = [torch.randn(shape) for shape in shapes]
    drawn[2] *= 3 / d**0.5
    return [each.to(dtype).requires_grad_() for each in drawn]


def outcome(attend: Attend, inputs: list[Tensor], *, train: bool = True) -> list[Tensor]:
    """Return the context and, if it trains, all gradients of its weighted sum."""
    if not train:
        with torch.no_grad():
            return [attend(*inputs)]
    torch.manual_seed(1)
    context = attend(*inputs)
    upstream = torch.randn(context.shape).to(context.dtype)
    return [context.detach(), *torch.autograd.grad(context, inputs, upstream)]


def exact(inputs: list[Tensor]) -> list[Tensor]:
    """Return the outcome in float64, a few queries at a time to spare memory."""

    def attend(query: Tensor, key: Tensor, v: Tensor, value: Tensor) -> Tensor:
        rows = [plain(part, key, v) for part in query.split(max(1, 10**7 // key.numel()), 1)]
        return torch.bmm(torch.softmax(torch.cat(rows, 1), -1), value)

    return outcome(attend, inputs)


def seconds(attend: Attend, inputs: list[Tensor], *, train: bool) -> float:
    """Return the CPU time of one call, with its backward pass if asked for."""
    began = time.process_time()
    if train:
        context = attend(*inputs)
        torch.autograd.grad(context, inputs, torch.ones_like(context))
    else:
        with torch.no_grad():
            attend(*inputs)
    return time.process_time() - began


def timed(
    contenders: list[Variant], inputs: list[Tensor], repeats: int, *, train: bool
) -> dict[str, float]:
    """Return the median CPU time of each variant that takes part, interleaved."""
    times: dict[str, list[float]] = {}
    for turn in range(repeats + 1):
        for name, attend, trains, _ in contenders:
            if attend is not None and (trains or not train):
                spent = seconds(attend, inputs, train=train)
                if turn:  # the first turn warms up
                    times.setdefault(name, []).append(spent)
    return {name: statistics.median(spent) for name, spent in times.items()}


def measure(name: str, size: Size, contenders: list[Variant], repeats: int) -> list[Any]:
    """Time every variant on one size, and compare it with float64."""
    torch._dynamo.reset()  # one graph for each size
    inputs = given(size)
    small = size[0] * size[1] * size[2] * size[3] <= _MOST_EXACT
    wanted = exact(given(size, torch.float64)) if small else None
    medians = {
        train: timed(contenders, inputs, repeats, train=train) for train in (False, True)
    }
    rows = []
    for label, attend, trains, reason in contenders:
        row: dict[str, Any] = {"size": name, "variant": label}
        rows.append(row)
        if attend is None:
            row["reason"] = reason
            continue
        for train, column in ((False, "forward"), (True, "train")):
            if label in medians[train]:
                row[f"{column}_ms"] = 1e3 * medians[train][label]
                row[f"{column}_ratio"] = medians[train]["eager torch"] / medians[train][label]
        row["numpy_ratio"] = medians[False]["plain numpy"] / medians[False][label]
        if wanted is not None:
            errors = [
                float((mine - right).abs().max() / right.abs().max())
                for mine, right in zip(
                    outcome(attend, inputs, train=trains), wanted, strict=False
                )
            ]
            row["error"] = errors[0]
            if trains:
                row["gradient_error"] = max(errors[1:])
        _tell(row)
    return rows


def scaling(contenders: list[Variant], repeats: int) -> dict[str, Any]:
    """Return the forward times of a few variants as lengths, and as widths, grow."""
    shown = [each for each in contenders if each.name not in ("JoeyNMT", "OpenNMT-py")]
    curves: dict[str, Any] = {}
    for axis, values in (("T", LENGTHS), ("d_attn", WIDTHS)):
        curves[axis] = {"values": list(values), "forward_ms": {}}
        for value in values:
            torch._dynamo.reset()
            size = (4, value, value, 256) if axis == "T" else (4, 128, 128, value)
            for label, spent in timed(shown, given(size), repeats, train=False).items():
                curves[axis]["forward_ms"].setdefault(label, []).append(1e3 * spent)
    return curves


def _tell(row: dict[str, Any]) -> None:
    train = f"{row['train_ms']:>10.2f}{row['train_ratio']:>7.1f}" if "train_ms" in row else ""
    errors = f"  {row['error']:.0e}" if "error" in row else ""
    errors += f", {row['gradient_error']:.0e}" if "gradient_error" in row else ""
    print(
        f"{row['size']:<6}{row['variant']:<26}{row['forward_ms']:>10.2f}"
        f"{row['forward_ratio']:>7.1f}{train:<17}{errors}",
        flush=True,
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything under the allocator that this process has."""
    torch.set_num_threads(1)
    contenders = variants(compiled=not (options.quick or options.no_compile))
    for each in contenders:
        if each.attend is None:
            print(f"{each.name}: {each.reason}")
    sizes = QUICK if options.quick else {name: SIZES[name] for name in options.sizes}
    rows = []
    for name, size in sizes.items():
        rows += measure(name, size, contenders, options.repeats)
    curves = {} if options.quick else scaling(contenders, max(3, options.repeats // 2))
    kernel = {} if options.quick else rates()
    return {
        "rows": rows,
        "scaling": curves,
        "register_limit": register_limit(),
        "kernel": kernel,
    }


def memory() -> dict[str, dict[str, float | None]]:
    """Return mebibytes beyond the inputs, by size and pass, for the variants that are here."""
    here = {each.name for each in variants(compiled=False) if each.attend is not None}
    found: dict[str, dict[str, float | None]] = {}
    for size in ("S1", "S2"):
        for train in (False, True):
            row = found.setdefault(f"{size}, {'trained' if train else 'forward'}", {})
            for name in SHOWN:
                if name in here:
                    row[name] = peak(name, size, train=train)
    return found


def in_child(allocator: str, arguments: list[str]) -> dict[str, Any]:
    """Run this script once more under one allocator and return what it measured."""
    print(f"allocator: {allocator}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        subprocess.run(
            [sys.executable, __file__, *arguments, "--child", str(result)],
            env={**os.environ, **ALLOCATORS[allocator]},
            check=True,
        )
        return json.loads(result.read_text(encoding="utf-8"))


def main() -> None:
    """Measure all sizes under both allocators and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--quick", action="store_true", help="one tiny size, no torch.compile")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        options.child.write_text(json.dumps(run(options)), encoding="utf-8")
        return
    found = {allocator: in_child(allocator, sys.argv[1:]) for allocator in ALLOCATORS}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    kept = {} if options.quick else memory()
    threads = {} if options.quick else two_threads()
    for told in (kept, threads):
        print(json.dumps(told, indent=1))
    if options.json:
        report = {
            "command": " ".join(["python", "benchmarks/additive.py", *sys.argv[1:]]),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "processor": processor(),
            "threads": 1,
            "backend": regard.backend(),
            "repeats": options.repeats,
            "sizes": QUICK if options.quick else SIZES,
            "load_average": load,
            "allocators": found,
            "memory": kept,
            "two_threads": threads,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
