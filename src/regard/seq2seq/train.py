"""Training: a fixed number of steps, the same ones whether or not they are interrupted.

Step n of a run depends on the seed, n and the weights before it, on nothing else: every step
seeds the random numbers of its own dropout, and batches are asked for by number. A run that is
stopped and taken up again therefore ends with the same bits as one that was not, on one
machine with one number of threads.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit
from torch import Tensor, nn

from regard.errors import InputError, explain
from regard.seq2seq.batch import Batch, Batches
from regard.seq2seq.events import (
    DivergedError,
    Evaluation,
    InterruptedRun,
    Progress,
    TrainingState,
    TrainResult,
)
from regard.seq2seq.interrupt import Interruption
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.schedule import share_of_rate
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.vocab import PAD

__all__ = [
    "DivergedError",
    "Evaluation",
    "InterruptedRun",
    "Progress",
    "TrainConfig",
    "TrainResult",
    "Trainer",
    "TrainingState",
    "new_model",
    "train",
]

_MASK = (1 << 63) - 1


@dataclass
class _Course:
    """The part of a run's state that is plain numbers."""

    step: int = 0
    loss_sum: float = 0.0  # since the last look
    loss_count: int = 0
    history: list[Evaluation] = field(default_factory=list)

    def best(self) -> Evaluation | None:
        # The first of equals, so that waiting for an improvement means a real one.
        return min(self.history, key=lambda look: look.error_rate, default=None)


class Trainer:
    """Trains one model over a fixed number of steps.

    Parameters
    ----------
    model : Seq2Seq
        Trained in place, on the device its weights are on.
    batches : Batches
        Has ``at(step)``, which returns the :class:`~regard.seq2seq.batch.Batch` of that step.
    config : TrainConfig
    evaluate : callable, optional
        From the model to an error rate, lower is better. Called every
        ``config.evaluate_every`` steps and after the last one; the weights of the best look
        are the ones that remain.
    on_progress : callable, optional
        Gets a :class:`Progress` after every step.
    save : callable, optional
        Gets the trainer after every look, at the end, and when the run is interrupted.

    Raises
    ------
    InputError
        Early stopping or evaluation was configured without ``evaluate``.
    """

    def __init__(
        self,
        model: Seq2Seq,
        batches: Batches,
        config: TrainConfig,
        *,
        evaluate: Callable[[Seq2Seq], float] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        save: Callable[["Trainer"], None] | None = None,
    ) -> None:
        if evaluate is None and (config.evaluate_every or config.patience):
            raise InputError(
                explain(
                    "Trainer(): `evaluate` is missing",
                    expected="a function from the model to an error rate",
                    got="None",
                    because="the configuration sets evaluate_every or patience",
                )
            )
        self.model = model
        self.config = config
        self._batches = batches
        self._evaluate = evaluate
        self._on_progress = on_progress
        self._save = save
        self._device = next(model.parameters()).device
        self._optimizer = _optimizer(model, config)
        self._course = _Course()
        self._best: dict[str, Tensor] | None = None

    @property
    def step(self) -> int:
        """Steps done so far."""
        return self._course.step

    @property
    def finished(self) -> bool:
        """Whether :meth:`run` has nothing left to do."""
        return self.step >= self.config.steps or self._out_of_patience()

    def run(self) -> TrainResult:
        """Train to the end, from wherever the run is.

        Returns
        -------
        result : TrainResult
            The model then has its best weights if there was an evaluation, else its last.

        Raises
        ------
        DivergedError
            Loss or gradient are not finite. Nothing is saved then: what was saved before stays.
        InterruptedRun
            SIGINT or SIGTERM came; the step was finished and ``save`` called first.
        """
        seconds = 0.0
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), Interruption() as interruption:
            while not self.finished:
                self.model.train()
                began = time.process_time()
                loss, rate = self._take_step(self._batches.at(self.step))
                seconds += time.process_time() - began
                evaluation = self._look() if self._is_time_to_look() else None
                self._report(loss, rate, evaluation)
                asked = interruption.asked
                if self._save is not None and (evaluation or self.finished or asked):
                    self._save(self)
                if asked and not self.finished:
                    raise InterruptedRun(self.step, asked)
        self.model.load_state_dict(self.best_weights())
        self.model.eval()
        best = self._course.best()
        return TrainResult(
            steps=self.step,
            stopped_early=self.step < self.config.steps,
            best_step=best.step if best else None,
            best_error_rate=best.error_rate if best else None,
            history=tuple(self._course.history),
            seconds=seconds,
        )

    def best_weights(self) -> dict[str, Tensor]:
        """Return the weights of the best look so far; without one, those of now."""
        return self._best if self._best is not None else _copy(self.model)

    def state(self) -> TrainingState:
        """Return what :meth:`load_state` needs to go on from here."""
        tensors = {f"model.{name}": value for name, value in _copy(self.model).items()}
        tensors |= {f"best.{name}": value for name, value in (self._best or {}).items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self._optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{key}.{name}"] = value.detach().clone()
        info = {
            "step": self.step,
            "loss_sum": self._course.loss_sum,
            "loss_count": self._course.loss_count,
            "history": [[h.step, h.loss, h.error_rate] for h in self._course.history],
            "config": self.config.to_json(),
        }
        return TrainingState(tensors, info)

    def load_state(self, state: TrainingState) -> None:
        """Go on from a saved state.

        Raises
        ------
        InputError
            It belongs to another configuration or another model.
        """
        if state.info.get("config") != self.config.to_json():
            raise InputError(
                explain(
                    "Trainer.load_state(): the state belongs to other settings",
                    expected=str(self.config.to_json()),
                    got=str(state.info.get("config")),
                    help="resume with the settings of the first sitting",
                )
            )
        try:
            info = state.info
            history = [Evaluation(int(at), float(x), float(e)) for at, x, e in info["history"]]
            course = _Course(
                int(info["step"]), float(info["loss_sum"]), int(info["loss_count"]), history
            )
            self.model.load_state_dict(_under("model.", state.tensors))
            best = _under("best.", state.tensors)
            for name, parameter in self.model.named_parameters():
                self._optimizer.state[parameter] = {
                    key: state.tensors[f"optimizer.{key}.{name}"].clone()
                    for key in ("step", "exp_avg", "exp_avg_sq")
                    if course.step
                }
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                explain(
                    "Trainer.load_state(): the state does not belong to this model",
                    expected="the tensors and numbers that state() returns",
                    got=str(error).strip().splitlines()[-1],
                )
            ) from error
        self._course = course
        self._best = best or None

    def _take_step(self, batch: Batch) -> tuple[float, float]:
        config = self.config
        rate = config.learning_rate * share_of_rate(
            self.step,
            steps=config.steps,
            warm_up=config.warm_up,
            decay=config.decay,
            final=config.final_share,
        )
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed((config.seed * 1_000_003 + self.step) & _MASK)
        batch = batch.to(self._device)
        scored = self.model(batch.source, batch.inputs, batch.source_lengths)
        loss = F.cross_entropy(
            scored.symbol_scores.flatten(0, 1),
            batch.targets.flatten(),
            ignore_index=PAD,
            label_smoothing=config.label_smoothing,
        )
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's gap
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        value = loss.item()
        if not (math.isfinite(value) and bool(torch.isfinite(norm))):
            raise self._diverged(value, float(norm), rate)
        self._optimizer.step()
        self._course.step += 1
        self._course.loss_sum += value
        self._course.loss_count += 1
        return value, rate

    def _diverged(self, loss: float, norm: float, rate: float) -> DivergedError:
        saved = max((look.step for look in self._course.history), default=0)
        kept = f"; what was saved after step {saved} is kept" if self._save and saved else ""
        return DivergedError(
            explain(
                f"training went wrong at step {self.step + 1}: no finite number any more{kept}",
                expected="a finite loss and gradient",
                got=f"loss {loss:g}, length of the gradient {norm:g}",
                because=f"the learning rate was {rate:g}",
                help="start again with a smaller learning rate",
            )
        )

    def _is_time_to_look(self) -> bool:
        if self._evaluate is None:
            return False
        every = self.config.evaluate_every
        return self.step >= self.config.steps or bool(every and self.step % every == 0)

    def _look(self) -> Evaluation:
        assert self._evaluate is not None  # for the type checker: asked for above
        self.model.eval()
        error_rate = float(self._evaluate(self.model))
        course = self._course
        before = course.best()
        look = Evaluation(self.step, course.loss_sum / course.loss_count, error_rate)
        course.loss_sum, course.loss_count = 0.0, 0
        course.history.append(look)
        if before is None or error_rate < before.error_rate:
            self._best = _copy(self.model)
        return look

    def _out_of_patience(self) -> bool:
        best = self._course.best()
        if not self.config.patience or best is None:
            return False
        after = sum(look.step > best.step for look in self._course.history)
        return after >= self.config.patience

    def _report(self, loss: float, rate: float, evaluation: Evaluation | None) -> None:
        if self._on_progress is not None:
            best = self._course.best()
            self._on_progress(
                Progress(
                    self.step,
                    self.config.steps,
                    loss,
                    rate,
                    evaluation,
                    best.error_rate if best else None,
                )
            )


