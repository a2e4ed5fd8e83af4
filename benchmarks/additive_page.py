"""Write docs/kernels.md and its figure from docs/results/additive.json and decoder.json.

python benchmarks/additive_page.py            # writes both; the figure needs matplotlib
python benchmarks/additive_page.py --check    # fails where the page is not the JSON's
"""

import json
import sys
from pathlib import Path
from typing import Any

from decoder_tables import decoder_lines

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "additive.json"
DECODER = ROOT / "docs" / "results" / "decoder.json"
FIGURE = ROOT / "docs" / "results" / "additive_scaling.svg"
PAGE = ROOT / "docs" / "kernels.md"

_HEAD = """# Additive scores: what they cost

Additive attention compares every query with every key through a tangent for each feature.
regard computes the same scores without one: `regard.kernels.grouped` has the formula and its
guards, `REGARD_KERNELS` chooses between the paths and `regard.backend()` says which one runs.
This page is generated; its figures are those of the run named at its end.

Times are the CPU time of scores, softmax and context, projections done beforehand, the median
of interleaved repetitions on one thread. "x eager" compares with PyTorch's plain formula,
"x numpy" with NumPy's. Errors are of the context, and the largest of all gradients', against
float64, relative to the largest value."""

_ALLOCATORS = {
    "default": "with the system's allocator as it comes: much of what holds all pairs at once"
    " is the time in which the system hands out pages of memory",
    "keeps pages": "with an allocator that gives no page back, so that nobody waits for any",
}


def page(results: dict[str, Any], decoder: dict[str, Any] | None = None) -> str:
    """Return the page's text; without `decoder` the part about decoders is left out."""
    lines = [_HEAD, ""]
    for allocator, found in results["allocators"].items():
        lines += [f"## Memory {_ALLOCATORS[allocator]}", ""]
        for name, size in results["sizes"].items():
            rows = [row for row in found["rows"] if row["size"] == name]
            if rows:
                lines += _table(name, size, rows)
    first = next(iter(results["allocators"].values()))
    lines += _limit(first["register_limit"], first["kernel"])
    lines += _memory(results["memory"]) + _threads(results["two_threads"])
    if first["scaling"]:
        lines += [
            "## As lengths and features grow",
            "",
            "![Forward times over T and d_attn](results/additive_scaling.svg)",
            "",
        ]
    lines += [] if decoder is None else decoder_lines(decoder)
    lines += [
        "## How the tables of additive scores were made",
        "",
        f"`{results['command']}` on {results['date']}, {results['repeats']} repetitions, a",
        f"load average of {results['load_average']:.1f} at the end, one",
        f"thread of {results['processor']}, Python {results['python']}, PyTorch",
        f"{results['torch']}; {results['backend']}.",
        "",
    ]
    return "\n".join(lines)


def _table(name: str, size: list[int], rows: list[dict[str, Any]]) -> list[str]:
    batch, T_dec, T_enc, d_attn = size
    lines = [
        f"### {name}: batch {batch}, {T_dec} queries, {T_enc} keys, {d_attn} features",
        "",
        "| | forward ms | x eager | x numpy | with backward ms | x eager | error"
        " | of gradients |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "reason" in row:
            lines.append(f"| {row['variant']} | {row['reason']} | | | | | | |")
            continue
        cells = [
            f"{row['forward_ms']:.2f}",
            f"{row['forward_ratio']:.1f}",
            f"{row['numpy_ratio']:.1f}",
            f"{row['train_ms']:.2f}" if "train_ms" in row else "",
            f"{row['train_ratio']:.1f}" if "train_ratio" in row else "",
            f"{row['error']:.0e}" if "error" in row else "",
            f"{row['gradient_error']:.0e}" if "gradient_error" in row else "",
        ]
        lines.append(f"| {row['variant']} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _limit(limit: dict[str, float] | str, kernel: dict[str, Any] | str) -> list[str]:
    lines = ["## How far from the machine's limit", ""]
    if isinstance(limit, str) or isinstance(kernel, str):
        return [*lines, f"Not measured: {limit if isinstance(limit, str) else kernel}.", ""]
    lines += [
        "The native kernel alone, in billions of pairs x features a second, beside its inner",
        f"loops on values that never leave the registers: {limit['scores']:.1f} for scores and",
        f"{limit['gradients']:.1f} for gradients on this processor.",
        "",
        "| | scores | of the limit | gradients | of the limit |",
        "|---|---|---|---|---|",
    ]
    for size, rate in kernel.items():
        cells = [
            f"{rate[what]:.1f} | {100 * rate[what] / limit[what]:.0f} %"
            for what in ("scores", "gradients")
        ]
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return [*lines, ""]


def _memory(memory: dict[str, dict[str, float | None]]) -> list[str]:
    lines = ["## Memory beyond the inputs", ""]
    if not memory or None in next(iter(memory.values())).values():
        return [*lines, "Not measured.", ""]
    names = list(next(iter(memory.values())))
    lines += [
        "The peak in a fresh process, in mebibytes.",
        "",
        f"| | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for what, row in memory.items():
        lines.append(f"| {what} | {' | '.join(f'{row[name]:.1f}' for name in names)} |")
    return [*lines, ""]


def _threads(found: dict[str, Any] | str) -> list[str]:
    lines = ["## Two threads", ""]
    if not found or isinstance(found, str):
        return [*lines, f"Not measured{f': {found}' if found else ''}.", ""]
    load = found["load_average"]
    lines += [
        f"Wall time of the native kernel at {found['size']}, the best of interleaved calls, on",
        f"{found['processors']} processors under a load of {load:.1f} when it began. Only on",
        "an idle machine can two threads show what they save.",
        "",
        "| | one thread ms | two threads ms | ratio |",
        "|---|---|---|---|",
    ]
    for what in ("scores", "gradients"):
        each = found[what]
        lines.append(
            f"| {what} | {each['one_ms']:.1f} | {each['two_ms']:.1f} | {each['ratio']:.2f} |"
        )
    return [*lines, ""]


def draw(results: dict[str, Any]) -> None:
    """Draw the times over T and d_attn, both axes logarithmic."""
    import matplotlib as mpl  # noqa: PLC0415 - the check does without

    mpl.use("svg")
    # The same file for the same figures.
    mpl.rcParams.update({"svg.hashsalt": "regard", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt  # noqa: PLC0415

    curves = results["allocators"]["default"]["scaling"]
    figure, axes = plt.subplots(1, len(curves), figsize=(10, 4.5), sharey=True)
    for axis, (name, curve) in zip(axes, curves.items(), strict=True):
        for label, times in curve["forward_ms"].items():
            axis.loglog(curve["values"], times, marker="o", markersize=3, label=label)
        axis.set_xticks(curve["values"], [str(value) for value in curve["values"]])
        axis.minorticks_off()
        axis.set_xlabel("queries = keys (d_attn 256)" if name == "T" else "d_attn (T 128)")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("forward, ms of CPU time, batch 4")
    axes[-1].legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> int:
    """Write the page and the figure, or say whether the page is up to date."""
    check = "--check" in sys.argv[1:]
    if not RESULTS.exists():
        if check:
            return int(PAGE.exists())  # neither is fine: nothing was measured yet
        print(f"there are no results in {RESULTS}", file=sys.stderr)
        return 2
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    decoder = json.loads(DECODER.read_text(encoding="utf-8")) if DECODER.exists() else None
    wanted = page(results, decoder)
    if check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    if results["allocators"]["default"]["scaling"]:
        draw(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
