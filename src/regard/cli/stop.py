"""Ctrl-C outside a run's own handling: one word, exit code 130, at any moment.

Python's own way, an exception wherever the program happens to be, goes wrong while modules are
imported: libraries catch it, or leave half of a module behind. Here the process ends inside the
handler. What must be tidied first is said to :func:`before_stopping`.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["before_stopping", "listen", "stop_listening"]

_CODE = 128 + signal.SIGINT
_SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it

_tidying: list[Callable[[], str | None]] = []


def listen() -> None:
    """End the process on Ctrl-C; a signal that is ignored, as under nohup, stays ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)


def stop_listening() -> None:
    """Ignore Ctrl-C: everything is done, and the exit code is decided."""
    # Python would die of the signal while it shuts down; an ignored one stays ignored.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def before_stopping(tidy: Callable[[], str | None]) -> Iterator[None]:
    """Within the block, have `tidy` called before Ctrl-C ends the process.

    Parameters
    ----------
    tidy : callable
        May return a line to print, for example how to go on.
    """
    _tidying.append(tidy)
    try:
        yield
    finally:
        _tidying.remove(tidy)


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines = ["interrupted"]
    for tidy in reversed(_tidying):
        with suppress(Exception):  # nothing may keep the process from ending
            said = tidy()
            lines += [said] if said else []
    with suppress(OSError):
        start = f"{_SHOW_CURSOR}\n" if os.isatty(2) else ""
        os.write(2, (start + "\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    os._exit(_CODE)
