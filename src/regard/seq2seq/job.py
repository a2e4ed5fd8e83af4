"""A whole training job: from pairs of texts to a model directory that says what made it."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from regard.errors import InputError, explain
from regard.seq2seq.batch import PairBatches
from regard.seq2seq.board import Board
from regard.seq2seq.checkpoint import Description, load_description
from regard.seq2seq.clock import Clock
from regard.seq2seq.device import usable_device
from regard.seq2seq.held_out import HeldOut
from regard.seq2seq.keeper import Keeper
from regard.seq2seq.log import CsvLog
from regard.seq2seq.memory import check_memory
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.same_run import same_run
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.subwords import SIZE
from regard.seq2seq.train import SAVE_EVERY, Progress, Trainer, TrainResult, new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import Vocab
from regard.seq2seq.world import ALONE, World
from regard.version import __version__

__all__ = ["JobSettings", "describe", "train_pairs"]

_LOOKED_AT = 2000
"""Sources that a look at the held-out data decodes; the last word is on all of them."""


@dataclass(frozen=True)
class JobSettings:
    """Everything but the data that decides what a job comes to.

    Parameters
    ----------
    source_symbols, target_symbols : {"chars", "spaces", "subwords"}
        How each side is cut into symbols.
    vocab_size : int
        Symbols of a side at most, for subwords.
    normal_form : {"NFC", "NFD", "NFKC", "none"}
        Unicode form that text is brought to.
    model : mapping
        Entries of :class:`~regard.seq2seq.model.ModelConfig`, the vocabularies' sizes left out.
    batch_tokens : int
        As :class:`~regard.seq2seq.batch.PairBatches` takes it.
    metric : str
        One of :data:`~regard.seq2seq.held_out.METRICS`: what the best weights are chosen by.
    train : TrainConfig
    """

    source_symbols: str = "chars"
    target_symbols: str = "chars"
    vocab_size: int = SIZE
    normal_form: str = "NFC"
    model: Mapping[str, Any] = field(default_factory=dict)
    batch_tokens: int = 1000
    metric: str = "symbol_error"
    train: TrainConfig = field(default_factory=TrainConfig)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {
            "source_symbols": self.source_symbols,
            "target_symbols": self.target_symbols,
            "vocab_size": self.vocab_size,
            "normal_form": self.normal_form,
            "model": dict(sorted(self.model.items())),
            "batch_tokens": self.batch_tokens,
            "metric": self.metric,
            "train": self.train.to_json(),
        }


def describe(
    pairs: Pairs, settings: JobSettings, *, made_by: Mapping[str, Any] | None = None
) -> Description:
    """Work out the vocabularies and the model's shape from the training data.

    Parameters
    ----------
    pairs : Pairs
        The training data, held-out pairs taken out.
    settings : JobSettings
    made_by : mapping, optional
        What the caller wants recorded: command, data, versions.

    Raises
    ------
    InputError
        A setting is refused.
    """
    common: dict[str, Any] = {
        "normal_form": settings.normal_form,
        "size": settings.vocab_size,
    }
    source = Vocab.of(
        (text for text, _ in pairs.items),
        kind=settings.source_symbols,
        features=pairs.features,
        **common,
    )
    target = Vocab.of((text for _, text in pairs.items), kind=settings.target_symbols, **common)
    try:
        model = ModelConfig(len(source), len(target), **settings.model)
    except TypeError as error:
        raise InputError(
            explain(
                "JobSettings(): `model` has an entry that ModelConfig has not",
                expected="entries of ModelConfig",
                got=str(error),
            )
        ) from error
    return Description(
        model=model,
        source=source,
        target=target,
        longest_source=max(len(source.split(text)) for text, _ in pairs.items),
        longest_target=max(len(target.split(text)) for _, text in pairs.items),
        made_by=_made_by(pairs, settings, made_by or {}),
    )


def train_pairs(
    pairs: Pairs,
    held_out: Pairs,
    settings: JobSettings,
    *,
    directory: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    made_by: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    save_every: float = SAVE_EVERY,
    tensorboard: str | Path | None = None,
    device: str = "cpu",
    world: World = ALONE,
    clock: Clock | None = None,
) -> tuple[Transducer, TrainResult]:
    """Train a model on pairs.

    Parameters
    ----------
    pairs, held_out : Pairs
        To train on, and to choose the best weights by: those with the lowest error rate.
    settings : JobSettings
    directory : path, optional
        Where to save; None saves nothing. It is claimed when all settings have been checked
        and before training begins; a run that fails before its first save leaves nothing.
    force, resume : bool
        Write over the run in the directory, or go on with it: from step 0 if it was stopped
        before its first save.
    made_by : mapping, optional
        Recorded in ``config.json`` beside version, settings and the data's sha256.
    on_progress : callable, optional
        Gets a :class:`~regard.seq2seq.train.Progress` after every step.
    save_every : float
        Seconds between two saves at most, give or take a step and a look.
    tensorboard : path, optional
        Directory for TensorBoard's files.
    device : str
        Where torch computes.
    world : World
        The processes of the run; only the first one writes and reports.
    clock : Clock, optional
        What a time budget is measured by; by default it starts now.

    Returns
    -------
    transducer, result : Transducer, TrainResult
        The model is on the CPU.

    Raises
    ------
    InputError
        The directory is refused, or belongs to a run with other data or settings, or the model
        is too large for this machine's memory.
    DivergedError, InterruptedRun
        As :meth:`~regard.seq2seq.train.Trainer.run` does.
    """
    clock = clock or Clock(settings.train.clock)
    description = describe(pairs, settings, made_by=made_by)
    where = None if directory is None else Path(directory)
    keeper = None if where is None else Keeper(where, description)
    if keeper is not None and resume and not world.from_first(keeper.was_begun):
        resume, force = False, True
    if where is not None and resume:
        saved, wanted = where, description
        description = world.from_first(lambda: same_run(load_description(saved), wanted, saved))
        keeper = Keeper(where, description)
    place = usable_device(device)
    training = settings.train
    check_memory(description.model, copies=max(1, training.average) + bool(training.ema))
    evaluate = HeldOut(description, _first(held_out, _LOOKED_AT), settings.metric)
    model = new_model(description.model, seed=training.seed)
    batches = _batches(pairs, description, settings)
    length = batches.epoch_length(0)
    with ExitStack() as closing:
        shown = [] if on_progress is None else [on_progress]
        trainer = Trainer(
            model.to(place),
            batches,
            training,
            evaluate=evaluate,
            on_progress=_to_all(shown),
            save=keeper.save if keeper is not None else None,
            save_every=save_every,
            world=world,
            clock=clock,
        )
        if keeper is not None:
            world.from_first(lambda: keeper.hold(closing))
        if keeper is not None and resume:
            state = world.from_first(keeper.state)
            if state is not None:
                trainer.load_state(state)
        if keeper is not None:
            # Only now, when every setting has proved usable, is anything written.
            world.from_first(lambda: keeper.claim(trainer, force=force, resume=resume))
        try:
            if keeper is not None and world.is_first:
                log = CsvLog(keeper.log, scores=evaluate.names, step=trainer.step)
                shown.append(closing.enter_context(contextlib.closing(log)).show)
            if tensorboard is not None and world.is_first:
                board = Board(Path(tensorboard), step=trainer.step)
                shown.append(closing.enter_context(contextlib.closing(board)).show)
            result = trainer.run()
            result = replace(result, passes=result.steps * training.accumulate / length)
        except Exception:
            if keeper is not None and world.is_first:
                closing.close()
                keeper.take_back()
            raise
    return Transducer(trainer.model.cpu(), description), result


def _to_all(shown: Sequence[Callable[[Progress], None]]) -> Callable[[Progress], None]:
    """Pass events on to whoever is in the list by then."""

    def show(event: Progress) -> None:
        for one in shown:
            one(event)

    return show


def _batches(pairs: Pairs, description: Description, settings: JobSettings) -> PairBatches:
    source, target = description.source, description.target
    return PairBatches(
        [(source.encode(text), target.encode(answer)) for text, answer in pairs.items],
        batch_tokens=settings.batch_tokens,
        seed=settings.train.seed,
    )


def _made_by(pairs: Pairs, settings: JobSettings, more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "regard": __version__,
        "torch": str(torch.__version__),
        "seed": settings.train.seed,
        "settings": settings.to_json(),
        "train": {"name": pairs.name, "pairs": len(pairs), "sha256": pairs.sha256},
        **more,
    }


def _first(pairs: Pairs, count: int) -> Pairs:
    chosen = set(list(pairs.references())[:count])
    return Pairs(tuple(item for item in pairs.items if item[0] in chosen), pairs.name)
