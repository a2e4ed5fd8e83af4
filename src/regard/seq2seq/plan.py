"""How many steps a run has and when it looks at the held-out data; from a number or a time.

A run with a number of steps has one plan. A run with a time budget measures its pace and plans
anew a few times. The learning rate follows the share of the run that is done, which goes on
without a jump from one plan to the next. A plan holds from its step on, and it is saved before
that step is taken: a run that is taken up again repeats it and measures nothing anew.
"""

import math
from dataclasses import astuple, dataclass
from typing import Any

from regard.seq2seq.clock import Clock
from regard.seq2seq.settings import TrainConfig

__all__ = ["Plan", "Planner"]

_OPEN = 10**9
"""Steps of a run whose pace is not known yet: its share done is as good as 0."""

_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
"""Of the budget, when it is planned anew: early for the pace, late for the end."""

_WORTH = 0.005
"""Share of the budget by which a plan must be wrong before it is replaced."""

_FEWEST = 10  # steps, before a pace is trusted
_LOOKING = 0.2  # share of what is left that looks may take


@dataclass(frozen=True)
class Plan:
    """What holds from one step on.

    Attributes
    ----------
    step : int
        Steps done when it was made.
    total : int
        Steps of the whole run.
    every : int
        Steps between two looks at the held-out data; 0 for none before the end.
    done : float
        Share of the run that was done when it was made, 0 to 1.
    looked : int
        Steps done at the look before it was made; looks are counted from there.

    Examples
    --------
    >>> plan = Plan(step=10, total=30, every=5, done=0.2, looked=8)
    >>> plan.share_done(20)
    0.6
    >>> [step for step in range(11, 31) if plan.is_look(step)]
    [13, 18, 23, 28, 30]
    """

    step: int
    total: int
    every: int
    done: float = 0.0
    looked: int = 0

    def position(self, step: int) -> float:
        """Return where a step lies in a run of ``total`` steps that was even throughout."""
        left = (1.0 - self.done) * self.total * (step - self.step)
        return self.done * self.total + left / max(1, self.total - self.step)

    def share_done(self, step: int) -> float:
        """Return the share of the run that is done after ``step`` steps, 0 to 1."""
        return self.position(step) / self.total

    def is_look(self, step: int) -> bool:
        """Return whether the held-out data are looked at after ``step`` steps."""
        if step >= self.total:
            return True
        return bool(self.every) and (step - self.looked) % self.every == 0

    def to_json(self) -> list[Any]:
        """Return its numbers."""
        return list(astuple(self))

    @classmethod
    def from_json(cls, form: Any) -> "Plan":
        """Rebuild a plan.

        Raises
        ------
        TypeError, ValueError
            ``form`` is not what :meth:`to_json` returned.
        """
        step, total, every, done, looked = form
        return cls(int(step), int(total), int(every), float(done), int(looked))


class Planner:
    """Plans a run that has a time budget.

    Parameters
    ----------
    budget : float
        Seconds, by the clock that :meth:`replan` is given.
    looks : int
        At the held-out data, over the whole run; fewer where they would take more than a fifth
        of the time. 0 for none.
    most : int
        Steps that the run has at most.
    finals : int
        Looks after the last step: weights that are scored before they may be the final ones.
    """

    def __init__(self, budget: float, *, looks: int, most: int, finals: int = 0) -> None:
        self._budget = budget
        self._looks = looks
        self._most = most
        self._finals = finals
        self._next = 0  # of the shares at which a plan is due
        self._steps = (0, 0.0)  # steps, and the seconds they took, at the last plan
        self._seen = (0, 0.0)  # the same for looks
        self._look = 0.0  # seconds that one takes

    @classmethod
    def of(cls, config: TrainConfig, *, looks: int) -> "Planner | None":
        """Return the planner of a run; None if the number of its steps is given."""
        if not config.time_budget:
            return None
        finals = int(bool(looks) and config.average >= 2)
        return cls(config.time_budget, looks=looks, most=config.steps, finals=finals)

    def first(self) -> Plan:
        """Return the plan to begin with: no end in sight, no look."""
        return Plan(0, min(self._most, _OPEN), 0)

    def to_json(self) -> list[Any]:
        """Return what it has measured."""
        return [self._next, *self._steps, *self._seen, self._look]

    def go_on(self, form: Any) -> None:
        """Go on with what an earlier sitting had measured.

        Raises
        ------
        TypeError, ValueError
            ``form`` is not what :meth:`to_json` returned.
        """
        due, steps, step_seconds, looks, look_seconds, look = form
        self._next = int(due)
        self._steps = (int(steps), float(step_seconds))
        self._seen = (int(looks), float(look_seconds))
        self._look = float(look)

    def is_due(self, clock: Clock, step: int, looks: int) -> bool:
        """Return whether it is time for :meth:`replan`, after so many steps and looks."""
        elapsed = clock.elapsed()
        if step < _FEWEST and elapsed < self._budget:
            return False
        # What a look costs is only known after the first one.
        if looks and not self._seen[0]:
            return True
        return self._next < len(_SHARES) and elapsed >= _SHARES[self._next] * self._budget

    def replan(self, plan: Plan, step: int, clock: Clock, *, looks: int, looked: int) -> Plan:
        """Return the plan that holds from now on.

        Parameters
        ----------
        plan : Plan
            That holds until now.
        step : int
            Steps done.
        clock : Clock
            Knows what was spent on ``steps``, ``looks`` and ``saves``.
        looks, looked : int
            Looks taken so far, and the step of the last one.

        Returns
        -------
        plan : Plan
            The same one if it is right to half a hundredth of the budget.
        """
        self._pass(clock)
        is_first = not plan.step
        share = min(1.0, clock.elapsed() / self._budget)
        pace, look = self._pace(step, clock), self._look_cost(looks, clock)
        spent = {name: clock.spent_on(name) for name in ("steps", "looks", "saves")}
        saving = min(0.5, spent["saves"] / max(1e-9, sum(spent.values())))
        left = (self._budget - clock.elapsed()) * (1.0 - saving) - self._finals * look
        wanted = 0
        if self._looks:
            # Before the first look two are planned, so that there is one to learn from.
            wanted = max(1 if looks else 2, round(self._looks * (1.0 - share)))
            if look:
                wanted = max(1, min(wanted, int(_LOOKING * max(0.0, left) / look)))
        steps = max(0.0, left - wanted * look) / pace
        total = max(step, min(self._most, step + math.floor(steps)))
        if not is_first and abs(total - plan.total) * pace < _WORTH * self._budget:
            return plan
        every = math.ceil((total - looked) / wanted) if wanted > 1 else 0
        done = share if is_first else plan.share_done(step)
        return Plan(step, total, every, min(1.0, done), looked)

    def _pass(self, clock: Clock) -> None:
        share = clock.elapsed() / self._budget
        self._next = sum(due <= share for due in _SHARES)

    def _pace(self, step: int, clock: Clock) -> float:
        """Return seconds a step, of late."""
        seconds = clock.spent_on("steps")
        steps, before = self._steps
        # A short stretch says little: batches differ.
        if step - steps < 2 * _FEWEST or seconds - before < 0.02 * self._budget:
            return max(1e-9, seconds / max(1, step))
        self._steps = (step, seconds)
        return max(1e-9, (seconds - before) / (step - steps))

    def _look_cost(self, looks: int, clock: Clock) -> float:
        """Return seconds a look, of late: a model that has learnt little answers slowly."""
        seconds = clock.spent_on("looks")
        seen, before = self._seen
        if looks > seen:
            self._look = (seconds - before) / (looks - seen)
            self._seen = (looks, seconds)
        return self._look
