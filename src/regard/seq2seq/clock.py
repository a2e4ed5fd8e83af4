"""The time of a run, over all its sittings, and what it was spent on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from regard.errors import InputError, explain

__all__ = ["CLOCKS", "Clock"]

CLOCKS = ("wall", "cpu")


class Clock:
    """Counts the seconds of a run.

    Parameters
    ----------
    kind : {"wall", "cpu"}
        ``wall`` is what a person waits. ``cpu`` counts what this process computes, all its
        threads together: on a busy machine it makes runs comparable.
    spent : float
        Seconds that the run has behind it when the clock is made.
    read : callable, optional
        Returns seconds, instead of the system's clock.

    Raises
    ------
    InputError
        ``kind`` is unknown.
    """

    def __init__(
        self, kind: str = "wall", *, spent: float = 0.0, read: Callable[[], float] | None = None
    ) -> None:
        if kind not in CLOCKS:
            raise InputError(
                explain(
                    "Clock(): `kind` is unknown", expected=" or ".join(CLOCKS), got=repr(kind)
                )
            )
        self._read = read or (time.monotonic if kind == "wall" else time.process_time)
        self._began = self._read() - spent
        self._spent: dict[str, float] = {}

    def elapsed(self) -> float:
        """Return the seconds since the run began, pauses between sittings left out."""
        return self._read() - self._began

    def spent_on(self, what: str) -> float:
        """Return the seconds that passed within :meth:`during` of this name."""
        return self._spent.get(what, 0.0)

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Count the time of a block under a name."""
        began = self._read()
        try:
            yield
        finally:
            self._spent[what] = self.spent_on(what) + self._read() - began

    def to_json(self) -> dict[str, Any]:
        """Return what :meth:`go_on` needs."""
        return {"elapsed": self.elapsed(), "spent": dict(self._spent)}

    def go_on(self, form: dict[str, Any]) -> None:
        """Go on from where an earlier sitting was saved.

        What this sitting has used so far, to read data for example, counts on top.

        Raises
        ------
        KeyError, TypeError, ValueError
            ``form`` is not what :meth:`to_json` returned.
        """
        self._began -= float(form["elapsed"])
        self._spent = {str(name): float(value) for name, value in form["spent"].items()}
