"""One training step of a Bahdanau decoder: regard's beside the loop that tutorials write.

Forward, loss and backward, one thread, CPU time, the two interleaved in one run, medians. The
tutorial's loop projects all keys at every step and applies the output layer at every step; it
computes the same numbers, which is checked before anything is timed.

No decoder of this form can be faster than its matrix products, so their time alone is a column:
the same shapes as often as a training step needs them, and nothing else.

Then one decoding step without gradients, keys prepared: eager PyTorch's tanh, softmax and
product beside :func:`regard.kernels.steps.attend`. Both read all keys and values once, so the
third column is what this machine takes to read as many bytes and do nothing with them.

Much of eager's time is the system's handing out pages of memory, so everything runs twice, as
in benchmarks/additive.py: with the system's allocator as it comes, and with one that keeps its
pages.

    python benchmarks/decoder.py [--repeats 7] [--json FILE]
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
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import regard
from additive_sizes import ALLOCATORS, processor
from regard.kernels.prepared import prepare
from regard.kernels.steps import attend
from regard.nn import BahdanauDecoder

VOCAB = 1000
SIZES = [  # batch, T_dec = T_enc, d_s = d_h, d_attn
    (32, 20, 128, 64),
    (32, 40, 128, 64),
    (32, 80, 128, 64),
    (64, 20, 256, 256),
    (64, 50, 256, 256),
    (64, 100, 256, 256),
]
STEP_SIZES = [  # batch, T_enc, d_attn = d_v
    (1, 50, 256),
    (64, 50, 256),
    (64, 50, 512),
]


def tutorial(
    decoder: BahdanauDecoder, out: nn.Linear, x: Tensor, H: Tensor, s: Tensor
) -> Tensor:
    """Return scores (batch, T_dec, VOCAB), everything done anew at each step."""
    a = decoder.attention
    steps = []
    for t in range(x.shape[1]):
        projected = functional.linear(H, a.U_a)
        pairs = torch.tanh(functional.linear(s, a.W_a).unsqueeze(1) + projected)
        weights = torch.softmax(pairs @ a.v_a, dim=-1)
        context = torch.bmm(weights.unsqueeze(1), H).squeeze(1)
        s = decoder.cell(torch.cat([x[:, t], context], dim=-1), s)
        steps.append(out(torch.cat([s, context], dim=-1)))
    return torch.stack(steps, dim=1)


def ours(decoder: BahdanauDecoder, out: nn.Linear, x: Tensor, H: Tensor, s: Tensor) -> Tensor:
    """Return the same from regard's decoder."""
    return out(decoder(x, decoder.prepare(H), s).outputs)


def seconds(run: Callable[..., Tensor], given: tuple, targets: Tensor) -> float:
    """Return the CPU time of one forward pass, loss and backward pass."""
    began = time.process_time()
    scores = run(*given)
    functional.cross_entropy(scores.flatten(0, 1), targets.flatten()).backward()
    return time.process_time() - began


def products(batch: int, T: int, d: int, d_attn: int) -> Callable[[], None]:
    """Return what runs the matrix products of one training step, forward and backward."""
    wide, rows = d_attn + 3 * d, batch * T
    shapes = [  # how often, rows, inner axis, columns
        *((T, batch, d, wide), (T, batch, d, 3 * d)),  # a step
        *((T, batch, wide, d), (T, batch, 3 * d, d)),  # and back
        *((1, wide, rows, d), (1, 3 * d, rows, d)),  # its weights' gradients
        *((1, rows, d, 3 * d), (1, 3 * d, rows, d)),  # the inputs' half of the gates
        *((1, rows, d, d_attn), (1, rows, d_attn, d), (1, d_attn, rows, d)),  # keys
        *((1, rows, 2 * d, VOCAB), (1, rows, VOCAB, 2 * d), (1, VOCAB, rows, 2 * d)),
    ]
    given = [
        (n, torch.randn(a, b), torch.randn(b, c), torch.empty(a, c)) for n, a, b, c in shapes
    ]

    def run() -> None:
        for n, left, right, out in given:
            for _ in range(n):
                torch.mm(left, right, out=out)

    return run


