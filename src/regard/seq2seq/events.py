"""What a training run reports, saves and raises."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.errors import RegardError

__all__ = [
    "DivergedError",
    "Evaluation",
    "InterruptedRun",
    "Progress",
    "TrainResult",
    "TrainingState",
]


class DivergedError(RegardError, ArithmeticError):
    """The loss or the gradient is no finite number any more."""


class InterruptedRun(KeyboardInterrupt):
    """A run was asked to stop; it finished its step and saved first.

    Attributes
    ----------
    step : int
        Steps that are done.
    signal : int
        The signal's number.
    """

    def __init__(self, step: int, number: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step
        self.signal = number


@dataclass(frozen=True)
class Evaluation:
    """One look at the held-out data.

    Attributes
    ----------
    step : int
        Steps done by then.
    loss : float
        Mean training loss a symbol since the look before, in nats.
    error_rate : float
        What ``evaluate`` returned; lower is better.
    """

    step: int
    loss: float
    error_rate: float


@dataclass(frozen=True)
class Progress:
    """How far a run is; one after every step.

    Attributes
    ----------
    step, total : int
        Steps done, of how many.
    loss : float
        Of this step, in nats a target symbol.
    rate : float
        The learning rate of this step.
    evaluation : Evaluation or None
        If this step ended with one.
    best : float or None
        The lowest error rate so far.
    """

    step: int
    total: int
    loss: float
    rate: float
    evaluation: Evaluation | None
    best: float | None


@dataclass(frozen=True)
class TrainResult:
    """What a run came to.

    Attributes
    ----------
    steps : int
        Steps done, of this and of earlier sittings.
    stopped_early : bool
        Whether the error rate had stopped falling.
    best_step, best_error_rate : int, float or None
        None without evaluation.
    history : tuple of Evaluation
    seconds : float
        CPU time of the training steps of this sitting, evaluation left out.
    """

    steps: int
    stopped_early: bool
    best_step: int | None
    best_error_rate: float | None
    history: tuple[Evaluation, ...]
    seconds: float


@dataclass(frozen=True)
class TrainingState:
    """Everything a run needs to go on.

    Attributes
    ----------
    tensors : dict
        Weights, the best weights and the optimizer's averages, by name.
    info : dict
        Numbers, as JSON takes them: step, history, best, the configuration, the loss since the
        last look.
    """

    tensors: dict[str, Tensor]
    info: dict[str, Any]
