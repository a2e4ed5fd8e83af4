"""How large the explorer page is, and how soon it answers a pointer, in a real Chromium.

    python benchmarks/explorer.py --json docs/results/explorer.json

Weights are made up: soft diagonals with noise, of words of five letters. Size is of the file.
An answer is timed inside the page, from the time stamp of the pointer event to the first moment
after the frame that shows it. It needs Chromium (Debian: apt-get install chromium).
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from regard.alignment.explorer import explorer
from regard.alignment.record import Record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser import CHROMIUM, WHY, Browser

_WATCH = """
window.answers = [];
addEventListener("pointermove", (event) => {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.answers.push(performance.now() - event.timeStamp);
    channel.port2.postMessage(null);
  });
}, true);
"""


def made_up(heads: int, tokens: int, name: str, seed: int) -> Record:
    rng = np.random.default_rng(seed)
    apart = np.abs(np.arange(tokens) - np.arange(tokens)[:, None])
    sharp = rng.uniform(0.05, 2, (1, heads, 1, 1))
    scores = -sharp * apart + rng.normal(0, 1.2, (1, heads, tokens, tokens))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    words = ["".join(rng.choice(list("etaoinshr"), 5)) for _ in range(2 * tokens)]
    return Record(weights, words[:tokens], words[tokens:], name=name)


def size(sentences: int, heads: int, tokens: int) -> int:
    records = [made_up(heads, tokens, str(place), place) for place in range(sentences)]
    return len(explorer(records).encode("utf-8"))


def answers(tokens: int, heads: int, moves: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        path.write_text(explorer([made_up(heads, tokens, "long", 0)]), encoding="utf-8")
        browser = Browser()
        try:
            start = time.perf_counter()
            browser.open(path)
            browser.wait("!document.getElementById('explorer').hidden")
            opened = time.perf_counter() - start
            browser.run(_WATCH + "0")
            left, top, width, height = browser.run(
                "(() => { const b = document.querySelector('#map-one .cells')"
                ".getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
            )
            rng = np.random.default_rng(0)
            high = min(height, 890 - top)
            for x, y in rng.uniform(0.01, 0.99, (moves, 2)):
                before = browser.run("window.answers.length")
                browser.move(left + x * width, top + y * high)
                browser.wait(f"window.answers.length > {before}")
            found = sorted(browser.run("window.answers"))
        finally:
            browser.close()
    return {
        "opened_ms": round(1000 * opened, 1),
        "median_ms": round(statistics.median(found), 1),
        "p95_ms": round(found[int(0.95 * (len(found) - 1))], 1),
        "worst_ms": round(found[-1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--moves", type=int, default=100)
    given = parser.parse_args()
    if CHROMIUM is None:
        raise SystemExit(WHY)
    results = {
        "bytes": {"50 sentences, 40 tokens, 8 heads": size(50, 8, 40)},
        "pointer": {
            f"{tokens} x {tokens}, 8 heads": answers(tokens, 8, given.moves)
            for tokens in (5, 40, 200)
        },
        "load": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
    }
    text = json.dumps(results, indent=2) + "\n"
    print(text, end="")
    if given.json:
        given.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
