"""The command ``regard``: ready for Ctrl-C before anything slow is imported."""

import io
import os
import sys
from collections.abc import Sequence

from regard.cli.stop import listen, stop_listening

__all__ = ["main", "run"]


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str
        Without the program's name.
    """
    from regard.cli.verbs import run_verb

    return run_verb(arguments)


def main() -> None:
    """Run the command line of this process."""
    listen()
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # UTF-8 whatever the locale; an argument that was no text shows as escapes.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    stop_listening()
    sys.exit(code)


def _fill_closed_streams() -> None:
    """Keep files that are opened later from taking the number of a closed stream."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the very end
