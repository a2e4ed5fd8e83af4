"""Put the committed results of the main job into the README; `--check` only compares."""

import json
import sys
from pathlib import Path

from written import between, written

from regard.demo.table import accuracy_markdown

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- results: docs/readme_results.py -->", "<!-- /results -->"


def block() -> str:
    """Return what stands between the marks."""
    results = json.loads((ROOT / "docs/results/demo.json").read_text(encoding="utf-8"))
    letters, made_by = results["g2p"], results["made_by"]
    return "\n".join(
        [
            accuracy_markdown(results["copy"]).strip(),
            "",
            f"Letters to sounds, same run: phoneme error rate {100 * letters['per']:.2f} %, "
            f"word error rate {100 * letters['wer']:.2f} % on {letters['n_test']:,} held-out "
            f"words after {letters['cpu_seconds']:.0f} CPU seconds of training, scored against "
            "the nearest of all listed",
            f"pronunciations. Made by `{made_by['command']}` with PyTorch {made_by['torch']}, "
            f"one thread a job, {made_by['processes']} jobs at once.",
        ]
    )


if __name__ == "__main__":
    sys.exit(written(README, between(README, BEGIN, END, f"\n{block()}\n")))
