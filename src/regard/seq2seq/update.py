"""One step of training: the gradient of its batches, and the optimizer's answer to it."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor, nn

from regard.errors import InputError, explain
from regard.seq2seq.batch import Batch, Batches
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.vocab import PAD
from regard.seq2seq.world import World

__all__ = ["Taken", "Update"]

_MASK = (1 << 63) - 1
_AVERAGES = ("step", "exp_avg", "exp_avg_sq")  # what Adam keeps of each weight


class Taken(NamedTuple):
    """A step's gradient, before it is applied.

    Attributes
    ----------
    loss : float
        Mean over all target symbols of the step, in nats.
    norm : Tensor
        Length of the gradient before it is clipped.
    asked : bool
        Whether any process was asked to stop.
    """

    loss: float
    norm: Tensor
    asked: bool


class Update:
    """Computes gradients and applies them.

    The loss is normalised over the target symbols of all batches of a step, in all processes:
    a step does not depend on how its batches are shared out, up to rounding. The random numbers
    of a batch come from the seed and the batch's number, wherever it is computed.

    Parameters
    ----------
    model : Seq2Seq
    config : TrainConfig
    world : World

    Raises
    ------
    InputError
        There are more processes than batches in a step.
    """

    def __init__(self, model: Seq2Seq, config: TrainConfig, world: World) -> None:
        if world.size > config.accumulate:
            raise InputError(
                explain(
                    "Trainer(): there are more processes than batches in a step",
                    expected=f"accumulate = {world.size} or more",
                    got=f"accumulate = {config.accumulate}",
                    because=f"{world.size} processes share the batches of a step",
                )
            )
        self._model = model
        self._config = config
        self._world = world
        self._device = next(model.parameters()).device
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        self._optimizer = kind(
            model.parameters(),
            lr=config.learning_rate,
            betas=config.betas,
            weight_decay=config.weight_decay,
            fused=True,
        )

    def gradient(
        self, batches: Batches, step: int, *, sampling: float = 0.0, asked: bool = False
    ) -> Taken:
        """Compute the clipped gradient of one step, counted from 0.

        Parameters
        ----------
        batches : Batches
            Step ``n`` has the batches ``n * accumulate`` and those that follow.
        step : int
        sampling : float
            The chance that the decoder reads its own answer.
        asked : bool
            Whether this process was asked to stop; the others are told.
        """
        count = self._config.accumulate
        self._optimizer.zero_grad(set_to_none=True)
        if count == 1 and self._world.size == 1:
            loss = self._loss(batches.at(step), step, sampling, "mean")
            loss.backward()  # type: ignore[no-untyped-call]  # torch's gap
            value = loss.item()
        else:
            value, asked = self._shared(batches, step, sampling, asked)
        norm = nn.utils.clip_grad_norm_(self._weights, self._config.clip)
        return Taken(value, norm, asked)

    def apply(self, rate: float) -> None:
        """Let the optimizer take the step, at a learning rate."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of the optimizer's averages under names that :meth:`restore` reads."""
        return {
            f"optimizer.{key}.{name}": value.detach().clone()
            for name, weight in self._model.named_parameters()
            for key, value in self._optimizer.state.get(weight, {}).items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what :meth:`tensors` returned.

        Raises
        ------
        KeyError
            A weight's averages are missing.
        """
        self._optimizer.state.clear()
        if not any(name.startswith("optimizer.") for name in tensors):
            return  # saved before the first step
        for name, weight in self._model.named_parameters():
            self._optimizer.state[weight] = {
                key: tensors[f"optimizer.{key}.{name}"].to(weight.device, copy=True)
                for key in _AVERAGES
            }

    def _shared(
        self, batches: Batches, step: int, sampling: float, asked: bool
    ) -> tuple[float, bool]:
        """Add up the gradient over batches and processes, then divide by the symbols."""
        count = self._config.accumulate
        told = torch.zeros(3, device=self._device)  # loss, symbols, processes asked to stop
        told[2] = float(asked)
        for place in self._world.share(count):
            number = step * count + place
            batch = batches.at(number)
            loss = self._loss(batch, number, sampling, "sum")
            loss.backward()  # type: ignore[no-untyped-call]  # torch's gap
            told[0] += loss.detach()
            told[1] += int((batch.targets != PAD).sum())
        for weight in self._weights:
            if weight.grad is None:  # no batch, or a part that was not used
                weight.grad = torch.zeros_like(weight)
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        self._world.add_up([*gradients, told])
        torch._foreach_div_(gradients, float(told[1]))
        return float(told[0] / told[1]), bool(told[2])

    def _loss(self, batch: Batch, number: int, sampling: float, reduction: str) -> Tensor:
        torch.manual_seed((self._config.seed * 1_000_003 + number) & _MASK)
        batch = batch.to(self._device)
        more = {"sampling": sampling} if sampling else {}
        with torch.autocast(
            self._device.type,
            dtype=torch.bfloat16,
            enabled=self._config.precision == "bfloat16",
        ):
            scored = self._model(batch.source, batch.inputs, batch.source_lengths, **more)
        return F.cross_entropy(
            scored.symbol_scores.flatten(0, 1).float(),
            batch.targets.flatten(),
            ignore_index=PAD,
            label_smoothing=self._config.label_smoothing,
            reduction=reduction,
        )
