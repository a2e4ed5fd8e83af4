"""Trained models kept in a folder, so that a run that was stopped trains none of them twice."""

import hashlib
import math
import time
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

__all__ = ["Models", "classifier"]

Model = TypeVar("Model", bound=nn.Module)


class Models:
    """Trained models in a folder.

    Parameters
    ----------
    folder : path, optional
        Without one nothing is kept.

    Attributes
    ----------
    found : int
        How many were there already.
    seconds : float
        Processor time that these had taken to train; NaN where a file does not say.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self.found = 0
        self.seconds = 0.0

    def get(
        self,
        name: str,
        key: str,
        *,
        train: Callable[[], Model],
        untrained: Callable[[], Model],
    ) -> Model:
        """Return a model from the folder, or train it and keep it there.

        Parameters
        ----------
        name : str
            What its file is called.
        key : str
            All that the model depends on: with another key it is trained anew, beside it.
        train, untrained : callable
            Return the trained model, and one of its sizes to be filled.

        Raises
        ------
        InputError
            The folder cannot be made, or a file in it is damaged.
        """
        if self._folder is None:
            return train()
        digest = hashlib.sha256(f"{__version__} {key}".encode()).hexdigest()[:12]
        path = self._folder / f"{name.replace(' ', '-')}-{digest}.safetensors"
        if not path.exists():
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(unwritable(self._folder, error)) from error
            began = time.process_time()
            model = train()
            took = {"seconds": time.process_time() - began}
            save_tensors(path, model.state_dict(), {"key": key, **took})
            return model
        tensors, info = load_tensors(path)
        if info.get("key") != key:
            raise InputError(
                explain(
                    f"--resume {self._folder}: a file is not what its name says",
                    expected=f"{path.name} as this command wrote it",
                    got="a model with other settings",
                    help="name another folder",
                )
            )
        model = untrained()
        model.load_state_dict(tensors)
        self.found += 1
        self.seconds += info.get("seconds", math.nan)
        return model.eval()


def classifier(
    models: Models,
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
    model = models.get(
        f"{config.encoder} seed {seed}",
        f"{config} {training} {seed} {uniform} {sorted(data.deciding)} {words}",
        train=train,
        untrained=lambda: AttentionClassifier(config),
    )
    return as_trained(model, data, training, seed=seed, given=given)
