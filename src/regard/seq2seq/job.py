"""A whole training job: from pairs of texts to a model directory that says what made it."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from regard.errors import InputError, explain
from regard.seq2seq.batch import PairBatches
from regard.seq2seq.checkpoint import (
    FILES,
    Description,
    is_run,
    load_description,
    load_training,
    save_description,
    save_training,
    save_weights,
)
from regard.seq2seq.claim import claim_directory
from regard.seq2seq.memory import check_memory
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.train import Progress, Trainer, TrainResult, new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import Vocab
from regard.version import __version__

__all__ = ["JobSettings", "describe", "train_pairs"]

_STATE = "training.safetensors"
_LOOKED_AT = 2000
"""Sources that a look at the held-out data decodes; the last word is on all of them."""


@dataclass(frozen=True)
class JobSettings:
    """Everything but the data that decides what a job comes to.

    Parameters
    ----------
    source_symbols, target_symbols : {"chars", "spaces"}
        How each side is cut into symbols.
    nfc : bool
        Bring text to Unicode normalisation form C.
    model : mapping
        Entries of :class:`~regard.seq2seq.model.ModelConfig`, the vocabularies' sizes left out.
    batch_tokens : int
        As :class:`~regard.seq2seq.batch.PairBatches` takes it.
    train : TrainConfig
    """

    source_symbols: str = "chars"
    target_symbols: str = "chars"
    nfc: bool = True
    model: Mapping[str, Any] = field(default_factory=dict)
    batch_tokens: int = 1000
    train: TrainConfig = field(default_factory=TrainConfig)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {
            "source_symbols": self.source_symbols,
            "target_symbols": self.target_symbols,
            "nfc": self.nfc,
            "model": dict(sorted(self.model.items())),
            "batch_tokens": self.batch_tokens,
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
    source = Vocab.of(
        (text for text, _ in pairs.items), kind=settings.source_symbols, nfc=settings.nfc
    )
    target = Vocab.of(
        (text for _, text in pairs.items), kind=settings.target_symbols, nfc=settings.nfc
    )
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
) -> tuple[Transducer, TrainResult]:
    """Train a model on pairs.

    Parameters
    ----------
    pairs, held_out : Pairs
        To train on, and to choose the best weights by: those with the lowest symbol error rate.
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

    Returns
    -------
    transducer, result : Transducer, TrainResult

    Raises
    ------
    InputError
        The directory is refused, or belongs to a run with other data or settings, or the model
        is too large for this machine's memory.
    DivergedError, InterruptedRun
        As :meth:`~regard.seq2seq.train.Trainer.run` does.
    """
    description = describe(pairs, settings, made_by=made_by)
    where = None if directory is None else Path(directory)
    if where is not None and resume:
        description = _same_run(load_description(where), description, where)
    source, target = description.source, description.target
    batches = PairBatches(
        [(source.encode(text), target.encode(answer)) for text, answer in pairs.items],
        batch_tokens=settings.batch_tokens,
        seed=settings.train.seed,
    )
    looked_at = _first(held_out, _LOOKED_AT)
    saved = False

    def evaluate(model: Seq2Seq) -> float:
        return Transducer(model, description).error_rates(looked_at).symbol_error_rate

    def save(trainer: Trainer) -> None:
        nonlocal saved
        assert where is not None  # else it is not passed on
        save_weights(where, description, trainer.best_weights())
        save_training(where, trainer.state())
        saved = True

    check_memory(description.model)
    trainer = Trainer(
        new_model(description.model, seed=settings.train.seed),
        batches,
        settings.train,
        evaluate=evaluate,
        on_progress=on_progress,
        save=None if where is None else save,
    )
    # Stopped before its first save, a run goes on from step 0.
    if where is not None and resume and (where / _STATE).exists():
        trainer.load_state(load_training(where))
    # Only now, when every setting has proved usable, is anything written.
    created = where is not None and claim_directory(
        where, names=FILES, is_ours=is_run, force=force, resume=resume
    )
    try:
        if where is not None and not resume:
            save_description(where, description)
        result = trainer.run()
    except Exception:
        # A run that came to nothing must not stand in the way of the next one.
        if where is not None and not (resume or saved):
            _take_back(where, created)
        raise
    return Transducer(trainer.model, description), result


def _take_back(where: Path, created: bool) -> None:
    with contextlib.suppress(OSError):
        for name in FILES:
            (where / name).unlink(missing_ok=True)
        if created:
            where.rmdir()


def _made_by(pairs: Pairs, settings: JobSettings, more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "regard": __version__,
        "torch": str(torch.__version__),
        "seed": settings.train.seed,
        "settings": settings.to_json(),
        "train": {"name": pairs.name, "pairs": len(pairs), "sha256": pairs.sha256},
        **more,
    }


def _same_run(saved: Description, wanted: Description, where: Path) -> Description:
    """Refuse to go on with another run; the saved description is the one that stays."""
    for name, before, now in (
        ("settings", saved.made_by.get("settings"), wanted.made_by["settings"]),
        ("data", _data(saved), _data(wanted)),
        ("vocabulary", (saved.source, saved.target), (wanted.source, wanted.target)),
    ):
        if before != now:
            old, new = _differences(before, now)
            raise InputError(
                explain(
                    f"{where}: the run in it has other {name}",
                    expected=old,
                    got=new,
                    because="a run goes on with what it began with",
                    help="give the first command again with --resume, or --force to begin anew",
                )
            )
    return saved


def _data(description: Description) -> Any:
    data = description.made_by.get("train")
    return {k: data.get(k) for k in ("pairs", "sha256")} if isinstance(data, dict) else data


def _differences(before: Any, now: Any) -> tuple[str, str]:
    """Return only what differs, as text."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return str(before)[:200], str(now)[:200]
    flat_before, flat_now = _flat(before), _flat(now)
    names = [
        name
        for name in dict.fromkeys([*flat_before, *flat_now])
        if flat_before.get(name) != flat_now.get(name)
    ]
    return tuple(  # type: ignore[return-value]  # two of them
        ", ".join(f"{name} = {side.get(name)}" for name in names)
        for side in (flat_before, flat_now)
    )


def _flat(form: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in form.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": v for inner, v in _flat(value).items()}
        else:
            found[name] = value
    return found


def _first(pairs: Pairs, count: int) -> Pairs:
    chosen = set(list(pairs.references())[:count])
    return Pairs(tuple(item for item in pairs.items if item[0] in chosen), pairs.name)
