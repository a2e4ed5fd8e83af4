"""Put the committed run of the main job into the lessons' figure; `--check` only compares."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "src/regard/learn/figures/run.json"


def text() -> str:
    """Return what the figure needs of the run."""
    copy = json.loads((ROOT / "docs/results/demo.json").read_text(encoding="utf-8"))["copy"]
    kept = {
        "chance": copy["chance"],
        "trained_lengths": copy["trained_lengths"],
        "lengths": copy["lengths"],
        "models": {
            name: {"token_accuracy": model["token_accuracy"]}
            for name, model in copy["models"].items()
        },
    }
    return json.dumps({"copy": kept}, indent=1) + "\n"


def main() -> int:
    """Write the file, or say whether it is up to date."""
    if "--check" in sys.argv[1:]:
        return int(RUN.read_text(encoding="utf-8") != text())
    RUN.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
