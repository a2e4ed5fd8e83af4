"""Looks at the held-out data, and the choice of weights that they decide."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from regard.seq2seq.averaging import BestLooks, RunningAverage, copy_weights
from regard.seq2seq.events import Evaluation
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.world import World

__all__ = ["Evaluate", "Looking"]

Evaluate = Callable[[Seq2Seq], float | Mapping[str, float]]
"""From the model to an error rate, or to several: the first counts, the next break ties."""


class Looking:
    """Scores a model's weights now and then, and remembers the best ones.

    Parameters
    ----------
    model : Seq2Seq
    evaluate : callable or None
        Called in the first process only; the others are told.
    keep : int
        How many looks' weights are kept; with 2 or more their mean is tried in the end.
    ema : float
        Above 0, a running average of the weights is scored and kept instead of themselves.
    world : World
    """

    def __init__(
        self, model: Seq2Seq, evaluate: Evaluate | None, *, keep: int, ema: float, world: World
    ) -> None:
        self._model = model
        self._evaluate = evaluate
        self._keep = keep
        self._world = world
        self._kept = BestLooks(max(1, keep))
        self._average = RunningAverage(model, ema) if ema else None

    @property
    def wanted(self) -> bool:
        """Whether there is anything to look with."""
        return self._evaluate is not None

    def follow(self, step: int) -> None:
        """Take in the weights after a step."""
        if self._average is not None:
            self._average.update(step)

    def look(self, step: int, loss: float) -> Evaluation:
        """Score the weights of now, and keep them if they are among the best."""
        scores = self._scored(self.now() if self._average is not None else None)
        look = _evaluation(step, loss, scores)
        self._kept.offer(look, self.now)
        return look

    def choose(self, step: int, best: Evaluation | None) -> dict[str, Any]:
        """Return what the final weights are, as :class:`~regard.seq2seq.course.Course` has it.

        The mean of the best looks' weights, if it scores better than the best look.
        """
        if best is None:
            return {"averaged": [], "error_rate": None}
        if self._keep >= 2 and len(self._kept) >= 2:
            mean = _evaluation(step, 0.0, self._scored(self._kept.mean()))
            if mean.order < best.order:
                averaged = sorted(self._kept.steps())
                return {"averaged": averaged, "error_rate": mean.error_rate}
        return {"averaged": [], "error_rate": best.error_rate}

    def weights(self, final: Mapping[str, Any] | None) -> dict[str, Tensor]:
        """Return the weights to use, given what :meth:`choose` said or None before that."""
        if final is not None and final["averaged"]:
            return self._kept.mean()
        return self._kept.best() or self.now()

    def now(self) -> dict[str, Tensor]:
        """Return a copy of the weights that a look would score now."""
        if self._average is not None:
            return {name: value.clone() for name, value in self._average.weights.items()}
        return copy_weights(self._model)

    def steps(self) -> list[int]:
        """Return the steps of the looks whose weights are kept, best first."""
        return self._kept.steps()

    def tensors(self) -> dict[str, Tensor]:
        """Return all weights that are kept under names that :meth:`restore` reads."""
        found = self._kept.tensors()
        if self._average is not None:
            found |= {f"ema.{name}": v.clone() for name, v in self._average.weights.items()}
        return found

    def restore(
        self, steps: Sequence[int], history: Sequence[Evaluation], tensors: Mapping[str, Tensor]
    ) -> None:
        """Take back what :meth:`steps` and :meth:`tensors` returned.

        Raises
        ------
        KeyError
            Something is missing.
        """
        self._kept.restore(steps, history, tensors)
        if self._average is not None:
            for name, value in self._average.weights.items():
                value.copy_(tensors[f"ema.{name}"])

    def _scored(self, weights: dict[str, Tensor] | None) -> list[tuple[str, float]]:
        """Score the model, or other weights in its place."""
        model, evaluate = self._model, self._evaluate
        assert evaluate is not None  # for the type checker: nobody looks without

        def score() -> list[tuple[str, float]]:
            own = copy_weights(model) if weights is not None else {}
            if weights is not None:
                model.load_state_dict(weights)
            model.eval()
            try:
                found = evaluate(model)
            finally:
                if own:
                    model.load_state_dict(own)
            rates = found if isinstance(found, Mapping) else {"": found}
            return [(name, float(rate)) for name, rate in rates.items()]

        return self._world.from_first(score)


def _evaluation(step: int, loss: float, scores: Sequence[tuple[str, float]]) -> Evaluation:
    named = tuple((name, rate) for name, rate in scores if name)
    return Evaluation(step, loss, scores[0][1], named)
