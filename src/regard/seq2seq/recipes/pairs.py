"""The recipe for a user's own pairs: settings from the size of the data."""

import math
from typing import Any

from regard.errors import InputError, explain
from regard.seq2seq.job import JobSettings
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.settings import TrainConfig

__all__ = ["FEW_PASSES", "HELD_OUT", "held_out_count", "settings_for"]

HELD_OUT = 2000
"""Sources to hold out at most, when no file of them is given."""

FEW_PASSES = 15
"""Passes over much data below which dropout costs more than it brings
(``benchmarks/recipe_settings.py``)."""

_EPOCHS = 40
_STEPS = (600, 4000)  # what the epochs come to is kept between these
_SMALL = 10_000  # pairs; below that a model learns by heart and wants more dropout
_LARGE = 50_000  # pairs; from that on minutes are few passes, as for the recipe of CMUdict
_PACE = 25_000  # symbols a second of one core, to guess how often a budget reads the data
_MINUTES = 180.0  # seconds, from which on large data repay a larger model
_LOOKS = 8


def held_out_count(pairs: Pairs) -> int:
    """Return how many sources to hold out: a tenth, at most ``HELD_OUT``, at least one."""
    return max(1, min(HELD_OUT, len(pairs.references()) // 10))


def settings_for(
    pairs: Pairs,
    *,
    source_symbols: str = "chars",
    target_symbols: str = "chars",
    attention: str = "bahdanau",
    steps: int | None = None,
    epochs: float | None = None,
    batch_tokens: int = 1000,
    seconds: float | None = None,
    learning_rate: float | None = None,
    dropout: float | None = None,
    d_hidden: int | None = None,
    d_s: int | None = None,
    patience: int = 0,
    seed: int = 0,
    nfc: bool = True,
) -> JobSettings:
    """Choose settings for some pairs; every one can be given instead.

    Parameters
    ----------
    pairs : Pairs
        The training data.
    source_symbols, target_symbols : {"chars", "spaces"}
    attention : str
        As in :class:`~regard.seq2seq.model.ModelConfig`.
    steps, epochs : number, optional
        How long to train; one of them. By default 40 passes over the data, at least 600 and
        at most 4,000 steps.
    seconds : float, optional
        Time that the caller gives the training instead of steps. From three minutes on, 50,000
        pairs and more get the larger model, lower rate and smoothed labels of CMUdict's recipe.
    batch_tokens, patience, seed, nfc
        As in :class:`JobSettings` and its parts.
    learning_rate : float, optional
        By default 5e-3, or 2e-3.
    dropout : float, optional
        By default 0.3 below 10,000 pairs, none for 50,000 and more that are read less than 15
        times, else 0.1.
    d_hidden, d_s : int, optional
        Encoder states of one direction, by default 96, or 128 in two layers; and decoder
        states: five thirds of it, or twice for the larger model and where ``dot`` attention
        needs that.

    Raises
    ------
    InputError
        Both or a wrong number of steps and epochs, or another setting is refused.
    """
    if steps is not None and epochs is not None:
        raise InputError(
            explain(
                "settings_for(): `steps` and `epochs` are both given",
                expected="one of the two",
                got=f"{steps} steps and {epochs} epochs",
            )
        )
    if epochs is not None and not 0 < epochs < math.inf:
        raise InputError(
            explain("settings_for(): `epochs` is refused", expected="above 0", got=repr(epochs))
        )
    per_epoch = _steps_per_epoch(pairs, source_symbols, target_symbols, batch_tokens)
    if steps is None:
        if epochs is not None:
            steps = max(1, math.ceil(epochs * per_epoch))
        else:
            steps = min(max(math.ceil(_EPOCHS * per_epoch), _STEPS[0]), _STEPS[1])
    is_large = len(pairs) >= _LARGE
    done = steps if seconds is None else seconds * _PACE / max(1, batch_tokens)
    if dropout is None:
        is_seldom = is_large and done < FEW_PASSES * per_epoch
        dropout = 0.3 if len(pairs) < _SMALL else 0.0 if is_seldom else 0.1
    # Sizes that somebody chose are theirs; the layer goes with ours.
    is_wide = d_hidden is None and is_large and seconds is not None and seconds >= _MINUTES
    if d_hidden is None:
        d_hidden = 128 if is_wide else 96
    if d_s is None:
        d_s = 2 * d_hidden if attention == "dot" or is_wide else d_hidden * 5 // 3
    if learning_rate is None:
        learning_rate = 2e-3 if is_wide else 5e-3
    model: dict[str, Any] = {
        "attention": attention,
        "d_in": 96 if is_wide else 64,
        **({"layers": 2} if is_wide else {}),
        "d_hidden": d_hidden,
        "d_s": d_s,
        "d_attn": 128,
        "dropout": dropout,
    }
    return JobSettings(
        source_symbols=source_symbols,
        target_symbols=target_symbols,
        normal_form="NFC" if nfc else "none",
        model=model,
        batch_tokens=batch_tokens,
        train=TrainConfig(
            steps=steps,
            learning_rate=learning_rate,
            label_smoothing=0.1 if is_wide else 0.0,
            decay="linear",
            final_share=0.0,
            warm_up=min(50, steps),
            evaluate_every=max(1, steps // _LOOKS),
            patience=patience,
            seed=seed,
        ),
    )


def _steps_per_epoch(
    pairs: Pairs, source_symbols: str, target_symbols: str, batch_tokens: int
) -> float:
    def count(text: str, kind: str) -> int:
        return len(text) if kind == "chars" else len(text.split())

    tokens = sum(
        count(source, source_symbols) + count(target, target_symbols) + 1
        for source, target in pairs.items
    )
    return tokens / max(1, batch_tokens)
