"""Short French sentences to English, on a small real corpus that ships with regard.

45,423 pairs of the Tatoeba project to train on, about a thousand French sentences each to
choose by and to test on; at most nine tokens, lower case, words and punctuation separated by
spaces. It is a lesson in attention over words, not a translator: words that it was not trained
on it cannot read. The selection is regard's own, so there is no published result on it.
"""

from regard.seq2seq.job import JobSettings
from regard.seq2seq.recipes.recipe import Measure, Recipe
from regard.seq2seq.recipes.shipped import shipped
from regard.seq2seq.settings import TrainConfig

__all__ = ["recipe"]


def recipe() -> Recipe:
    """Return the recipe."""
    return Recipe(
        name="translate",
        variant="fra-eng",
        title="Short French sentences to English, Tatoeba",
        load=lambda: shipped("tatoeba-fra-eng"),
        job=_job,
        seconds=600.0,
        beam=5,
        measures=(
            Measure("word error rate", "symbol_error_rate"),
            Measure("exact", "exact_match_error", right=True),
        ),
    )


def _job(seconds: float, seed: int) -> JobSettings:
    return JobSettings(
        source_symbols="spaces",
        target_symbols="spaces",
        model={
            "attention": "bahdanau",
            "d_in": 128,
            "d_hidden": 128,
            "d_s": 256,
            "d_attn": 128,
            "d_readout": 128,
            "dropout": 0.3,
        },
        batch_tokens=1500,
        train=TrainConfig(
            steps=200_000,
            time_budget=seconds,
            learning_rate=3e-3,
            decay="linear",
            final_share=0.0,
            seed=seed,
        ),
    )
