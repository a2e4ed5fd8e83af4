"""Letters to sounds in fifteen languages: SIGMORPHON 2020, task 1, on the user's copy of it.

3,600 words of each language to train on, 450 to choose by and 450 to test on: one test word is
0.22 points. The published neural baseline is a bidirectional LSTM with Luong's attention, tuned
for each language, decoded with a beam of 5 [1]_.

References
----------
.. [1] Gorman et al., "The SIGMORPHON 2020 Shared Task on Multilingual Grapheme-to-Phoneme
   Conversion", SIGMORPHON 2020, tables 2 and 4.
"""

from functools import partial
from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.job import JobSettings
from regard.seq2seq.recipes.files import located
from regard.seq2seq.recipes.recipe import Measure, Parts, Published, Recipe, read_parts
from regard.seq2seq.recipes.small import small_settings

__all__ = ["LANGUAGES", "MACRO", "recipe"]

HOME = "https://github.com/sigmorphon/2020 (task1/data)"
_SOURCE = "Gorman et al. 2020, tables 2 and 4"
_TUNED = "tuned for each language on its dev words"

# Of each language: its name; WER and PER of the pair n-gram model, of the LSTM with Luong's
# attention and of the transformer; the WER of the best entry.
_TABLE: dict[str, tuple[str, tuple[float, ...]]] = {
    "ady": ("Adyghe", (32.00, 7.56, 28.00, 6.53, 28.44, 6.49, 24.67)),
    "arm": ("Armenian", (18.00, 3.90, 14.67, 3.49, 14.22, 3.29, 12.22)),
    "bul": ("Bulgarian", (41.33, 9.05, 31.11, 5.94, 34.00, 7.89, 22.22)),
    "dut": ("Dutch", (23.78, 3.97, 16.44, 2.94, 15.78, 2.89, 13.56)),
    "fre": ("French", (13.56, 3.12, 6.22, 1.32, 6.89, 1.72, 5.11)),
    "geo": ("Georgian", (37.78, 6.48, 26.44, 5.14, 28.00, 5.43, 24.89)),
    "gre": ("Greek", (21.78, 4.05, 18.89, 3.30, 18.89, 3.06, 14.44)),
    "hin": ("Hindi", (12.67, 2.82, 6.67, 1.47, 9.56, 2.40, 5.11)),
    "hun": ("Hungarian", (6.67, 1.51, 5.33, 1.18, 5.33, 1.28, 4.00)),
    "ice": ("Icelandic", (17.56, 3.62, 10.00, 2.36, 10.22, 2.21, 9.11)),
    "jpn": ("Japanese", (9.56, 2.07, 7.56, 1.79, 7.33, 1.86, 4.89)),
    "kor": ("Korean", (52.22, 15.88, 46.89, 16.78, 43.78, 17.50, 24.00)),
    "lit": ("Lithuanian", (23.11, 4.43, 19.11, 3.55, 20.67, 3.65, 18.67)),
    "rum": ("Romanian", (11.56, 3.55, 10.67, 2.53, 12.00, 2.62, 9.78)),
    "vie": ("Vietnamese", (8.44, 1.79, 4.67, 1.52, 7.56, 2.27, 0.89)),
}

LANGUAGES = tuple(_TABLE)

MACRO = Published(
    "LSTM with Luong's attention", {"WER": 16.84, "PER": 3.99}, "Gorman et al. 2020, table 2"
)
"""The mean over the fifteen languages."""

# A Korean letter is a syllable of up to three sounds' signs. Taken apart, the signs are seen
# often; most entries of 2020 did so, the baselines did not.
_TAKEN_APART = frozenset({"kor"})


def recipe(language: str, data_dir: str | Path | None) -> Recipe:
    """Return the recipe of one language.

    Parameters
    ----------
    language : str
        One of :data:`LANGUAGES`.
    data_dir : path or None
        Where ``fre_train.tsv`` and so on are.

    Raises
    ------
    InputError
        There is no such language. That files are missing is said when they are loaded.
    """
    if language not in _TABLE:
        raise InputError(
            explain(
                f"the recipe `g2p` has no language {language!r}",
                expected=", ".join(("eng", *LANGUAGES)),
                got=repr(language),
            )
        )
    name, row = _TABLE[language]
    title = f"{name} letters to sounds, SIGMORPHON 2020 task 1"
    form = "NFD" if language in _TAKEN_APART else "NFC"
    return Recipe(
        name="g2p",
        variant=language,
        title=title,
        load=partial(_load, language, data_dir, title, form),
        job=partial(_job, form),
        seconds=300.0,
        members=2,
        beam=5,
        measures=(Measure("WER", "exact_match_error"), Measure("PER", "symbol_error_rate")),
        published=(
            Published("pair n-gram model", {"WER": row[0], "PER": row[1]}, _SOURCE),
            Published("transformer", {"WER": row[4], "PER": row[5]}, _SOURCE, _TUNED),
            Published(
                "LSTM with Luong's attention", {"WER": row[2], "PER": row[3]}, _SOURCE, _TUNED
            ),
            Published("best entry", {"WER": row[6]}, _SOURCE),
        ),
    )


def _load(language: str, data_dir: str | Path | None, title: str, form: str) -> Parts:
    names = [f"{language}_{part}.tsv" for part in Parts._fields]
    with located(data_dir, names, what=title, home=HOME, hint="2020") as paths:
        return read_parts(paths, names, normal_form=form)


def _job(form: str, seconds: float, seed: int) -> JobSettings:
    return small_settings(
        seconds, seed, target_symbols="spaces", normal_form=form, metric="exact_match"
    )
