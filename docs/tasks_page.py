"""Write docs/tasks.md from the committed results; `--check` only compares.

The results are those of ``regard bench tasks`` (docs/results/tasks.json) and, where it is
there, of ``benchmarks/training_speed.py`` (docs/results/training_speed.json). Without results
there is no page.
"""

import json
import sys
from pathlib import Path
from typing import Any

from written import written

from regard.seq2seq.bench.summary import rows
from regard.seq2seq.bench.table import markdown

ROOT = Path(__file__).resolve().parent.parent
TASKS = ROOT / "docs/results/tasks.json"
SPEED = ROOT / "docs/results/training_speed.json"
PAGE = ROOT / "docs/tasks.md"

HEAD = """# Quality on known tasks

Each row is a recipe: `regard train NAME` does the same with one seed. Ours is the mean over
seeds, with the lowest and the highest. Weights are chosen on the dev part, numbers are of the
test part, which nothing was chosen by. A published number stands with its source; numbers of
systems that took hours or were tuned for each language are not made in the same time. Where
several models answered together that is said, and the first of them alone stands beside.
"""
ALONE = """Where one seed stands, no other was run yet; the other rows show what a seed changes.
"""


def page() -> str | None:
    """Return the page, or None where there are no results."""
    if not TASKS.exists():
        return None
    report = _read(TASKS)
    machines = {_machine(result["machine"]) for result in report["results"]}
    seeds = {row.ours.seeds for row in rows(report["results"])}
    parts = [
        HEAD + (ALONE if 1 in seeds else ""),
        markdown(report["results"]),
        f"Made by `{report['command']}` on {'; '.join(sorted(machines))}.\n",
    ]
    bleu = [result["bleu"] for result in report["results"] if result.get("bleu")]
    if bleu:
        mean = sum(each["score"] for each in bleu) / len(bleu)
        parts.append(
            f"Translation: BLEU {mean:.2f}, mean of {len(bleu)} seeds, over lower-case tokens "
            f"(`{bleu[0]['signature']}`).\n"
        )
    if SPEED.exists():
        parts.append(_speed(_read(SPEED)))
    return "\n".join(parts)


def _speed(report: dict[str, Any]) -> str:
    lines = [
        "# Training throughput\n",
        "Source and target symbols a second, one thread, CPU time, median of rounds in which "
        "the systems take turns;",
        "what is compared with what is said in `benchmarks/training_speed.py`.\n",
        "| encoder, decoder | system | symbols a second | regard is faster | parameters |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in report["sizes"]:
        rates = row["symbols_per_second"]
        ours = rates["regard, own batches"]
        for name, rate in rates.items():
            low, high = row["spread"][name]
            lines.append(
                f"| 2 x {row['hidden']}, {row['state']} | {name} | {rate:,} ({low:,} to "
                f"{high:,}) | {ours / rate:.1f} times | {row['parameters'][name]:,} |"
            )
    made_by = report["made_by"]
    lines.append(f"\nMade by `{made_by['command']}` on {_machine(made_by['machine'])}.\n")
    return "\n".join(lines)


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, PyTorch {machine['torch']}, "
        f"regard {machine['regard']}"
    )


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> int:
    """Write the page, or say whether it is up to date; without results there is none."""
    wanted = page()
    if wanted is None:
        return int("--check" in sys.argv[1:] and PAGE.exists())
    return written(PAGE, wanted)


if __name__ == "__main__":
    sys.exit(main())
