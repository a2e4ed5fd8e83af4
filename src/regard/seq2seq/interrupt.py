"""Stopping a long run politely: the first Ctrl-C asks, the second one insists."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interruption"]


class Interruption:
    """A context in which SIGINT and SIGTERM set a flag instead of breaking in.

    Outside the main thread, where Python allows no handlers, it does nothing and
    :attr:`asked` stays None. A second signal meets the handler that was there before.

    Parameters
    ----------
    patient : bool
        Let a second signal change nothing: whoever started several processes sends them more
        than one.

    Attributes
    ----------
    asked : int or None
        The number of the signal that came.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self._patient = patient
        self.asked: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                # A signal that is ignored, as under nohup, stays ignored.
                if before not in (signal.SIG_IGN, None):
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        if not self._patient:
            self._restore()

    def _restore(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()
