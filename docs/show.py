"""Make the pictures of docs/show.md from the committed results; needs Chromium for the page's.

python docs/show.py
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from regard.alignment.collection import Collection
from regard.alignment.explorer import explorer
from regard.alignment.pictures import picture
from regard.alignment.record import Record

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from browser import CHROMIUM, WHY, Browser

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs/show"


def looked() -> Collection:
    """Return what the models of `regard demo` looked at: one sequence copied, four words."""
    results = json.loads((ROOT / "docs/results/demo.json").read_text(encoding="utf-8"))
    copied = [
        Record(form["weights"], form["target"], form["source"], name="copy", model=model)
        for model, form in results["alignments"]["copy"].items()
    ]
    words = [
        Record(
            form["weights"],
            form["target"],
            form["source"],
            name="".join(form["source"]),
            model="letters to sounds",
        )
        for form in results["g2p"]["examples"]
    ]
    return Collection([*words, *copied])


def made_up() -> Record:
    """Return heads of every kind: some follow the diagonal, some look everywhere."""
    rng = np.random.default_rng(0)
    target = ["le", "chat", "noir", "dort", "sur", "le", "vieux", "tapis", "rouge"]
    source = ["the", "black", "cat", "sleeps", "on", "the", "old", "red", "rug"]
    apart = np.abs(np.arange(len(source)) - np.arange(len(target))[:, None])
    sharp = np.array([[2.0, 0.6, 0.1, 0.0], [1.2, 0.0, 0.3, 3.0]])[..., None, None]
    noise = rng.normal(0, 1, (2, 4, len(target), len(source)))
    weights = np.exp(-sharp * apart + noise)
    return Record(weights / weights.sum(axis=-1, keepdims=True), target, source, name="made up")


def screenshots(collection: Collection, out: Path) -> None:
    """Take the page at 1440 and at 360 pixels, in both themes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        path.write_text(explorer(collection, title="What the models of the demo looked at"))
        browser = Browser()
        try:
            for width, height in ((1440, 1000), (360, 1000)):
                for theme in ("light", "dark"):
                    browser.open(path, width=width, height=height, dark=theme == "dark")
                    browser.wait("!document.getElementById('explorer').hidden")
                    if width == 1440:
                        browser.run(
                            "(() => { const e = document.getElementById('sentence');"
                            "e.value = '4'; e.dispatchEvent(new Event('change')); })()"
                        )
                        browser.click("#compare")
                    browser.run("scrollTo(0, 0)")
                    left, top, wide, high = browser.run(
                        "(() => { const b = document.querySelector('#map-one .cells')"
                        ".getBoundingClientRect(); return [b.left, b.top, b.width, b.height];"
                        "})()"
                    )
                    browser.move(left + 0.3 * wide, top + 0.3 * high)
                    browser.picture(out / f"page-{width}-{theme}.png")
        finally:
            browser.close()


def main() -> None:
    """Write every picture."""
    OUT.mkdir(exist_ok=True)
    collection = looked()
    word = max(collection, key=lambda record: len(record.source) * (record.name != "copy"))
    picture(OUT / "map.svg", word, title=f"{word.name}, {word.model}")
    picture(OUT / "curves.svg", word, kind="curves", title=word.name)
    picture(OUT / "heads.svg", made_up(), kind="heads", title="made-up weights")
    if CHROMIUM is None:
        raise SystemExit(WHY)
    screenshots(collection, OUT)


if __name__ == "__main__":
    main()
