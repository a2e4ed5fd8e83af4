"""Weights worth keeping: those of the best looks, and running averages."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from regard.seq2seq.events import Evaluation
from regard.seq2seq.tensors import under

__all__ = ["BestLooks", "RunningAverage", "copy_weights", "mean_weights"]

Weights = dict[str, Tensor]


def copy_weights(model: nn.Module) -> Weights:
    """Return a copy of a model's weights, by name."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def mean_weights(several: Sequence[Mapping[str, Tensor]]) -> Weights:
    """Return the mean of the weights of one model at several times.

    Parameters
    ----------
    several : sequence of mappings
        At least one; all with the same names. What is no floating-point number is the first
        one's.
    """
    first, *others = several
    found: Weights = {}
    for name, value in first.items():
        if value.is_floating_point():
            total = value.double()
            for other in others:
                total = total + other[name].double()
            found[name] = (total / len(several)).to(value.dtype)
        else:
            found[name] = value.clone()
    return found


class BestLooks:
    """The weights of the few best looks at the held-out data, best first.

    Of equally good looks the earlier one is the better, so that waiting for an improvement
    means a real one.

    Parameters
    ----------
    count : int
        How many are kept, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: list[tuple[Evaluation, Weights]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def offer(self, look: Evaluation, weights: Callable[[], Weights]) -> bool:
        """Keep a look if it is good enough, and return whether it is the best.

        Parameters
        ----------
        look : Evaluation
            Later than all before it.
        weights : callable
            Asked for a copy only if it is kept.
        """
        place = sum(kept.order <= look.order for kept, _ in self._kept)
        if place < self._count:
            self._kept.insert(place, (look, weights()))
            del self._kept[self._count :]
        return place == 0

    def best(self) -> Weights | None:
        """Return the best look's weights."""
        return self._kept[0][1] if self._kept else None

    def mean(self) -> Weights:
        """Return the mean of all that are kept."""
        return mean_weights([weights for _, weights in self._kept])

    def steps(self) -> list[int]:
        """Return the steps of the looks that are kept, best first."""
        return [look.step for look, _ in self._kept]

    def tensors(self) -> Weights:
        """Return all weights under names that :meth:`restore` reads."""
        return {
            f"look.{place}.{name}": value
            for place, (_, weights) in enumerate(self._kept)
            for name, value in weights.items()
        }

    def restore(
        self, steps: Sequence[int], history: Sequence[Evaluation], tensors: Mapping[str, Tensor]
    ) -> None:
        """Take back what :meth:`steps` and :meth:`tensors` returned.

        Raises
        ------
        KeyError
            A look of one of the steps is not in the history, or has no weights.
        """
        looks = {look.step: look for look in history}
        kept = []
        for place, step in enumerate(steps):
            weights = under(f"look.{place}.", tensors)
            if not weights:
                raise KeyError(f"look.{place}")
            kept.append((looks[step], weights))
        self._kept = kept


class RunningAverage:
    """An average of a model's weights over the last steps, older ones fading.

    Parameters
    ----------
    model : nn.Module
    share : float
        Of itself that it keeps at each step. Early on it keeps less, so that the first weights
        do not weigh on it: ``(1 + n) / (10 + n)`` at the n-th step.
    """

    def __init__(self, model: nn.Module, share: float) -> None:
        self._model = model
        self._share = share
        self.weights = copy_weights(model)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after ``step`` steps, which are counted from 1."""
        fading = 1.0 - min(self._share, (1 + step) / (10 + step))
        averages, values = [], []
        for name, value in self._model.state_dict().items():
            if value.is_floating_point():
                averages.append(self.weights[name])
                values.append(value.detach())
            else:
                self.weights[name].copy_(value)
        torch._foreach_lerp_(averages, values, fading)
