"""Put docs/results/audit_*.json into docs/audit.md; `--check` only compares.

The results are those of ``regard audit reproduce NAME --seeds 3 --json FILE``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from written import between, written

from regard.audit.reproduce.report import band

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results"
PAGE = ROOT / "docs/audit.md"

BEGIN, END = "<!-- results: docs/audit_page.py -->\n", "<!-- end of results -->"

TARGETS = {
    "sst": "Stanford Sentiment: correlations, shuffled weights, adversaries",
    "pronoun": "Pronouns: attention trained to hide them",
    "copy": "Copy, reverse and swap: attention with a known alignment",
}


def block(target: str, report: dict[str, Any]) -> str:
    """Return the part of one target."""
    seeds, figures = report["seeds"], report["figures"]
    inside = sum(figure["inside"] for figure in figures)
    of = sum(value is not None for figure in figures for value in figure["found"])
    measured = [seconds for seconds in report["seconds"] if seconds is not None]
    ends = (min(measured), max(measured)) if measured else ()
    times = " to ".join(dict.fromkeys(f"{seconds / 60:.0f}" for seconds in ends))
    took = f"{times} minutes of processor time a seed " if times else ""
    lines = [
        f"### {TARGETS[target]}",
        "",
        f"{inside} of {of} figures lie in their bands; those outside are bold.",
        "",
        "| figure | published | band | mean | " + " | ".join(f"seed {n}" for n in seeds) + " |",
        "|---" * (4 + len(seeds)) + "|",
        *(_row(figure) for figure in figures),
        "",
        *(f"{said}\n" for said in report["statements"]),
        f"`{report['command']}`, {took}on {_machine(report['machine'])}.",
    ]
    return "\n".join(lines) + "\n"


def _row(figure: dict[str, Any]) -> str:
    low, high = figure["low"], figure["high"]
    verdict = low is not None and low == high  # an outcome: there or not
    cells = []
    for value in (figure["mean"], *figure["found"]):
        if value is None:
            cells.append("")
            continue
        shown = ("yes" if value == low else "no") if verdict else f"{value:.3f}"
        outside = (low is not None and value < low) or (high is not None and value > high)
        cells.append(f"**{shown}**" if outside else shown)
    if verdict:
        of = sum(value is not None for value in figure["found"])
        count = f"{figure['inside']} of {of}"
        cells[0] = count if figure["inside"] == of else f"**{count}**"
    wanted = "yes" if verdict else band(low, high)
    return (
        f"| {figure['name']} | {figure['published']} | {wanted} | " + " | ".join(cells) + " |"
    )


def _machine(machine: dict[str, Any]) -> str:
    return f"{machine['processor']}, PyTorch {machine['torch']}, regard {machine['regard']}"


def page() -> str:
    """Return the whole page."""
    blocks = []
    for target in TARGETS:
        path = RESULTS / f"audit_{target}.json"
        if path.exists():
            blocks.append(block(target, json.loads(path.read_text(encoding="utf-8"))))
    return between(PAGE, BEGIN, END, "\n" + "".join(f"{each}\n" for each in blocks))


if __name__ == "__main__":
    sys.exit(written(PAGE, page()))
