"""Run the lessons and put into them what they print and draw; `--check` only compares.

The guides' code is run and compared in the same way. Names of lessons and files of guides after
the command do only those::

    python docs/lessons.py
    python docs/lessons.py masks docs/quickstart.md --check
"""

import argparse
import sys
from pathlib import Path

from regard.cli.main import run
from regard.learn.catalog import find, lessons
from regard.learn.diagrams.every import DIAGRAMS
from regard.learn.execute import execute
from regard.learn.rewrite import FIGURES, rewritten, stale_figures

HERE = Path(__file__).resolve().parent
GUIDES = (HERE / "quickstart.md", *sorted((HERE / "howto").glob("*.md")))


def stale(page: Path) -> dict[str, str]:
    """Return the files that a page's run would change, and what they would be."""
    whole = page.read_text(encoding="utf-8")
    results = list(execute(whole, run=run))
    found = {str(path): text for path, text in stale_figures(results).items()}
    text = rewritten(whole, results)
    if text != whole:
        found[str(page)] = text
    return found


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="default: all, and diagrams")
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args()
    found: dict[str, str] = {}
    if not asked.names:
        drawn = {str(FIGURES / f"{name}.svg"): draw() for name, draw in DIAGRAMS.items()}
        for path, text in drawn.items():
            try:
                with open(path, encoding="utf-8") as file:
                    same = file.read() == text
            except FileNotFoundError:
                same = False
            if not same:
                found[path] = text
    named = [Path(name) if name.endswith(".md") else find(name).path for name in asked.names]
    for page in named or (*(lesson.path for lesson in lessons()), *GUIDES):
        print(f"running {page.stem}", file=sys.stderr)
        found |= stale(page)
    for path, text in found.items():
        print(f"{'would change' if asked.check else 'wrote'} {path}", file=sys.stderr)
        if not asked.check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return int(bool(found) and asked.check)


if __name__ == "__main__":
    sys.exit(main())
