"""Training an aligner into a directory, from which it goes on after any stop."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.aligner.bitext import Bitext, Words, refuse_long
from regard.aligner.corpus import SentencePairs
from regard.aligner.model import Aligner
from regard.aligner.settings import AlignerSettings
from regard.aligner.store import (
    FILES,
    About,
    Learned,
    is_aligner,
    load_about,
    load_learned,
    save,
)
from regard.aligner.trained import TrainedAligner
from regard.errors import InputError, explain
from regard.seq2seq.claim import claim_directory
from regard.seq2seq.clock import Clock
from regard.seq2seq.events import InterruptedRun
from regard.seq2seq.interrupt import Interruption
from regard.seq2seq.only_writer import only_writer
from regard.version import __version__

__all__ = ["Passed", "train_aligner"]

_ALONE = 1 / 3
"""Share of a run in which words choose for themselves: a chain that begins on a lexicon that
knows nothing learns little else than to go straight on."""


@dataclass(frozen=True)
class Passed:
    """How far a run is.

    Attributes
    ----------
    passes : int
        Passes over the corpus that are done.
    share : float
        Of the run, 0 to 1.
    seconds : float
    likelihood : float or None
        Of the last whole pass, in nats a word; None before.
    whole : bool
        Whether a pass has just been finished.
    """

    passes: int
    share: float
    seconds: float
    likelihood: float | None
    whole: bool


def train_aligner(
    pairs: SentencePairs,
    settings: AlignerSettings,
    *,
    directory: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    made_by: Mapping[str, Any] | None = None,
    on_progress: Callable[[Passed], None] = lambda passed: None,
    clock: Clock | None = None,
) -> TrainedAligner:
    """Train an aligner on sentence pairs.

    Parameters
    ----------
    pairs : SentencePairs
        All text there is, the text to be aligned included: no gold links are looked at.
    settings : AlignerSettings
    directory : path, optional
        Where to keep it; what was learned is written after every pass.
    force, resume : bool
        Write over a run in the directory, or go on with it.
    made_by : mapping, optional
        What to record beside the corpus and the versions.
    on_progress : callable
        Is called after each batch.
    clock : Clock, optional
        What a time budget counts; seconds on the wall by default.

    Returns
    -------
    aligner : TrainedAligner

    Raises
    ------
    InputError
        No pair has words on both sides, a sentence is longer than
        :data:`~regard.aligner.bitext.LONGEST`, the directory is refused, or a run is taken up
        with another corpus or other settings.
    InterruptedRun
        The process was asked to stop; what was learned in whole passes is kept.

    References
    ----------
    .. [1] Deng et al., "Latent Alignment and Variational Attention", NeurIPS 2018.
       arXiv:1807.03756 (section 3: the exact likelihood)
    .. [2] Liang, Taskar and Klein, "Alignment by Agreement", HLT-NAACL 2006.
    """
    clock = clock or Clock()
    refuse_long(pairs)
    place = None if directory is None else Path(directory)
    if place is not None:
        names, ours = (*FILES,), is_aligner
        claim_directory(place, names=names, is_ours=ours, force=force, resume=resume)
    with nullcontext() if place is None else only_writer(place):
        run = _taken_up(place, pairs, settings) if place is not None and resume else None
        words = Words(), Words()
        aligner = Aligner(Bitext(pairs, *words), settings)
        if not aligner.bitext.batches:
            raise _without_words(pairs)
        log: list[tuple[float, float]] = []
        if run is None:
            sides = [side.words for side in words]
            about = About(settings, _corpus(pairs), _made_by(made_by), *sides)
            if place is not None:
                save(place, about)
        else:
            about, before = run
            if before is not None:
                if before.done:
                    return TrainedAligner(about, before)
                aligner.load(before.tensors)
                clock.go_on({"elapsed": before.seconds, "spent": {}})
                log = list(before.log)
        with Interruption() as stop:
            learned = _passes(aligner, about, place, log, clock, on_progress, stop)
        return TrainedAligner(about, learned)


def _passes(  # noqa: PLR0917 - what a run is made of
    aligner: Aligner,
    about: About,
    place: Path | None,
    log: list[tuple[float, float]],
    clock: Clock,
    on_progress: Callable[[Passed], None],
    stop: Interruption,
) -> Learned:
    settings = aligner.settings
    budget = settings.time_budget
    while True:
        began = clock.elapsed()
        epoch = len(log)
        chain = epoch > 0 and (began / budget if budget else epoch / settings.epochs) >= _ALONE

        def between(share: float, epoch: int = epoch) -> None:
            now = clock.elapsed()
            done = now / budget if budget else (epoch + share) / settings.epochs
            last = log[-1][1] if log else None
            on_progress(Passed(epoch, min(1.0, done), now, last, whole=False))
            if stop.asked is not None:
                raise InterruptedRun(epoch, stop.asked)

        likelihood = aligner.learn(epoch, chain=chain, between=between)
        now = clock.elapsed()
        log.append((now, likelihood))
        # One more pass should fit, and a chain needs one.
        fits = now + (now - began) <= budget or not chain
        done = not fits if budget else len(log) >= settings.epochs
        learned = Learned(aligner.state(), chain, now, done, list(log))
        if place is not None:
            save(place, about, learned)
        share = 1.0 if done else now / budget if budget else len(log) / settings.epochs
        on_progress(Passed(len(log), min(1.0, share), now, likelihood, whole=True))
        if done:
            return learned


def _taken_up(
    place: Path, pairs: SentencePairs, settings: AlignerSettings
) -> tuple[About, Learned | None] | None:
    """Return the run in a directory, None where there is none."""
    if not is_aligner(place):
        return None
    about = load_about(place)
    for what, mine, theirs in (
        ("corpus", pairs.sha256, about.corpus.get("sha256")),
        ("settings", settings.to_json(), about.settings.to_json()),
    ):
        if mine != theirs:
            raise InputError(
                explain(
                    f"{place}: the run in it has other {what}"
                    if what == "settings"
                    else f"{place}: the run in it has another {what}",
                    expected=str(theirs)[:200],
                    got=str(mine)[:200],
                    help="go on with what it began with, or start again with --force",
                )
            )
    return about, load_learned(place, about)


def _corpus(pairs: SentencePairs) -> dict[str, Any]:
    return {"name": pairs.name, "pairs": len(pairs), "sha256": pairs.sha256}


def _made_by(given: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**(given or {}), "regard": __version__, "torch": torch.__version__}


def _without_words(pairs: SentencePairs) -> InputError:
    return InputError(
        explain(
            f"{pairs.name}: no sentence pair has words on both sides",
            expected="sentences, words separated by spaces",
            got=f"{len(pairs)} pairs with an empty side",
        )
    )
