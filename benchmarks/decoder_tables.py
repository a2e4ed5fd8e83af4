"""The part of docs/kernels.md about decoders, from docs/results/decoder.json."""

from typing import Any

__all__ = ["decoder_lines"]

_HEAD = """## A decoder's training step

Forward, loss and backward of a teacher-forced Bahdanau decoder beside the loop that tutorials
write, which computes the same numbers. "products" are the matrix products of that training step
and nothing else, so "at most" is the ratio that no implementation can exceed here."""

_STEP = """## One decoding step

Scores, softmax and context of one query an example without gradients, keys prepared, beside
eager PyTorch. "reading" is the mere reading of all keys and values, and "at most" again the
ratio that nothing exceeds."""


def decoder_lines(results: dict[str, Any]) -> list[str]:
    """Return the lines of two tables, and how they were made."""
    lines = [_HEAD, "", "| memory | batch | T | d | d_attn | tutorial ms | regard ms |"]
    lines[-1] += " products ms | ratio | at most |"
    lines.append("|---" * 10 + "|")
    for allocator, found in results["allocators"].items():
        for row in found["rows"]:
            times = " | ".join(
                f"{row[f'{k}_ms']:.1f}" for k in ("tutorial", "regard", "products")
            )
            lines.append(
                f"| {allocator} | {row['batch']} | {row['T']} | {row['d']} | {row['d_attn']} "
                f"| {times} | {row['ratio']:.1f} | {row['most']:.1f} |"
            )
    lines += ["", _STEP, "", "| memory | batch | T | d | eager us | regard us | reading us |"]
    lines[-1] += " ratio | at most |"
    lines.append("|---" * 9 + "|")
    for allocator, found in results["allocators"].items():
        for row in found["steps"]:
            times = " | ".join(f"{row[f'{k}_us']:.0f}" for k in ("eager", "regard", "reading"))
            lines.append(
                f"| {allocator} | {row['batch']} | {row['T']} | {row['d']} | {times} "
                f"| {row['ratio']:.1f} | {row['most']:.1f} |"
            )
    made = f"`{results['command']}` on {results['date']}, load average"
    return [*lines, "", f"Both by {made} {results['load_average']:.1f} at the end.", ""]
