"""One training step of a Bahdanau decoder: regard's beside the loop that tutorials write.

Forward, loss and backward, one thread, CPU time, the two interleaved in one run, medians. The
tutorial's loop projects all keys at every step and applies the output layer at every step; it
computes the same numbers, which is checked before anything is timed.

Then one decoding step without gradients, keys prepared: eager PyTorch's tanh, softmax and
product beside :func:`regard.kernels.steps.attend`. Both read all keys and values once, so the
third column is what this machine takes to read as many bytes and do nothing with them. Eager's
time is half page faults with the default allocator; run with ``MALLOC_MMAP_MAX_=0
MALLOC_TRIM_THRESHOLD_=20000000000 MALLOC_TOP_PAD_=268435456`` as well.

    python benchmarks/decoder.py [--repeats 7] [--json FILE]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import regard
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
    times: dict[str, list[float]] = {"tutorial": [], "regard": []}
    for turn in range(repeats + 1):
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
        "ratio": medians["tutorial"] / medians["regard"],
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
    return {"batch": batch, "T": T, "d": d, **medians, "ratio": ratio}


def main() -> None:
    """Measure all sizes and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measure(*size, options.repeats) for size in SIZES]
    print("batch    T    d d_attn  tutorial ms  regard ms ratio")
    for row in rows:
        print(
            f"{row['batch']:>5} {row['T']:>4} {row['d']:>4} {row['d_attn']:>6} "
            f"{row['tutorial_ms']:>12.1f} {row['regard_ms']:>10.1f} {row['ratio']:>5.1f}"
        )
    steps = [measure_step(*size, options.repeats) for size in STEP_SIZES]
    print("\nbatch    T    d  eager us  regard us  reading us ratio")
    for row in steps:
        print(
            f"{row['batch']:>5} {row['T']:>4} {row['d']:>4} {row['eager_us']:>9.0f} "
            f"{row['regard_us']:>10.0f} {row['reading_us']:>11.0f} {row['ratio']:>5.1f}"
        )
    if options.json:
        report = {
            "torch": torch.__version__,
            "threads": 1,
            "backend": regard.backend(),
            "rows": rows,
            "steps": steps,
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
