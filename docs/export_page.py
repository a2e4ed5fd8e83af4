"""Put the tables of docs/results/runtimes.json into docs/export.md; `--check` only compares.

The results are those of ``benchmarks/runtimes.py``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from written import between, written

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/runtimes.json"
PAGE = ROOT / "docs/export.md"

BEGIN = "<!-- results: docs/export_page.py -->\n"
END = "<!-- end of results -->"


def tables(report: dict[str, Any]) -> str:
    """Return the part of the page between its two marks."""
    lines = [
        "| form | bytes | answers that are the same | largest difference of a probability | of "
        "its logarithm | word errors, % | sound errors, % |",
        "|---" * 7 + "|",
    ]
    for row in report["agreement"]:
        cells = ["", "", "", ""]
        if "bytes" in row:
            cells = [
                f"{row['bytes']:,}",
                f"{row['same_answers']:,} of {row['words']:,}",
                f"{row['probability_difference']:.1e}",
                f"{row['log_probability_difference']:.1e}",
            ]
        cells += [
            f"{100 * row[name]:.2f}" for name in ("exact_match_error", "symbol_error_rate")
        ]
        lines.append(f"| {row['form']} | " + " | ".join(cells) + " |")
    ways = list(dict.fromkeys(row["way"] for row in report["speed"]))
    rates = {(row["form"], row["way"]): row["words_per_second"] for row in report["speed"]}
    lines += [
        "",
        "| words a second | " + " | ".join(ways) + " |",
        "|---" * (1 + len(ways)) + "|",
    ]
    for form in dict.fromkeys(row["form"] for row in report["speed"]):
        cells = [f"{rates[form, way]:,.0f}" if (form, way) in rates else "" for way in ways]
        lines.append(f"| {form} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n" + _how(report)


def _how(report: dict[str, Any]) -> str:
    words = {row["words"] for row in report["agreement"] if "words" in row}
    text = (
        f"A model of the recipe `g2p` with {report['model']['weights']:,} weights on the "
        f"{max(words):,} test words of CMUdict; speed on {report['data']['words']:,} of them, "
        f"processor time of one thread, medians of {report['repeats']} repeats in turns "
        "(`benchmarks/runtimes.py`). ONNX counts encoder and step; `greedy.onnx` holds both "
        "once more."
    )
    if any(row["form"] == "g2p-en" for row in report["speed"]):
        text += (
            " g2p-en's network is asked without its dictionary, one word at a time, as its own "
            "program asks it."
        )
    return text + "\n"


def page() -> str:
    """Return the whole page."""
    report = json.loads(RESULTS.read_text(encoding="utf-8"))
    return between(PAGE, BEGIN, END, f"\n{tables(report)}\n")


if __name__ == "__main__":
    sys.exit(written(PAGE, page()))
