"""Train an attention classifier: as usual, with frozen weights, or to hide what it uses."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.audit.classifier import AttentionClassifier, Classified, ClassifierConfig
from regard.errors import InputError, explain

__all__ = ["ClassifierTraining", "Encoded", "Objective", "balance_of", "fit", "pad", "roc_auc"]

Weights = Callable[[Sequence[int]], Tensor]
"""From rows of the training set to their weights (batch, T)."""
Objective = Callable[[Classified, Sequence[int]], Tensor]
"""From what the model gave for rows of the training set to what is made small."""
_SELECT = ("auc", "accuracy", "loss")


@dataclass(frozen=True)
class ClassifierTraining:
    """How to train.

    Parameters
    ----------
    epochs, batch : int
    learning_rate, weight_decay : float
        The score's parameters have no decay.
    sparse_rate : float, optional
        Learning rate of sparse embeddings, if another: rare words are learnt by heart the
        faster, the higher it is.
    amsgrad : bool
    balanced : bool
        Weigh classes by their rarity.
    select : {"auc", "accuracy", "loss"}
        What picks the epoch on held-out examples, of equals the last; never the start.
        ``loss``: what training makes small, on its own examples.
    patience : int
        Stop after so many epochs without a better one; 0 for never.
    penalty : float
        Lambda of -lambda log(1 - mass on deciding tokens), added to the loss; 0 for none.
    """

    epochs: int = 8
    batch: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    sparse_rate: float | None = None
    amsgrad: bool = False
    balanced: bool = False
    select: str = "accuracy"
    patience: int = 0
    penalty: float = 0.0

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("epochs", self.epochs >= 1, "at least 1"),
            ("batch", self.batch >= 1, "at least 1"),
            ("learning_rate", self.learning_rate > 0, "above 0"),
            ("sparse_rate", (self.sparse_rate or 1) > 0, "above 0"),
            ("penalty", self.penalty >= 0, "from 0"),
            ("patience", self.patience >= 0, "from 0"),
            ("select", self.select in _SELECT, " or ".join(_SELECT)),
        ):
            if not fits:
                raise InputError(
                    explain(
                        f"ClassifierTraining(): `{name}` is refused",
                        expected=expected,
                        got=repr(getattr(self, name)),
                    )
                )


@dataclass(frozen=True)
class Encoded:
    """Texts as ids, with their classes.

    Attributes
    ----------
    ids : list of lists of int
        Sentinels included where the model has them; none empty.
    labels : (n,) int
    deciding : list of lists of int
        Places that the penalty counts.
    """

    ids: list[list[int]]
    labels: NDArray[np.int64]
    deciding: list[list[int]]


def fit(
    config: ClassifierConfig,
    training: ClassifierTraining,
    train: Encoded,
    dev: Encoded,
    *,
    seed: int,
    weights: Weights | None = None,
    dev_weights: Weights | None = None,
    objective: Objective | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> AttentionClassifier:
    """Train a classifier and return it as it was after its best epoch.

    Parameters
    ----------
    config, training
    train, dev : Encoded
    seed : int
        Of the start and of the order.
    weights, dev_weights : callable, optional
        Weights to be used instead of the model's own, in training and on `dev`.
    objective : callable, optional
        Instead of the labels' cross entropy with the penalty.
    progress : callable, optional
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AttentionClassifier(config)
    optimizers = _optimizers(model, training)
    loss_of = objective or _answers(config, training, train)
    random = np.random.default_rng(seed)
    best, kept, since = -np.inf, {}, 0
    for epoch in range(training.epochs):
        if progress is not None:
            progress("training", epoch, training.epochs)
        model.train()
        total = 0.0
        for rows in _batches(train.ids, training.batch, random):
            ids, lengths = pad([train.ids[row] for row in rows])
            loss = loss_of(model(ids, lengths, weights and weights(rows)), rows)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's gap
            for optimizer in optimizers:
                optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        score = (
            -total
            if training.select == "loss"
            else _held_out(model, dev, training.select, dev_weights)
        )
        since = 0 if score > best else since + 1
        if score >= best:  # of equals the later: it has seen more
            best = score
            kept = {name: value.clone() for name, value in model.state_dict().items()}
        if since and since == training.patience:
            break
    model.load_state_dict(kept)
    return model.eval()


