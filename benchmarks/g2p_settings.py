"""What the recipe for CMUdict is chosen by: settings side by side on words held out.

10,000 words are cut from the training part, beside those of the dev part, and every candidate
is trained on the rest by the same CPU time, then asked for them greedily. Nothing is asked of
the test part. One run each: differences below half a point are chance.

    python benchmarks/g2p_settings.py [NAME ...] [--seconds 240] [--jobs 2] [--json FILE]
"""

import argparse
import json
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch loads

import torch

from regard.seq2seq.job import train_pairs
from regard.seq2seq.rates import rates_of
from regard.seq2seq.recipes import g2p
from regard.seq2seq.transducer import Transducer

HELD_OUT = 10_000

SMALL = {"layers": 1, "d_in": 64, "d_hidden": 96, "d_s": 192}
WIDE = {"d_hidden": 192, "d_s": 384}
CANDIDATES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # the model's, the training's
    "as it is": ({}, {}),
    "dropout 0.1": ({"dropout": 0.1}, {}),
    "dropout 0.1, rate 3e-3": ({"dropout": 0.1}, {"learning_rate": 3e-3}),
    "dropout 0.1, no smoothing": ({"dropout": 0.1}, {"label_smoothing": 0.0}),
    "rate 3e-3": ({}, {"learning_rate": 3e-3}),
    "rate 5e-3": ({}, {"learning_rate": 5e-3}),
    "wide": (WIDE, {}),
    "wide, one layer": ({**WIDE, "layers": 1}, {}),
    "small, rate 5e-3": (SMALL, {"learning_rate": 5e-3}),
}


def measure(name: str, seconds: float) -> dict[str, Any]:
    """Train a candidate and return its error rates in percent."""
    torch.set_num_threads(1)
    lexicon = g2p.load()
    kept, held = lexicon.train.split(HELD_OUT, seed=7)
    # Settings of the longer budgets, whatever the time here.
    settings = g2p.recipe().job(max(seconds, 240.0), 0)
    of_model, of_training = CANDIDATES[name]
    settings = replace(
        settings,
        model={**settings.model, **of_model},
        train=replace(
            settings.train,
            **{"time_budget": seconds, "clock": "cpu", "looks": 2, **of_training},
        ),
    )
    with tempfile.TemporaryDirectory() as out:
        result = train_pairs(kept, lexicon.dev, settings, directory=Path(out) / "model")[1]
        rates = rates_of(Transducer.load(Path(out) / "model"), held)
    return {
        "name": name,
        "steps": result.steps,
        "WER": round(100 * rates.exact_match_error, 2),
        "PER": round(100 * rates.symbol_error_rate, 3),
    }


def main() -> None:
    """Run the candidates and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CANDIDATES))
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    names = asked.names or list(CANDIDATES)
    if unknown := [name for name in names if name not in CANDIDATES]:
        parser.error(f"no such candidate: {unknown[0]!r}; there are {', '.join(CANDIDATES)}")
    found = []
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(measure, names, [asked.seconds] * len(names)):
            print(f"{row['name']:28} {row['steps']:>7} steps  WER {row['WER']:.2f}", flush=True)
            found.append(row)
    if asked.json:
        report = {"seconds": asked.seconds, "held_out": HELD_OUT, "rows": found}
        asked.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
