"""Put the committed run of the main job into the lessons' figure; `--check` only compares."""

import json
import sys
from pathlib import Path

from written import written

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


if __name__ == "__main__":
    sys.exit(written(RUN, text()))
