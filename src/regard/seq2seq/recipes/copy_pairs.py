"""Copying as pairs of texts: the bottleneck experiment as a model that one can ask.

A source is a random word over sixteen letters and the target is the word itself. It is the
smallest task that shows what attention is for, and a check that an installation trains at all.
The experiment of accuracy against length, for each kind of attention, is
:mod:`regard.seq2seq.recipes.copying`.
"""

import random

from regard.seq2seq.job import JobSettings
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.recipes.recipe import Measure, Parts, Recipe
from regard.seq2seq.settings import TrainConfig

__all__ = ["LETTERS", "LONGEST", "draw", "recipe"]

LETTERS = "abcdefghijklmnop"
LONGEST = 20
_COUNTS = {"train": 20_000, "dev": 500, "test": 1000}


def recipe() -> Recipe:
    """Return the recipe."""
    return Recipe(
        name="copy",
        variant=f"1-{LONGEST}",
        title=f"Copying random words of 1 to {LONGEST} letters",
        load=draw,
        job=_job,
        seconds=60.0,
        measures=(
            Measure("accuracy", "exact_match_error", right=True),
            Measure("token accuracy", "token_accuracy"),
        ),
    )


def draw() -> Parts:
    """Draw the words; always the same ones, and none of them in two parts."""
    seen: set[str] = set()
    parts = []
    for part, count in _COUNTS.items():
        drawn = random.Random(f"copy {part}")
        words: list[str] = []
        # There are few short words: one that was drawn before is drawn anew.
        while len(words) < count:
            length = drawn.randint(1, LONGEST)
            word = "".join(drawn.choices(LETTERS, k=length))
            if word not in seen:
                seen.add(word)
                words.append(word)
        parts.append(Pairs(tuple((word, word) for word in words), f"copy.{part}"))
    return Parts(*parts)


def _job(seconds: float, seed: int) -> JobSettings:
    return JobSettings(
        model={
            "attention": "bahdanau",
            "d_in": 32,
            "d_hidden": 64,
            "d_s": 128,
            "d_attn": 64,
            "dropout": 0.0,
        },
        batch_tokens=1500,
        train=TrainConfig(
            steps=200_000,
            time_budget=seconds,
            learning_rate=1e-2,
            optimizer="adam",
            betas=(0.9, 0.99),
            final_share=0.02,
            clip=0.3,
            seed=seed,
        ),
    )
