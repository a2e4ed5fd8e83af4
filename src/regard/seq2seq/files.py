"""Writing files so that a crash leaves the old one or the new one, never half of one."""

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regard.errors import InputError, explain

__all__ = ["claim_directory", "read_json", "write_atomically", "write_json"]


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content: write beside it, flush to the disk, rename.

    Raises
    ------
    InputError
        The file system refuses; the old content is then still there.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(_unwritable(path, error)) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp's 0o600 would hide it from colleagues
        os.replace(name, path)
        _flush_directory(path.parent)
    except OSError as error:
        raise InputError(_unwritable(path, error)) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def write_json(path: Path, form: Any) -> None:
    """Write a JSON file for people to read, as :func:`write_atomically` does."""
    text = json.dumps(form, ensure_ascii=False, indent=2) + "\n"
    write_atomically(path, text.encode("utf-8"))


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    InputError
        It is missing, unreadable or no JSON.
    """
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise InputError(
            explain(
                f"{path}: the file cannot be read",
                expected=f"a readable {path.name}",
                got=error.strerror or str(error),
                help="name the directory that `regard train --out` wrote",
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            explain(
                f"{path}: the file is damaged",
                expected="JSON",
                got=str(error),
                help="copy the directory again, or train again",
            )
        ) from error


def claim_directory(
    path: Path, *, names: Iterable[str], force: bool = False, resume: bool = False
) -> None:
    """Make sure that results can be written to a directory, before any work is done.

    Parameters
    ----------
    path : Path
        Is created if it does not exist.
    names : iterable of str
        The files that will be written. With ``force`` old ones of these names are removed;
        others are never touched.
    force, resume : bool
        A directory with anything in it is refused unless one of them is set.

    Raises
    ------
    InputError
        It has content, is no directory, or cannot be written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        filled = any(path.iterdir())
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(
            explain(
                f"{path}: this is a file, or lies below one",
                expected="a directory to write to, or a new name",
                got="a file",
            )
        ) from error
    except OSError as error:
        raise InputError(_unwritable(path, error)) from error
    if filled and not (force or resume):
        raise InputError(
            explain(
                f"{path}: the directory is not empty",
                expected="a new or an empty directory",
                got="a directory with files in it",
                help="--resume goes on with the run in it, --force starts again over it",
            )
        )
    # A real file of some size: permissions and a full disk both show.
    probe = path / ".room"
    write_atomically(probe, bytes(1 << 16))
    try:
        probe.unlink()
        if force and not resume:
            for name in names:
                (path / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(_unwritable(path, error)) from error


def _unwritable(path: Path, error: OSError) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return explain(
        f"{path}: cannot be written",
        expected="a place with write permission and room",
        got=error.strerror or str(error),
        help="make room, or choose another place" if full else "choose another place",
    )


def _flush_directory(path: Path) -> None:
    # The rename is only on the disk once the directory is; not every system can do that.
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    # There is no way to ask without setting.
    current = os.umask(0)
    os.umask(current)
    return current
