"""Progress of a training run on stderr: a bar in a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.seq2seq.train import Progress

__all__ = ["TrainingProgress"]

_LINES = 10  # of a run whose stderr is no terminal, besides one for each look


class TrainingProgress:
    """A context whose :meth:`show` takes the events of a run."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._loss: float | None = None
        self._began = time.monotonic()
        self._first: int | None = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "TrainingProgress":
        if sys.stderr.isatty():
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
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[said]}"),
                console=Console(stderr=True),
                transient=False,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, said="")
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
        # Single batches are noisy; what is shown is an average over about fifty.
        self._loss = event.loss if self._loss is None else 0.98 * self._loss + 0.02 * event.loss
        if self._first is None:
            self._first = event.step - 1
        if self._bar is not None:
            best = "" if event.best is None else f"  error rate {100 * event.best:.2f} %"
            said = f"loss {self._loss:.3f}{best}"
            self._bar.update(self._task, completed=event.step, said=said)
            return
        due = event.step % max(1, event.total // _LINES) == 0
        if due or event.evaluation is not None or event.step == event.total:
            print(self._line(event), file=sys.stderr, flush=True)

    def _line(self, event: "Progress") -> str:
        line = f"step {event.step}/{event.total}  loss {self._loss:.3f}"
        if event.evaluation is not None:
            line += f"  held-out error rate {100 * event.evaluation.error_rate:.2f} %"
        left = event.total - event.step
        if left and self._first is not None:
            pace = (time.monotonic() - self._began) / (event.step - self._first)
            line += f"  about {left * pace:.0f} s left"
        return line
