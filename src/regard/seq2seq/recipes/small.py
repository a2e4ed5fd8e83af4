"""Settings that were found to work on some thousands of short words."""

from typing import Any

from regard.seq2seq.job import JobSettings
from regard.seq2seq.settings import TrainConfig

__all__ = ["small_settings"]


def small_settings(
    seconds: float,
    seed: int,
    *,
    batch_tokens: int = 500,
    dropout: float = 0.3,
    label_smoothing: float = 0.1,
    steps: int = 200_000,
    **text: Any,
) -> JobSettings:
    """Return settings for a time budget.

    Parameters
    ----------
    seconds : float
        Of training; `steps` is a bound that it does not come near.
    seed : int
    batch_tokens, dropout, label_smoothing, steps
        As of :class:`~regard.seq2seq.job.JobSettings` and its parts.
    **text
        Entries of :class:`~regard.seq2seq.job.JobSettings` that say how text is cut and what
        the best weights are chosen by.
    """
    return JobSettings(
        model={
            "attention": "bahdanau",
            "d_in": 64,
            "d_hidden": 96,
            "d_s": 192,
            "d_attn": 128,
            "dropout": dropout,
        },
        batch_tokens=batch_tokens,
        train=TrainConfig(
            steps=steps,
            time_budget=seconds,
            learning_rate=5e-3,
            decay="linear",
            final_share=0.0,
            label_smoothing=label_smoothing,
            seed=seed,
        ),
        **text,
    )