def pad(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return ids (batch, T), padded with 0, and lengths (batch,)."""
    lengths = [len(one) for one in ids]
    longest = max(lengths)
    padded = torch.tensor([[*one, *[0] * (longest - len(one))] for one in ids])
    return padded, torch.tensor(lengths)


def roc_auc(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return the share of pairs of classes 0 and 1 that are ordered right; ties count half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[inverse]
    positives = int((labels == 1).sum())
    negatives = len(labels) - positives
    if not (positives and negatives):
        return float("nan")
    above = ranks[labels == 1].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def _optimizers(
    model: AttentionClassifier, training: ClassifierTraining
) -> list[torch.optim.Optimizer]:
    attention = {id(parameter) for parameter in model.attention_parameters}
    table = {id(model.embedding.weight)} if model.config.sparse else set()
    rest = [p for p in model.parameters() if id(p) not in attention | table]
    groups = [
        {"params": rest, "weight_decay": training.weight_decay},
        {"params": model.attention_parameters, "weight_decay": 0.0},
    ]
    found: list[torch.optim.Optimizer] = [
        # In one pass over the parameters: dense embeddings are most of the work else.
        torch.optim.Adam(
            groups, lr=training.learning_rate, amsgrad=training.amsgrad, fused=True
        )
    ]
    if table:
        rate = training.sparse_rate or training.learning_rate
        found.append(torch.optim.SparseAdam([model.embedding.weight], lr=rate))
    return found


def _answers(
    config: ClassifierConfig, training: ClassifierTraining, data: Encoded
) -> Objective:
    """Return the cross entropy with the labels, plus the penalty."""
    labels = torch.from_numpy(data.labels)
    balance = balance_of(data.labels, config.classes) if training.balanced else None

    def loss(found: Classified, rows: Sequence[int]) -> Tensor:
        right = labels[list(rows)]
        if config.classes == 2:
            each = functional.binary_cross_entropy_with_logits(
                found.outputs[:, 0], right.float(), reduction="none"
            )
            if balance is not None:
                each = each * balance[right]
        else:
            each = functional.cross_entropy(found.outputs, right, balance, reduction="none")
        if not training.penalty:
            return each.mean()
        places = [data.deciding[row] for row in rows]
        counted = torch.zeros_like(found.weights)
        counted[
            [row for row, some in enumerate(places) for _ in some],
            [place for some in places for place in some],
        ] = 1.0
        mass = (found.weights * counted).sum(1).clamp(max=1 - 1e-6)
        return each.mean() - training.penalty * torch.log1p(-mass).mean()

    return loss


def balance_of(labels: NDArray[np.int64], classes: int) -> Tensor:
    """Return each class's factor (classes,): the rarer, the heavier."""
    counts = np.bincount(labels, minlength=classes)
    # The last of two classes is weighed against the first, as published code does.
    shares = counts[0] / np.maximum(counts, 1)
    return torch.tensor(shares, dtype=torch.float32)


def _batches(
    ids: Sequence[Sequence[int]], batch: int, random: np.random.Generator
) -> Iterator[list[int]]:
    # A little noise mixes neighbours, so that no two epochs cut the same batches.
    lengths = np.array([len(one) for one in ids]) + random.uniform(-1, 1, len(ids))
    order = np.argsort(lengths)
    starts = random.permutation(np.arange(0, len(order), batch))
    for start in starts.tolist():
        yield order[start : start + batch].tolist()


def _held_out(
    model: AttentionClassifier,
    dev: Encoded,
    select: str,
    weights: Weights | None,
) -> float:
    outputs = []
    order = np.argsort([len(one) for one in dev.ids], kind="stable")
    with torch.no_grad():
        for start in range(0, len(order), 256):
            rows = order[start : start + 256].tolist()
            ids, lengths = pad([dev.ids[row] for row in rows])
            given = None if weights is None else weights(rows)
            outputs.append(model(ids, lengths, given).outputs)
    found = torch.cat(outputs).double().numpy()
    labels = dev.labels[order]
    if model.config.classes == 2:
        if select == "auc":
            return roc_auc(found[:, 0], labels)
        return float(((found[:, 0] > 0) == labels).mean())
    return float((found.argmax(1) == labels).mean())
