"""Put the measurements of aligners into docs/alignment.md; `--check` only compares."""

import json
import sys
from pathlib import Path
from typing import Any

from written import between, written

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results/alignment.json"
PAGE = ROOT / "docs/alignment.md"
BEGIN, END = "<!-- results: docs/alignment_page.py -->", "<!-- /results -->"

_TITLES = {
    "hansards-mini": "English-French, Hansards",
    "en-es-europarl": "English-Spanish, Europarl",
}
_OWN_DEFAULT = "agreeing from {}"

PUBLISHED = (
    ("fast_align", "10.5"),
    ("eflomal", "8.2"),
    ("Mgiza, best symmetrisation", "5.9"),
    ("awesome-align, multilingual BERT", "4.1 to 5.6"),
)
"""AER on the same 447 English-French pairs in the README of awesome-align (Dou and Neubig,
2021): trained on about 1.1 million sentence pairs, or on text of 104 languages."""


def block(results: dict[str, Any]) -> str:
    """Return what stands between the marks."""
    lines = []
    least = results["made_by"]["defaults"]["least"]
    for name, corpus in results["corpora"].items():
        told = corpus["with_gold"] - corpus["chosen_on"]
        lines += [
            f"### {_TITLES[name]}",
            "",
            f"{corpus['pairs']:,} sentence pairs to train on; AER on {told} with gold links;",
            f"how links are read was chosen on {corpus['chosen_on']} others.",
            "",
            "| aligner | links read by | AER % | 95 % interval | precision | recall | CPU s |",
            "|---|---|---|---|---|---|---|",
        ]
        default = _OWN_DEFAULT.format(least)
        lines += _rows(corpus["systems"], default)
        lines += ["", *_verdict(corpus["systems"], default)]
    lines += [
        "Published AER on the same 447 English-French pairs, by models trained on about 1.1",
        "million sentence pairs or more, and so no comparison with the rows above:",
        "",
        *(f"- {name}: {aer}" for name, aer in PUBLISHED),
        "",
        f"PyTorch {results['made_by']['torch']}, one thread, CPU seconds of processes; made by",
        "`python benchmarks/alignment_error.py --data DIR`.",
    ]
    return "\n".join(lines)


def _rows(systems: dict[str, Any], default: str) -> list[str]:
    rows = []
    for system, found in systems.items():
        if "reason" in found:
            rows.append((1.0, f"| {system} | {found['reason']} | | | | | |"))
            continue
        seconds = found["cpu_seconds"]
        chosen = {found["chosen"]: ""}
        if system == "regard":
            chosen |= {default: " (its default)"}
        elif not system.startswith("regard"):
            # Of a peer also what would have been the luckiest choice.
            best = min(found["readings"], key=lambda name: found["readings"][name]["aer"])
            chosen = {best: " (in hindsight)"} | chosen
        for reading, note in chosen.items():
            row = found["readings"][reading]
            cells = [
                f"**{system}**" if system == "regard" else system,
                f"{reading}{note}",
                f"{100 * row['aer']:.1f}",
                f"{100 * row['low']:.1f} to {100 * row['high']:.1f}",
                f"{100 * row['precision']:.1f}",
                f"{100 * row['recall']:.1f}",
                f"{seconds:.0f}",
            ]
            rows.append((row["aer"], f"| {' | '.join(cells)} |"))
    return [text for _, text in sorted(rows)]


def _verdict(systems: dict[str, Any], default: str) -> list[str]:
    """Say who wins, and whether the sentences let one say so."""
    said = []
    for peer in ("fast_align (thot)", "eflomal", "eflomal, prefixes of 5"):
        gap, low, high = systems.get(peer, {}).get("above_regard", (None, None, None))
        if gap is not None:
            sure = "" if low > 0 or high < 0 else ", which other sentences might turn round"
            said.append(
                f"{abs(100 * gap):.1f} points {'below' if gap > 0 else 'above'} {peer} "
                f"(95 % interval of the difference {100 * low:.1f} to {100 * high:.1f}{sure})"
            )
    if not said:
        return []
    text = f"regard's AER is {', '.join(said)}."
    if "readings" in systems.get("eflomal", {}):
        peer = min(row["aer"] for row in systems["eflomal"]["readings"].values())
        gap = 100 * (peer - systems["regard"]["readings"][default]["aer"])
        side = "below" if gap > 0 else "above"
        best = min(systems, key=lambda name: _chosen(systems[name]))
        if not best.startswith("regard"):
            text += f" The lowest here is that of {best}."
        text += (
            f" Read by its default it is {abs(gap):.1f} points {side} the best of eflomal's "
            "readings in hindsight."
        )
    return [text, ""]


def _chosen(system: dict[str, Any]) -> float:
    """Return the AER of the reading that was chosen on other sentences."""
    return float(system["readings"][system["chosen"]]["aer"])


if __name__ == "__main__":
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    sys.exit(written(PAGE, between(PAGE, BEGIN, END, f"\n{block(found)}\n")))
