"""Letters to sounds: English words to phonemes, on the lexicon that ships with regard.

The lexicon is CMUdict in the split that published results use: 106,837 words (113,438
pronunciations) to train on and 12,000 words to test on, 27 letters, 39 phonemes without stress
[1]_ [2]_. A word with several pronunciations is scored against the nearest.

References
----------
.. [1] Yao and Zweig, "Sequence-to-Sequence Neural Net Models for Grapheme-to-Phoneme
   Conversion", Interspeech 2015. arXiv:1506.00196
.. [2] Toshniwal and Livescu, "Jointly Learning to Align and Convert Graphemes to Phonemes with
   Neural Attention Models", SLT 2016. arXiv:1610.06540
"""

from importlib.resources import as_file, files

from regard.errors import InputError, explain
from regard.seq2seq.job import JobSettings
from regard.seq2seq.pairs import Pairs, read_pairs
from regard.seq2seq.recipes.recipe import Measure, Parts, Published, Recipe
from regard.seq2seq.settings import TrainConfig

__all__ = ["PRESETS", "Lexicon", "load", "recipe", "settings"]

PRESETS = ("minute", "quick")
_DEV_WORDS = 2000


Lexicon = Parts
"""The parts of the lexicon. The dev part is 2,000 words cut from the training part, always the
same ones."""

# Seen in the README of github.com/lifefeel/Grapheme-to-Phoneme, which gathers results on this
# split; the last one is of five models, chosen and answering together.
_GATHERED = "as gathered by lifefeel/Grapheme-to-Phoneme"
_PUBLISHED = (
    Published(
        "multitask BiLSTM with attention",
        {"WER": 24.88, "PER": 5.76},
        f"Milde et al. 2017, {_GATHERED}",
    ),
    Published(
        "BiLSTM over aligned letters",
        {"WER": 23.55, "PER": 5.45},
        f"Yao and Zweig 2015, {_GATHERED}",
    ),
    Published(
        "attention, one model",
        {"WER": 21.69, "PER": 5.04},
        "Toshniwal and Livescu 2016",
        note="not checked against the paper itself",
    ),
    Published(
        "attention, five models together",
        {"WER": 20.24, "PER": 4.69},
        f"Toshniwal and Livescu 2016, {_GATHERED}",
    ),
)


def recipe() -> Recipe:
    """Return the recipe for a time budget; :func:`settings` has the presets of fixed length."""
    return Recipe(
        name="g2p",
        variant="eng",
        title="English letters to sounds, CMUdict in the classic split",
        load=load,
        job=_job,
        seconds=600.0,
        members=2,
        beam=5,
        measures=(Measure("WER", "exact_match_error"), Measure("PER", "symbol_error_rate")),
        published=_PUBLISHED,
        has_presets=True,
    )


def _job(seconds: float, seed: int) -> JobSettings:
    # Chosen on words held out of the training part (benchmarks/recipe_settings.py). In a minute
    # a small model that sees the data more often is ahead, in four a larger one. Dropout costs
    # more than it brings while a word is seen some ten times, and so does a higher rate.
    is_short = seconds < 180
    hidden = 96 if is_short else 128
    return JobSettings(
        source_symbols="chars",
        target_symbols="spaces",
        model={
            "attention": "bahdanau",
            "d_in": 64 if is_short else 96,
            "d_hidden": hidden,
            "d_s": 2 * hidden,
            "layers": 1 if is_short else 2,
            "d_attn": 128,
            "dropout": 0.0,
        },
        batch_tokens=1000,
        train=TrainConfig(
            steps=1_000_000,
            time_budget=seconds,
            learning_rate=5e-3 if is_short else 2e-3,
            decay="linear",
            final_share=0.0,
            label_smoothing=0.1,
            seed=seed,
        ),
    )


def load() -> Lexicon:
    """Read the lexicon that ships with the package."""
    parts = []
    for part in ("train", "test"):
        data = files("regard.seq2seq.recipes") / "data" / f"cmudict-classic.{part}.tsv.gz"
        with as_file(data) as path:
            pairs = read_pairs(path)
        parts.append(Pairs(pairs.items, f"cmudict-classic.{part}", pairs.sha256))
    kept, dev = parts[0].split(_DEV_WORDS, seed=0)
    return Lexicon(kept, dev, parts[1])


def settings(
    preset: str = "minute",
    *,
    attention: str = "bahdanau",
    steps: int | None = None,
    seed: int = 0,
) -> JobSettings:
    """Return settings that are known to work.

    Parameters
    ----------
    preset : {"minute", "quick"}
        ``minute``: about one CPU minute on one core. ``quick``: about eight CPU seconds, to see
        that it works.
    attention : str
        As in :class:`~regard.seq2seq.model.ModelConfig`.
    steps : int, optional
        Instead of the preset's number.
    seed : int

    Raises
    ------
    InputError
        ``preset`` is unknown.
    """
    if preset not in PRESETS:
        raise InputError(
            explain(
                "g2p.settings(): `preset` is unknown",
                expected=" or ".join(PRESETS),
                got=repr(preset),
            )
        )
    quick = preset == "quick"
    steps = steps if steps is not None else (300 if quick else 2400)
    return JobSettings(
        source_symbols="chars",
        target_symbols="spaces",
        model={
            "attention": attention,
            "d_in": 64,
            "d_hidden": 96,
            "d_s": 192 if attention == "dot" else 160,
            "d_attn": 128,
            # A minute is under two passes over the data: nothing is learnt by heart.
            "dropout": 0.0,
        },
        batch_tokens=1000,
        train=TrainConfig(
            steps=steps,
            learning_rate=8e-3 if quick else 5e-3,
            decay="linear",
            final_share=0.0,
            warm_up=min(50, steps),
            evaluate_every=0 if quick else max(1, steps // 4),
            seed=seed,
        ),
    )
