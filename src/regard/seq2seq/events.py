"""What a training run reports, saves and raises."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.errors import RegardError, explain

__all__ = [
    "DivergedError",
    "Evaluation",
    "InterruptedRun",
    "Progress",
    "TrainResult",
    "TrainingState",
]

_LOGGED = 10  # steps


class DivergedError(RegardError, ArithmeticError):
    """The loss or the gradient is no finite number any more."""

    @classmethod
    def at(
        cls, step: int, loss: float, norm: float, *, rate: float, saved: int
    ) -> "DivergedError":
        """Say where, and what was saved before: after which step, or 0."""
        kept = f"; what was saved after step {saved} is kept" if saved else ""
        return cls(
            explain(
                f"training went wrong at step {step}: no finite number any more{kept}",
                expected="a finite loss and gradient",
                got=f"loss {loss:g}, length of the gradient {norm:g}",
                because=f"the learning rate was {rate:g}",
                help="start again with a smaller learning rate",
            )
        )


class InterruptedRun(KeyboardInterrupt):
    """A run was asked to stop; it finished its step and saved first.

    Attributes
    ----------
    step : int
        Steps that are done.
    signal : int
        The signal's number.

    Parameters
    ----------
    step, number : int
        The two.
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
        What ``evaluate`` returned, or the first of what it returned; lower is better.
    scores : tuple of (str, float)
        Name and error rate of all that ``evaluate`` returned, if it was a mapping; later ones
        break ties.
    """

    step: int
    loss: float
    error_rate: float
    scores: tuple[tuple[str, float], ...] = ()

    @property
    def order(self) -> tuple[float, ...]:
        """What looks are compared by; lower is better."""
        return tuple(rate for _, rate in self.scores) or (self.error_rate,)

    def to_json(self) -> dict[str, Any]:
        """Return a form that :meth:`from_json` reads."""
        scores = [list(score) for score in self.scores]
        return {
            "step": self.step,
            "loss": self.loss,
            "error_rate": self.error_rate,
            "scores": scores,
        }

    @classmethod
    def from_json(cls, form: Any) -> "Evaluation":
        """Rebuild a look.

        Raises
        ------
        KeyError, TypeError, ValueError
            ``form`` is not what :meth:`to_json` returned.
        """
        return cls(
            int(form["step"]),
            float(form["loss"]),
            float(form["error_rate"]),
            tuple((str(name), float(rate)) for name, rate in form["scores"]),
        )


@dataclass(frozen=True)
class Progress:
    """How far a run is; one after every step.

    Attributes
    ----------
    step, total : int
        Steps done, of how many. With a time budget the total is planned anew now and then, and
        at first unknown: a number far too high.
    loss : float
        Of this step, in nats a target symbol.
    rate : float
        The learning rate of this step.
    evaluation : Evaluation or None
        If this step ended with one.
    best : float or None
        The lowest error rate so far.
    share_done : float
        Of the run, 0 to 1.
    seconds : float
        Of the run, by its clock, earlier sittings included.
    """

    step: int
    total: int
    loss: float
    rate: float
    evaluation: Evaluation | None
    best: float | None
    share_done: float = 0.0
    seconds: float = 0.0

    @property
    def is_logged(self) -> bool:
        """Whether logs have a row of it: every tenth step, and every look."""
        return self.evaluation is not None or self.step % _LOGGED == 0


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
        Of the best look; None without evaluation.
    averaged : tuple of int
        The steps of the looks whose mean the final weights are; empty if they are the best
        look's.
    error_rate : float or None
        Of the final weights: the best look's, or lower if they are a mean.
    history : tuple of Evaluation
    seconds : float
        CPU time of the training steps of this sitting, evaluation left out.
    passes : float
        How often each pair was read, about; 0 where the batches do not say.
    """

    steps: int
    stopped_early: bool
    best_step: int | None
    best_error_rate: float | None
    history: tuple[Evaluation, ...]
    seconds: float
    averaged: tuple[int, ...] = ()
    error_rate: float | None = None
    passes: float = 0.0


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
