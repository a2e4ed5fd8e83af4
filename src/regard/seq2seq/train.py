"""Training: the same steps whether or not they are interrupted.

Step n of a run depends on the seed, n, the plan and the weights before it, on nothing else:
every batch seeds the random numbers of its own dropout, and batches are asked for by number. A
run that is stopped and taken up again therefore ends with the same bits as one that was not, on
one machine with one number of threads. With a time budget the plan comes from the clock; it is
saved before a step depends on it.
"""

import math
import time
from collections.abc import Callable
from signal import SIGTERM

import torch
from torch import Tensor

from regard.errors import InputError, explain
from regard.seq2seq.averaging import copy_weights
from regard.seq2seq.batch import Batches
from regard.seq2seq.clock import Clock
from regard.seq2seq.course import Course
from regard.seq2seq.events import (
    DivergedError,
    Evaluation,
    InterruptedRun,
    Progress,
    TrainingState,
    TrainResult,
)
from regard.seq2seq.interrupt import Interruption
from regard.seq2seq.looking import Evaluate, Looking
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.plan import Plan, Planner
from regard.seq2seq.same_run import differences
from regard.seq2seq.schedule import share_of_rate
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.tensors import under
from regard.seq2seq.update import Update
from regard.seq2seq.world import ALONE, World

