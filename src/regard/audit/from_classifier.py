"""regard's own attention classifiers as cases: everything an audit can ask is offered."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.audit.classifier import (
    BEGIN,
    END,
    FIRST,
    MASK,
    AttentionClassifier,
    Classified,
    ClassifierConfig,
    distribution,
)
from regard.audit.classifier_adversary import imitating
from regard.audit.classifier_training import (
    ClassifierTraining,
    Encoded,
    balance_of,
    fit,
    pad,
)
from regard.audit.inputs import Input
from regard.audit.protocol import Numbers, ReadOut, Trained
from regard.audit.sample import asked_in_batches
from regard.errors import InputError, explain

__all__ = ["MASK_TOKEN", "ClassifierCase", "ClassifierData", "train_classifier"]

MASK_TOKEN = "[mask]"


class ClassifierData:
    """Labelled inputs, and the vocabulary and classes found in those for training.

    Parameters
    ----------
    train, dev, test : sequence of Input
        All with a label.
    deciding : iterable of str
        Tokens whose weight a deceived model is trained to hide.

    Raises
    ------
    InputError
        An input has no label or no token, or there are fewer than two classes.
    """

    def __init__(
        self,
        train: Sequence[Input],
        dev: Sequence[Input],
        test: Sequence[Input],
        *,
        deciding: Iterable[str] = (),
    ) -> None:
        for one in (*train, *dev, *test):
            if one.label is None or not one.tokens:
                raise InputError(
                    explain(
                        "ClassifierData(): an input cannot be learnt from",
                        expected="tokens and a label",
                        got=f"tokens {one.tokens[:5]}, label {one.label!r}",
                    )
                )
        self.train, self.dev, self.test = list(train), list(dev), list(test)
        self.classes = sorted({str(one.label) for one in train})
        if len(self.classes) < 2:
            raise InputError(
                explain(
                    "ClassifierData(): there is nothing to tell apart",
                    expected="at least two labels in `train`",
                    got=", ".join(self.classes) or "no input",
                )
            )
        words = dict.fromkeys(token for one in train for token in one.tokens)
        self.ids = {word: FIRST + place for place, word in enumerate(words)}
        self.deciding = frozenset(deciding)

    @property
    def symbols(self) -> int:
        """Size of the vocabulary, reserved ids included."""
        return FIRST + len(self.ids)

    def encode(self, inputs: Sequence[Input], *, sentinels: bool) -> list[list[int]]:
        """Return ids; what training never saw says as little as the mask."""
        found = [[self.ids.get(token, MASK) for token in one.tokens] for one in inputs]
        return [[BEGIN, *one, END] for one in found] if sentinels else found

    def labels(self, inputs: Sequence[Input]) -> NDArray[np.int64]:
        """Return the classes' numbers; one that training never saw is -1."""
        place = {name: number for number, name in enumerate(self.classes)}
        return np.array([place.get(str(one.label), -1) for one in inputs], dtype=np.int64)


