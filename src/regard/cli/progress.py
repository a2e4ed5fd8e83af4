"""Progress of a training run on stderr: a bar in a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.seq2seq.train import Progress

__all__ = ["MembersProgress", "TrainingProgress"]

_LINES = 10  # of a run whose stderr is no terminal, besides one for each look


class TrainingProgress:
    """A context whose :meth:`show` takes the events of a run.

    Parameters
    ----------
    total : int
        Steps; with a budget what is planned goes before it.
    budget : float
        Seconds that the run takes; 0 if its steps are counted.
    quiet : bool
        Say nothing: another process of the run speaks.
    """

    def __init__(self, total: int, *, budget: float = 0.0, quiet: bool = False) -> None:
        self._total = total
        self._budget = budget
        self._quiet = quiet
        self._tenth = 0  # of the run, of which a line was printed
        self._loss: float | None = None
        self._began = time.monotonic()
        self._first: int | None = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "TrainingProgress":
        if sys.stderr.isatty() and not self._quiet:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            self._bar = Progress(
                # All of it fits into eighty columns.
                BarColumn(bar_width=20),
                TextColumn("{task.percentage:3.0f} %")
                if self._budget
                else MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[said]}"),
                console=Console(stderr=True),
                transient=False,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=self._budget or self._total, said="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, event: "Progress") -> None:
        """Take one event."""
        if self._quiet:
            return
        # Single batches are noisy; what is shown is an average over about fifty.
        self._loss = event.loss if self._loss is None else 0.98 * self._loss + 0.02 * event.loss
        if self._first is None:
            self._first = event.step - 1
        if self._bar is not None:
            best = "" if event.best is None else f"  error rate {100 * event.best:.2f} %"
            said = f"loss {self._loss:.3f}{best}"
            done, total = (
                (min(event.seconds, self._budget), self._budget)
                if self._budget
                else (event.step, event.total)
            )
            self._bar.update(self._task, completed=done, total=total, said=said)
            return
        if self._is_due(event) or event.evaluation is not None:
            print(self._line(event), file=sys.stderr, flush=True)

    def _is_due(self, event: "Progress") -> bool:
        if not self._budget:
            every = max(1, event.total // _LINES)
            return event.step % every == 0 or event.step == event.total
        tenth = int(_LINES * event.seconds / self._budget)
        due = tenth > self._tenth or event.step == event.total
        self._tenth = max(tenth, self._tenth)
        return due

    def _line(self, event: "Progress") -> str:
        planned = not self._budget or event.share_done > 0.01
        of = f"/{event.total}" if planned else ""
        line = f"step {event.step}{of}  loss {self._loss:.3f}"
        if event.evaluation is not None:
            line += f"  held-out error rate {100 * event.evaluation.error_rate:.2f} %"
        left = self._seconds_left(event)
        return line if left is None else f"{line}  about {left:.0f} s left"

    def _seconds_left(self, event: "Progress") -> float | None:
        steps = event.total - event.step
        if not steps or self._first is None:
            return None
        if self._budget:
            return max(0.0, self._budget - event.seconds)
        pace = (time.monotonic() - self._began) / (event.step - self._first)
        return steps * pace


class MembersProgress:
    """Lines on stderr for the members of an ensemble, which report now and then."""

    def __init__(self) -> None:
        self._tenths: dict[int, int] = {}

    def show(self, member: int, event: "Progress") -> None:
        """Take one event of a member."""
        tenth = int(_LINES * event.share_done)
        if event.evaluation is None and tenth <= self._tenths.get(member, 0):
            return
        self._tenths[member] = tenth
        line = f"member {member}  {100 * event.share_done:.0f} %  step {event.step}"
        line += f"  loss {event.loss:.3f}"
        if event.evaluation is not None:
            line += f"  held-out error rate {100 * event.evaluation.error_rate:.2f} %"
        if 0 < event.share_done < 1:
            left = event.seconds * (1 - event.share_done) / event.share_done
            line += f"  about {left:.0f} s left"
        print(line, file=sys.stderr, flush=True)
