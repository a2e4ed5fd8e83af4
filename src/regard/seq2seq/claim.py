"""Claiming an output directory: whose it is, and whether there is room, before any work."""

from collections.abc import Callable, Collection
from pathlib import Path

from regard.errors import InputError, explain
from regard.files import is_leftover, unwritable, write_atomically

__all__ = ["ENSEMBLE", "PROBE", "claim_directory", "other_kind"]

PROBE = ".room"
"""A file that is written and removed again, to see whether there is room."""

ENSEMBLE = "ensemble.json"
"""Written into the directory of an ensemble, and nowhere else."""


def claim_directory(
    path: Path,
    *,
    names: Collection[str],
    is_ours: Callable[[Path], bool] = lambda path: False,
    force: bool = False,
    resume: bool = False,
) -> bool:
    """Make sure that results can be written to a directory, before any work is done.

    Parameters
    ----------
    path : Path
        Is created if it does not exist.
    names : collection of str
        The files that will be written, the one that `is_ours` reads first. With ``force`` old
        ones of these names are removed;
        others are never touched. What a killed process left of writing them is removed too.
    is_ours : callable
        From the directory to whether a run of the same kind is in it; only then does ``force``
        write over it.
    force, resume : bool
        A directory with anything in it is refused unless one of them is set.

    Returns
    -------
    created : bool
        Whether the directory was not there before.

    Raises
    ------
    InputError
        It has content, is no directory, or cannot be written to.
    """
    try:
        created = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        inside = {entry.name for entry in path.iterdir()}
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(
            explain(
                f"{path}: this is a file, or lies below one",
                expected="a directory to write to, or a new name",
                got="a file",
                help="choose another --out",
            )
        ) from error
    except OSError as error:
        raise InputError(unwritable(path, error)) from error
    leftovers = {name for name in inside if name == PROBE or is_leftover(name, {*names, PROBE})}
    if inside - leftovers and not resume:
        _refuse(path, force=force, ours=is_ours(path))
    # A real file of some size: permissions and a full disk both show.
    try:
        write_atomically(path / PROBE, bytes(1 << 16))
        (path / PROBE).unlink()
        # The first name last: as long as anything is left, it says whose it is.
        old = reversed(list(names)) if force and not resume else ()
        for name in [*leftovers, *old]:
            (path / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(unwritable(path, error)) from error
    return created


def other_kind(path: Path, *, wanted: str, found: str, help: str) -> InputError:  # noqa: A002
    """Return the error for a directory of ours that is of another kind than is asked for."""
    return InputError(
        explain(
            f"{path}: the directory holds {found}",
            expected=f"{wanted}, or a new directory",
            got=found,
            because="neither is made into the other, and --force writes over its like only",
            help=f"{help}, choose another --out, or remove the directory",
        )
    )


def _refuse(path: Path, *, force: bool, ours: bool) -> None:
    """Refuse a directory with files in it, unless it is ours and may be written over."""
    if ours and not force:
        raise InputError(
            explain(
                f"{path}: the directory is not empty",
                expected="a new or an empty directory",
                got="a directory with a run in it",
                help="--resume goes on with the run in it, --force starts again over it",
            )
        )
    if not ours:
        raise InputError(
            explain(
                f"{path}: the directory is not empty, and there is no run of ours in it",
                expected="a new or an empty directory",
                got="a directory with other files in it",
                because="--force writes over runs only" if force else None,
                help="choose another --out",
            )
        )
