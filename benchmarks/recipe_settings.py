"""What the recipes' settings are chosen by: candidates side by side on pairs held out.

Pairs are cut from the training part (10,000 words of CMUdict, 1,500 forms of a language's
inflection), every candidate is trained on the rest by the same CPU time and asked for them
greedily. Nothing is asked of the test part. One run each: differences below half a point are
chance.

    python benchmarks/recipe_settings.py g2p [NAME ...] [--seconds 240] [--jobs 2] [--json FILE]
    python benchmarks/recipe_settings.py inflection:russian --data-dir DIR --seconds 150
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

from regard.seq2seq.job import JobSettings, train_pairs
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.rates import rates_of
from regard.seq2seq.recipes import g2p, inflection
from regard.seq2seq.transducer import Transducer

Candidates = dict[str, tuple[dict[str, Any], dict[str, Any]]]  # the model's, the training's

SMALL = {"layers": 1, "d_in": 64, "d_hidden": 96, "d_s": 192}
WIDE = {"d_hidden": 192, "d_s": 384}
G2P: Candidates = {
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
INFLECTION: Candidates = {
    "as it is": ({}, {}),
    "dropout 0.3": ({"dropout": 0.3}, {}),
    "dropout 0.3, rate 2e-3": ({"dropout": 0.3}, {"learning_rate": 2e-3}),
    "dropout 0.1": ({"dropout": 0.1}, {}),
    "rate 3e-3": ({}, {"learning_rate": 3e-3}),
    "smoothing": ({}, {"label_smoothing": 0.1}),
    "two layers, rate 3e-3": ({"layers": 2}, {"learning_rate": 3e-3}),
}


def parts_of(task: str, seconds: float, data_dir: Path | None) -> tuple[Any, JobSettings]:
    """Return a recipe's data and settings."""
    if task == "g2p":
        # Settings of the longer budgets, whatever the time here.
        return g2p.load(), g2p.recipe().job(max(seconds, 240.0), 0)
    recipe = inflection.recipe(task.partition(":")[2], data_dir)
    return recipe.load(), recipe.job(seconds, 0)


def measure(name: str, task: str, seconds: float, data_dir: Path | None) -> dict[str, Any]:
    """Train a candidate and return its error rates in percent."""
    torch.set_num_threads(1)
    parts, settings = parts_of(task, seconds, data_dir)
    kept, held = parts.train.split(held_out(task), seed=7)
    assert isinstance(held, Pairs)
    of_model, of_training = candidates(task)[name]
    settings = replace(
        settings,
        model={**settings.model, **of_model},
        train=replace(
            settings.train,
            **{"time_budget": seconds, "clock": "cpu", "looks": 2, **of_training},
        ),
    )
    with tempfile.TemporaryDirectory() as out:
        result = train_pairs(kept, parts.dev, settings, directory=Path(out) / "model")[1]
        rates = rates_of(Transducer.load(Path(out) / "model"), held)
    return {
        "name": name,
        "steps": result.steps,
        "wrong": round(100 * rates.exact_match_error, 2),
        "symbols": round(100 * rates.symbol_error_rate, 3),
    }


def candidates(task: str) -> Candidates:
    """Return what is compared for one task."""
    return G2P if task == "g2p" else INFLECTION


def held_out(task: str) -> int:
    """Return how many sources are cut from the training part."""
    return 10_000 if task == "g2p" else 1500


def main() -> None:
    """Run the candidates and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", help="g2p, or inflection:LANGUAGE")
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of the candidates")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.task != "g2p" and asked.task.partition(":")[2] not in inflection.LANGUAGES:
        languages = ", ".join(inflection.LANGUAGES)
        parser.error(f"no such task: {asked.task}; there are g2p, and inflection: {languages}")
    known = candidates(asked.task)
    names = asked.names or list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no such candidate: {unknown[0]!r}; there are {', '.join(known)}")
    found = []
    same = ([each] * len(names) for each in (asked.task, asked.seconds, asked.data_dir))
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(measure, names, *same):
            print(
                f"{row['name']:28} {row['steps']:>7} steps  wrong {row['wrong']:.2f} %",
                flush=True,
            )
            found.append(row)
    if asked.json:
        report = {
            "task": asked.task,
            "seconds": asked.seconds,
            "held_out": held_out(asked.task),
            "rows": found,
        }
        asked.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
