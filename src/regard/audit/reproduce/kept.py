"""Trained models kept in a folder, so that a run that was stopped trains none of them twice."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from torch import nn

from regard.audit.classifier import AttentionClassifier, ClassifierConfig
from regard.audit.classifier_training import ClassifierTraining
from regard.audit.from_classifier import (
    ClassifierCase,
    ClassifierData,
    as_trained,
    equal,
    train_classifier,
)
from regard.audit.inputs import fingerprint
from regard.audit.protocol import Trained
from regard.errors import InputError, explain
from regard.files import unwritable
from regard.seq2seq.tensors import load_tensors, save_tensors
from regard.version import __version__

__all__ = ["classifier", "kept"]

Model = TypeVar("Model", bound=nn.Module)


def kept(
    folder: Path | None,
    name: str,
    key: str,
    *,
    train: Callable[[], Model],
    untrained: Callable[[], Model],
) -> Model:
    """Return a model from the folder, or train it and keep it there.

    Parameters
    ----------
    folder : path or None
        None keeps nothing.
    name : str
        What its file is called.
    key : str
        All that the model depends on: another one is trained anew, beside it.
    train, untrained : callable
        Return the trained model, and one of its sizes to be filled.

    Raises
    ------
    InputError
        The folder cannot be made, or a file in it is damaged.
    """
    if folder is None:
        return train()
    digest = hashlib.sha256(f"{__version__} {key}".encode()).hexdigest()[:12]
    path = folder / f"{name} {digest}.safetensors".replace(" ", "-").replace(",", "")
    if not path.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(unwritable(folder, error)) from error
        model = train()
        save_tensors(path, model.state_dict(), {"key": key})
        return model
    tensors, info = load_tensors(path)
    if info.get("key") != key:
        raise InputError(
            explain(
                f"--resume {folder}: a file is not what its name says",
                expected=f"{path.name} as this command wrote it",
                got="a model with other settings",
                help="name another folder",
            )
        )
    model = untrained()
    model.load_state_dict(tensors)
    return model.eval()


def classifier(
    folder: Path | None,
    data: ClassifierData,
    config: ClassifierConfig,
    training: ClassifierTraining,
    *,
    seed: int,
    uniform: bool = False,
) -> Trained:
    """Return a classifier, trained here or earlier; ``uniform`` holds its weights equal."""
    given = equal if uniform else None

    def train() -> AttentionClassifier:
        trained = train_classifier(data, config, training, seed=seed, given=given).case
        assert isinstance(trained, ClassifierCase)
        return trained.model

    words = fingerprint([*data.train, *data.dev])
    model = kept(
        folder,
        f"{config.encoder} seed {seed}",
        f"{config} {training} {seed} {uniform} {sorted(data.deciding)} {words}",
        train=train,
        untrained=lambda: AttentionClassifier(config),
    )
    return as_trained(model, data, training, seed=seed, given=given)