def train(
    model_config: ModelConfig,
    batches: Batches,
    config: TrainConfig,
    *,
    evaluate: Callable[[Seq2Seq], float] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    save: Callable[[Trainer], None] | None = None,
    resume: TrainingState | None = None,
) -> tuple[Seq2Seq, TrainResult]:
    """Build a model from the seed and train it.

    Uses no global state, so several may run side by side in processes of their own.

    Parameters
    ----------
    model_config : ModelConfig
    batches, config, evaluate, on_progress, save
        As :class:`Trainer` takes them.
    resume : TrainingState, optional
        Go on from here.

    Returns
    -------
    model, result : Seq2Seq, TrainResult
        The model is ready for use, dropout off.

    Raises
    ------
    DivergedError, InterruptedRun, InputError
        As :meth:`Trainer.run` and :meth:`Trainer.load_state` do.
    """
    trainer = Trainer(
        new_model(model_config, seed=config.seed),
        batches,
        config,
        evaluate=evaluate,
        on_progress=on_progress,
        save=save,
    )
    if resume is not None:
        trainer.load_state(resume)
    result = trainer.run()
    return trainer.model, result


def new_model(config: ModelConfig, *, seed: int) -> Seq2Seq:
    """Return an untrained model whose weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed & _MASK)
        return Seq2Seq(config)


def _optimizer(model: Seq2Seq, config: TrainConfig) -> torch.optim.Optimizer:
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(
        model.parameters(),
        lr=config.learning_rate,
        betas=config.betas,
        weight_decay=config.weight_decay,
        fused=True,
    )


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