__all__ = [
    "SAVE_EVERY",
    "DivergedError",
    "Evaluate",
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
SAVE_EVERY = 45.0
"""Seconds between two saves: what a killed run loses is less than a minute."""


class Trainer:
    """Trains one model.

    Parameters
    ----------
    model : Seq2Seq
        Trained in place, on the device its weights are on.
    batches : Batches
        Has ``at(step)``, which returns the :class:`~regard.seq2seq.batch.Batch` of that step.
    config : TrainConfig
    evaluate : callable, optional
        From the model to an error rate, lower is better, or to a mapping of several. Called
        every ``config.evaluate_every`` steps and after the last one; the weights of the best
        look are the ones that remain, or the mean of the best few.
    on_progress : callable, optional
        Gets a :class:`Progress` after every step.
    save : callable, optional
        Gets the trainer after every look and every plan, every `save_every` seconds, at the
        end, and when the run is interrupted.
    save_every : float
        What a killed run loses at most, and the time of one step and one look.
    world : World
        The processes that share the steps. Only the first one looks, reports and saves.
    clock : Clock, optional
        By default one of the configuration's kind that starts now.

    Raises
    ------
    InputError
        Early stopping or evaluation was configured without ``evaluate``, or there are more
        processes than batches in a step.
    """

    def __init__(
        self,
        model: Seq2Seq,
        batches: Batches,
        config: TrainConfig,
        *,
        evaluate: Evaluate | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        save: Callable[["Trainer"], None] | None = None,
        save_every: float = SAVE_EVERY,
        world: World = ALONE,
        clock: Clock | None = None,
    ) -> None:
        _check(config, evaluate)
        self.model = model
        self.config = config
        self._batches = batches
        self._on_progress = on_progress if world.is_first else None
        self._save = save if world.is_first else None
        self._save_every = save_every
        self._world = world
        self._clock = clock or Clock(config.clock)
        self._update = Update(model, config, world)
        self._looking = Looking(
            model, evaluate, keep=config.average, ema=config.ema, world=world
        )
        self._planner = Planner.of(config, looks=config.looks if evaluate else 0)
        plan = Plan(0, config.steps, config.evaluate_every)
        if self._planner is not None:
            plan = self._planner.first()
        self._course = Course(plan)

    @property
    def step(self) -> int:
        """Steps done so far."""
        return self._course.step

    @property
    def plan(self) -> Plan:
        """What holds now."""
        return self._course.plan

    @property
    def finished(self) -> bool:
        """Whether there is no step left to take."""
        course = self._course
        return course.step >= course.plan.total or course.has_waited(self.config.patience)

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
        saved_at = time.monotonic()
        device = next(self.model.parameters()).device
        devices = [device] if device.type == "cuda" else []
        patient = self._world.size > 1
        with (
            torch.random.fork_rng(devices=devices),
            Interruption(patient=patient) as interruption,
        ):
            while not self.finished:
                began = time.process_time()
                with self._clock.during("steps"):
                    loss, rate, asked = self._take_step(bool(interruption.asked))
                seconds += time.process_time() - began
                planned = self._plan_anew()
                look = self._look() if self.plan.is_look(self.step) else None
                self._report(loss, rate, look)
                if self._world.size == 1:  # else all processes stop after one step
                    asked = bool(interruption.asked)
                late = time.monotonic() - saved_at > self._save_every
                if look or planned or late or asked:
                    self._save_now()
                    saved_at = time.monotonic()
                if asked and not self.finished:
                    raise InterruptedRun(self.step, interruption.asked or SIGTERM)
            if self._course.final is None:
                self._course.final = self._looking.choose(self.step, self._course.best())
                self._save_now()
        self.model.load_state_dict(self.best_weights())
        self.model.eval()
        return self._result(seconds)

    def chosen(self) -> list[int]:
        """Return which looks :meth:`best_weights` come from, by their steps; none: of now."""
        final = self._course.final
        if final is not None and final["averaged"]:
            return list(final["averaged"])
        return self._looking.steps()[:1]

    def best_weights(self) -> dict[str, Tensor]:
        """Return the weights to use so far: the best look's; without one, those of now."""
        return self._looking.weights(self._course.final)

    def state(self) -> TrainingState:
        """Return what :meth:`load_state` needs to go on from here."""
        tensors = {f"model.{name}": value for name, value in copy_weights(self.model).items()}
        tensors |= self._looking.tensors() | self._update.tensors()
        info = self._course.to_json()
        info |= {"kept": self._looking.steps(), "config": self.config.to_json()}
        if self._planner is not None:
            # Only then: the states of two equal runs are else equal to the bit.
            info |= {"clock": self._clock.to_json(), "planner": self._planner.to_json()}
        return TrainingState(tensors, info)

    def load_state(self, state: TrainingState) -> None:
        """Go on from a saved state.

        Raises
        ------
        InputError
            It belongs to another configuration or another model.
        """
        changes = differences(state.info.get("config"), self.config.to_json())
        if changes:
            raise InputError(
                explain(
                    "Trainer.load_state(): the state belongs to other settings",
                    expected="\n".join(f"{name} = {before}" for name, before, _ in changes),
                    got="\n".join(f"{name} = {now}" for name, _, now in changes),
                    help="resume with the settings of the first sitting",
                )
            )
        try:
            self._course = self._loaded(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                explain(
                    "Trainer.load_state(): the state does not belong to this model",
                    expected="the tensors and numbers that state() returns",
                    got=str(error).strip().splitlines()[-1],
                )
            ) from error

    def _loaded(self, state: TrainingState) -> Course:
        course = Course.from_json(state.info)
        self.model.load_state_dict(under("model.", state.tensors))
        self._looking.restore(state.info["kept"], course.history, state.tensors)
        self._update.restore(state.tensors)
        if self._planner is not None:
            self._clock.go_on(state.info["clock"])
            self._planner.go_on(state.info["planner"])
        return course

    def _take_step(self, asked: bool) -> tuple[float, float, bool]:
        config, plan = self.config, self.plan
        rate = config.learning_rate * share_of_rate(
            self.step,
            steps=plan.total,
            warm_up=config.warm_up,
            decay=config.decay,
            final=config.final_share,
            position=plan.position(self.step),
        )
        sampling = config.sampling * plan.share_done(self.step)
        self.model.train()
        taken = self._update.gradient(self._batches, self.step, sampling=sampling, asked=asked)
        if not (math.isfinite(taken.loss) and bool(torch.isfinite(taken.norm))):
            saved = self._course.looked() if self._save else 0
            raise DivergedError.at(
                self.step + 1, taken.loss, float(taken.norm), rate=rate, saved=saved
            )
        self._update.apply(rate)
        self._course.add(taken.loss)
        self._looking.follow(self.step)
        return taken.loss, rate, taken.asked

    def _plan_anew(self) -> bool:
        """Plan again if it is time, and return whether the plan is another one."""
        planner, course = self._planner, self._course
        if planner is None:
            return False
        looks = len(course.history)

        def plan() -> Plan:
            if not planner.is_due(self._clock, self.step, looks):
                return course.plan
            return planner.replan(
                course.plan, self.step, self._clock, looks=looks, looked=course.looked()
            )

        before, course.plan = course.plan, self._world.from_first(plan)
        return course.plan != before

    def _look(self) -> Evaluation | None:
        if not self._looking.wanted:
            return None
        course = self._course
        with self._clock.during("looks"):
            look = self._looking.look(course.step, course.mean_loss())
        course.history.append(look)
        return look

    def _save_now(self) -> None:
        if self._save is not None:
            with self._clock.during("saves"):
                self._save(self)

    def _report(self, loss: float, rate: float, look: Evaluation | None) -> None:
        if self._on_progress is None:
            return
        best = self._course.best()
        self._on_progress(
            Progress(
                self.step,
                self.plan.total,
                loss,
                rate,
                look,
                best.error_rate if best else None,
                self.plan.share_done(self.step),
                self._clock.elapsed(),
            )
        )

    def _result(self, seconds: float) -> TrainResult:
        best, final = self._course.best(), self._course.final or {}
        return TrainResult(
            steps=self.step,
            stopped_early=self.step < self.plan.total,
            best_step=best.step if best else None,
            best_error_rate=best.error_rate if best else None,
            history=tuple(self._course.history),
            seconds=seconds,
            averaged=tuple(final.get("averaged", ())),
            error_rate=final.get("error_rate"),
        )


def train(
    model_config: ModelConfig,
    batches: Batches,
    config: TrainConfig,
    *,
    evaluate: Evaluate | None = None,
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


def _check(config: TrainConfig, evaluate: Evaluate | None) -> None:
    if evaluate is None and (config.evaluate_every or config.patience):
        raise InputError(
            explain(
                "Trainer(): `evaluate` is missing",
                expected="a function from the model to an error rate",
                got="None",
                because="the configuration sets evaluate_every or patience",
            )
        )
