"""How far a run is, in plain numbers: what its state holds besides tensors."""

from dataclasses import dataclass, field
from typing import Any

from regard.seq2seq.events import Evaluation
from regard.seq2seq.plan import Plan

__all__ = ["Course"]


@dataclass
class Course:
    """How far a run is.

    Attributes
    ----------
    plan : Plan
        What holds now.
    step : int
        Steps done.
    loss_sum, loss_count : float, int
        Of the steps since the last look.
    history : list of Evaluation
    final : dict or None
        Once the run is over: ``averaged``, the steps of the looks whose mean the final weights
        are, and their ``error_rate``.
    """

    plan: Plan
    step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    history: list[Evaluation] = field(default_factory=list)
    final: dict[str, Any] | None = None

    def best(self) -> Evaluation | None:
        """Return the best look."""
        # The first of equals, so that waiting for an improvement means a real one.
        return min(self.history, key=lambda look: look.order, default=None)

    def looked(self) -> int:
        """Return the step of the last look, or 0."""
        return self.history[-1].step if self.history else 0

    def has_waited(self, patience: int) -> bool:
        """Return whether so many looks brought no improvement; 0 waits for ever."""
        best = self.best()
        if not patience or best is None:
            return False
        return sum(look.step > best.step for look in self.history) >= patience

    def add(self, loss: float) -> None:
        """Count a step."""
        self.step += 1
        self.loss_sum += loss
        self.loss_count += 1

    def mean_loss(self) -> float:
        """Return the mean loss since the last look, and begin anew."""
        mean = self.loss_sum / max(1, self.loss_count)
        self.loss_sum, self.loss_count = 0.0, 0
        return mean

    def to_json(self) -> dict[str, Any]:
        """Return a form that :meth:`from_json` reads."""
        return {
            "step": self.step,
            "loss_sum": self.loss_sum,
            "loss_count": self.loss_count,
            "history": [look.to_json() for look in self.history],
            "plan": self.plan.to_json(),
            "final": self.final,
        }

    @classmethod
    def from_json(cls, form: Any) -> "Course":
        """Rebuild a course; other entries of ``form`` are passed over.

        Raises
        ------
        KeyError, TypeError, ValueError
            ``form`` is not what :meth:`to_json` returned.
        """
        return cls(
            Plan.from_json(form["plan"]),
            int(form["step"]),
            float(form["loss_sum"]),
            int(form["loss_count"]),
            [Evaluation.from_json(look) for look in form["history"]],
            form["final"],
        )
