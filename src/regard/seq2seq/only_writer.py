"""One writer a directory: a second run into it is refused while the first one goes on."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import InputError, explain

try:
    import fcntl
except ImportError:  # Windows, where a second run is not noticed
    fcntl = None  # type: ignore[assignment]

__all__ = ["only_writer"]


@contextmanager
def only_writer(directory: Path) -> Iterator[None]:
    """Hold a directory while the block runs.

    The system lets go of it when the process ends, however it ends, so that no run has to be
    tidied up after. Nothing is written.

    Parameters
    ----------
    directory : Path
        Is there.

    Raises
    ------
    InputError
        Another run holds it.

    Notes
    -----
    File systems that know no locks, as some on a network, let every run in.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                explain(
                    f"{directory}: another run is writing to this directory",
                    expected="a directory of this run's own",
                    got="one that a running process holds",
                    help="wait for that run, stop it, or choose another --out",
                )
            ) from None
        except OSError:
            pass  # no locks here
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)