class ClassifierCase:
    """A trained classifier.

    Parameters
    ----------
    model : AttentionClassifier
    data : ClassifierData
    training : ClassifierTraining
        How it is trained again.
    name : str
    given : callable, optional
        Weights used instead of the model's own: of a model trained with frozen ones.
    """

    mask_token = MASK_TOKEN
    reads_before = False

    def __init__(
        self,
        model: AttentionClassifier,
        data: ClassifierData,
        training: ClassifierTraining,
        *,
        name: str,
        given: Callable[[Sequence[Input]], Sequence[Numbers]] | None = None,
    ) -> None:
        self.model = model.eval()
        self.data = data
        self.training = training
        self.name = name
        self.classes = data.classes
        self._given = given

    @property
    def deciding(self) -> frozenset[str]:
        """Tokens whose weight a deceived model hides."""
        return self.data.deciding

    def predict(self, batch: Sequence[Input]) -> Numbers:
        """Return probabilities (batch, classes)."""
        with torch.no_grad():
            return _probabilities(self._run(batch).outputs)

    def weights(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return the weights (T_enc,) of each input, sentinels left out."""
        with torch.no_grad():
            return self._rows(batch, self._run(batch).weights)

    def predict_with(self, batch: Sequence[Input], weights: Sequence[Numbers]) -> Numbers:
        """Return probabilities (batch, classes) with other weights."""
        with torch.no_grad():
            return _probabilities(self._run(batch, weights).outputs)

    def read_out(self, batch: Sequence[Input]) -> list[ReadOut]:
        """Return each input's linear read-out."""
        with torch.no_grad():
            states = self._rows(batch, self._run(batch).states)
        W, b = (
            parameter.detach().double().numpy()
            for parameter in (self.model.readout.weight, self.model.readout.bias)
        )
        return [ReadOut(values, W, b) for values in states]

    def token_gradient(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return abs(input x gradient) of the predicted class (T_enc,), all weights held."""
        with torch.enable_grad():
            found = self._run(batch, cut=True)
            p = distribution(found.outputs).amax(-1).sum()
            (gradient,) = torch.autograd.grad(p, found.embedded)
        return self._rows(batch, (gradient * found.embedded.detach()).sum(-1).abs())

    def train(
        self,
        *,
        attention: str = "learned",
        frozen: Callable[[Sequence[Input]], Sequence[Numbers]] | None = None,
        context: bool = True,
        penalty: float = 0.0,
        seed: int = 0,
    ) -> Trained:
        """Train anew, as :class:`~regard.audit.protocol.Trainable` says."""
        config = self.model.config
        if not context:
            config = replace(config, encoder="average", d_hidden=config.d_h)
        given = equal if attention == "uniform" else frozen
        training = replace(self.training, penalty=penalty)
        return train_classifier(self.data, config, training, seed=seed, given=given)

    def train_adversary(self, *, strength: float, seed: int = 0) -> Trained:
        """Train another such model, as :class:`~regard.audit.protocol.Imitable` says.

        For ten times the epochs of its own training, until ten bring nothing more: as published
        (80 epochs against 8), picked by the loss of training.
        """
        data, config = self.data, self.model.config
        training = replace(
            self.training,
            epochs=10 * self.training.epochs,
            patience=10,
            select="loss",
            penalty=0.0,
        )
        part = encoded(data, data.train, config)
        factors = None
        if training.balanced:
            factors = balance_of(part.labels, config.classes)[torch.from_numpy(part.labels)]
        objective = imitating(
            torch.from_numpy(np.stack(asked_in_batches(self.predict, data.train))).float(),
            _lookup(asked_in_batches(self.weights, data.train), part, config.sentinels),
            strength=strength,
            factors=factors,
        )
        model = fit(config, training, part, part, seed=seed, objective=objective)
        hides = f", adversary, lambda {strength:g}"
        return as_trained(model, data, training, seed=seed, hides=hides)

    def _run(
        self,
        batch: Sequence[Input],
        weights: Sequence[Numbers] | None = None,
        *,
        cut: bool = False,
    ) -> Classified:
        sentinels = self.model.config.sentinels
        ids, lengths = pad(self.data.encode(batch, sentinels=sentinels))
        if weights is None and self._given is not None:
            weights = self._given(batch)
        given = None if weights is None else _padded(weights, ids.shape, sentinels)
        found: Classified = self.model(ids, lengths, given, cut=cut)
        return found

    def _rows(self, batch: Sequence[Input], padded: Tensor) -> list[Numbers]:
        first = int(self.model.config.sentinels)
        table = padded.detach().double().numpy()
        return [table[row, first : first + len(one.tokens)] for row, one in enumerate(batch)]


def train_classifier(
    data: ClassifierData,
    config: ClassifierConfig,
    training: ClassifierTraining,
    *,
    seed: int = 0,
    given: Callable[[Sequence[Input]], Sequence[Numbers]] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Trained:
    """Train a classifier.

    Parameters
    ----------
    data : ClassifierData
    config : ClassifierConfig
    training : ClassifierTraining
    seed : int
    given : callable, optional
        Weights to train and to predict with, for each batch of inputs.
    progress : callable, optional

    Returns
    -------
    trained : Trained
        With its accuracy on ``data.test``, and the F1 of the last of two classes.
    """
    train, dev = (encoded(data, part, config) for part in (data.train, data.dev))
    frozen = [
        None if given is None else _lookup(given(part), ids, config.sentinels)
        for part, ids in ((data.train, train), (data.dev, dev))
    ]
    model = fit(
        config,
        training,
        train,
        dev,
        seed=seed,
        weights=frozen[0],
        dev_weights=frozen[1],
        progress=progress,
    )
    return as_trained(model, data, training, seed=seed, given=given)


def as_trained(
    model: AttentionClassifier,
    data: ClassifierData,
    training: ClassifierTraining,
    *,
    seed: int,
    given: Callable[[Sequence[Input]], Sequence[Numbers]] | None = None,
    hides: str = "",
) -> Trained:
    """Return a trained model as a case, with its accuracy on ``data.test``."""
    config = model.config
    hides = hides or (f", lambda {training.penalty:g}" if training.penalty else "")
    name = f"{config.encoder} + {config.score} attention, seed {seed}{hides}"
    case = ClassifierCase(model, data, training, name=name, given=given)
    answers = np.concatenate(
        [
            case.predict(data.test[start : start + 256]).argmax(-1)
            for start in range(0, len(data.test), 256)
        ]
    )
    labels = data.labels(data.test)
    f1 = _f1(answers, labels) if config.classes == 2 else None
    return Trained(case, float((answers == labels).mean()), f1)


def equal(batch: Sequence[Input]) -> list[Numbers]:
    """Return equal weights for each input of a batch."""
    return [np.full(len(one.tokens), 1 / len(one.tokens)) for one in batch]


def encoded(data: ClassifierData, part: Sequence[Input], config: ClassifierConfig) -> Encoded:
    """Return a part of the data as training reads it."""
    first = int(config.sentinels)
    deciding = [
        [first + place for place, token in enumerate(one.tokens) if token in data.deciding]
        for one in part
    ]
    ids = data.encode(part, sentinels=config.sentinels)
    return Encoded(ids, data.labels(part), deciding)


def _lookup(
    rows: Sequence[Numbers], part: Encoded, sentinels: bool
) -> Callable[[Sequence[int]], Tensor]:
    def look(chosen: Sequence[int]) -> Tensor:
        longest = max(len(part.ids[row]) for row in chosen)
        return _padded([rows[row] for row in chosen], (len(chosen), longest), sentinels)

    return look


def _padded(rows: Sequence[Numbers], shape: Sequence[int], sentinels: bool) -> Tensor:
    first = int(sentinels)
    table = torch.zeros(*shape)
    for row, weights in enumerate(rows):
        table[row, first : first + len(weights)] = torch.as_tensor(weights, dtype=torch.float32)
    return table


def _probabilities(outputs: Tensor) -> Numbers:
    found: Numbers = distribution(outputs.double()).numpy()
    return found


def _f1(answers: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    right = int(((answers == 1) & (labels == 1)).sum())
    claimed, wanted = int((answers == 1).sum()), int((labels == 1).sum())
    return 2 * right / (claimed + wanted) if claimed + wanted else 0.0