def measure(batch: int, T: int, d: int, d_attn: int, repeats: int) -> dict[str, float]:
    """Time both on one size."""
    torch.manual_seed(0)
    decoder, out = BahdanauDecoder(d, d, d, d_attn), nn.Linear(2 * d, VOCAB)
    x, H, s = torch.randn(batch, T, d), torch.randn(batch, T, d), torch.randn(batch, d)
    H.requires_grad_()
    given, targets = (decoder, out, x, H, s), torch.randint(VOCAB, (batch, T))
    with torch.no_grad():
        error = float((tutorial(*given) - ours(*given)).abs().max())
    assert error < 1e-4, f"the two differ by {error}"
    times: dict[str, list[float]] = {"tutorial": [], "regard": [], "products": []}
    multiply = products(batch, T, d, d_attn)
    for turn in range(repeats + 1):
        began = time.process_time()
        multiply()
        if turn:
            times["products"].append(time.process_time() - began)
        for name, run in (("tutorial", tutorial), ("regard", ours)):
            spent = seconds(run, given, targets)
            if turn:  # the first turn warms up
                times[name].append(spent)
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    return {
        "batch": batch,
        "T": T,
        "d": d,
        "d_attn": d_attn,
        "tutorial_ms": 1e3 * medians["tutorial"],
        "regard_ms": 1e3 * medians["regard"],
        "products_ms": 1e3 * medians["products"],
        "ratio": medians["tutorial"] / medians["regard"],
        "most": medians["tutorial"] / medians["products"],
        "largest_difference": error,
    }


def measure_step(batch: int, T: int, d: int, repeats: int) -> dict[str, float]:
    """Time one decoding step, and the mere reading of what it reads."""
    torch.manual_seed(0)
    query, key, v = torch.randn(batch, 1, d), torch.randn(batch, T, d), torch.randn(d) / d**0.5
    value, keys = torch.randn(batch, T, d), prepare(key)

    def eager() -> Tensor:
        weights = torch.softmax(torch.tanh(query + key) @ v, dim=-1)
        return torch.bmm(weights.unsqueeze(1), value)

    # One read each: a product with a vector is as fast as memory.
    ones, flat = torch.ones(d), [each.view(-1, d) for each in (key, value)]
    runs: dict[str, Callable[[], object]] = {
        "eager": eager,
        "regard": lambda: attend(query, keys, v, value),
        "reading": lambda: [torch.mv(each, ones) for each in flat],
    }
    with torch.inference_mode():
        error = float((eager() - attend(query, keys, v, value).context).abs().max())
        assert error < 1e-4, f"the two differ by {error}"
        times: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(10 * repeats + 1):
            for name, run in runs.items():
                began = time.process_time()
                run()
                if turn:
                    times[name].append(time.process_time() - began)
    medians = {f"{name}_us": 1e6 * statistics.median(spent) for name, spent in times.items()}
    ratio = medians["eager_us"] / medians["regard_us"]
    most = medians["eager_us"] / medians["reading_us"]
    return {"batch": batch, "T": T, "d": d, **medians, "ratio": ratio, "most": most}


def run(repeats: int) -> dict[str, list[dict[str, float]]]:
    """Measure all sizes under the allocator that this process has, and print two tables."""
    torch.set_num_threads(1)
    rows = []
    print("batch    T    d d_attn  tutorial ms  regard ms  products ms ratio  most", flush=True)
    for size in SIZES:
        row = measure(*size, repeats)
        rows.append(row)
        print(
            f"{row['batch']:>5} {row['T']:>4} {row['d']:>4} {row['d_attn']:>6} "
            f"{row['tutorial_ms']:>12.1f} {row['regard_ms']:>10.1f} "
            f"{row['products_ms']:>12.1f} {row['ratio']:>5.1f} {row['most']:>5.1f}",
            flush=True,
        )
    steps = [measure_step(*size, repeats) for size in STEP_SIZES]
    print("\nbatch    T    d  eager us  regard us  reading us ratio  most")
    for row in steps:
        print(
            f"{row['batch']:>5} {row['T']:>4} {row['d']:>4} {row['eager_us']:>9.0f} "
            f"{row['regard_us']:>10.0f} {row['reading_us']:>11.0f} {row['ratio']:>5.1f} "
            f"{row['most']:>5.1f}",
            flush=True,
        )
    return {"rows": rows, "steps": steps}


def main() -> None:
    """Measure all sizes under both allocators; "most" is the ratio that nothing can exceed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        options.child.write_text(json.dumps(run(options.repeats)), encoding="utf-8")
        return
    found = {}
    for allocator, settings in ALLOCATORS.items():
        print(f"\nallocator: {allocator}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "result.json")
            subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--child", str(result)],
                env={**os.environ, **settings},
                check=True,
            )
            found[allocator] = json.loads(result.read_text(encoding="utf-8"))
    if options.json:
        report = {
            "command": " ".join(["python", "benchmarks/decoder.py", *sys.argv[1:]]),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "processor": processor(),
            "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "threads": 1,
            "backend": regard.backend(),
            "repeats": options.repeats,
            "allocators": found,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
