"""A made-up demo.json: figures of a believable shape, none of them measured."""

import copy as copying

import numpy as np
import pytest

MEANS = {
    "none": [0.951, 0.602, 0.269, 0.131, 0.086, 0.067, 0.055],
    "bahdanau": [1.0, 0.999, 0.998, 0.995, 0.955, 0.54, 0.30],
    "dot": [1.0, 0.998, 0.995, 0.989, 0.961, 0.74, 0.48],
    "general": [0.999, 0.996, 0.986, 0.966, 0.890, 0.62, 0.35],
}
LENGTHS = [5, 10, 20, 40, 80, 120, 160]
WORDS = [
    ("phoenix", "F IY N IH K S", ["F IY N IH K S"]),
    ("knight", "N AY T", ["N AY T"]),
    ("thorough", "TH ER OW", ["TH ER OW", "TH AO R OW"]),
    ("colonel", "K AH L AH N AH L", ["K ER N AH L"]),
]


def soft_alignment(steps: int, states: int, seed: int, width: float = 0.7) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    line = (np.arange(steps) + 0.5) * states / steps
    scores = -(((np.arange(states) + 0.5 - line[:, None]) / width) ** 2)
    weights = np.exp(scores + 0.5 * rng.normal(size=scores.shape))
    return (weights / weights.sum(axis=1, keepdims=True)).round(4).tolist()


def make_results(models=tuple(MEANS), seeds=(0, 1, 2), lengths=tuple(LENGTHS)) -> dict:
    rng = np.random.default_rng(7)

    def cells(means, power):
        table = {}
        for length, mean in zip(LENGTHS, means, strict=True):
            spread = 0.2 * mean * (1 - mean)
            figures = (
                np.clip(mean + spread * rng.uniform(-1, 1, size=len(seeds)), 0, 1) ** power
            )
            if length in lengths:
                table[str(length)] = figures.round(5).tolist()
        return table

    symbols = [f"s{number}" for number in np.random.default_rng(3).integers(1, 17, size=20)]
    return {
        "copy": {
            "chance": 0.0625,
            "trained_lengths": [1, 80],
            "lengths": list(lengths),
            "steps": 1000,
            "seeds": list(seeds),
            "models": {
                model: {
                    "token_accuracy": cells(MEANS[model], 1),
                    "exact_match": cells(MEANS[model], 5),
                    "cpu_seconds": [31.0 + seed for seed in seeds],
                }
                for model in models
            },
        },
        "g2p": {
            "per": 0.1103,
            "wer": 0.4412,
            "n_test": 12000,
            "attention": "bahdanau",
            "seed": 0,
            "examples": [
                {
                    "source": list(word.upper()),
                    "target": predicted.split(),
                    "references": [listed.split() for listed in references],
                    "weights": soft_alignment(len(predicted.split()), len(word), number),
                }
                for number, (word, predicted, references) in enumerate(WORDS)
            ],
        },
        "alignments": {
            "copy": {
                model: {
                    "length": 20,
                    "source": symbols,
                    "target": [*symbols, "</s>"],
                    "weights": soft_alignment(21, 20, number, width=0.4 + 0.3 * number),
                }
                for number, model in enumerate(models)
                if model != "none"
            }
        },
        "made_by": {
            "command": "regard demo --seed 0",
            "version": "0.1.0",
            "seed": 0,
            "torch": "2.13.0",
            "started": "2026-11-30T05:59:00Z",
            "wall_seconds": 301.2,
            "threads": 1,
        },
    }


@pytest.fixture
def results():
    """The factory itself, so that a test can ask for fewer models, seeds or lengths."""
    return lambda **wanted: copying.deepcopy(make_results(**wanted))
