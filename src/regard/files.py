"""Writing files so that a crash leaves the old one or the new one, never half of one."""

import contextlib
import errno
import json
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from regard.errors import InputError, explain

__all__ = [
    "as_argument",
    "is_leftover",
    "read_json",
    "replacing",
    "unreadable",
    "unwritable",
    "write_atomically",
    "write_json",
]

_SUFFIX = re.compile(r"\.[a-z0-9_]{8}")  # what tempfile puts behind a prefix


def as_argument(path: str | Path) -> str:
    """Return a path as one writes it in a shell, never taken for an option.

    >>> as_argument("-my model")
    "'./-my model'"
    """
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a stream whose content becomes the file's when the block ends well.

    Whatever goes wrong in the block, the old file is then still there and nothing else is.

    Raises
    ------
    InputError
        The file system refuses the new file or the renaming; what the block itself raises,
        errors of writing included, passes through.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(unwritable(path, error)) from error
    try:
        os.close(handle)
        with open(name, "wb") as stream:  # by name, which the stream then knows
            yield stream
            try:
                stream.flush()
                os.fsync(stream.fileno())
            except OSError as error:
                raise InputError(unwritable(path, error)) from error
        try:
            os.chmod(name, _rights(path))
            os.replace(name, path)
        except OSError as error:
            raise InputError(unwritable(path, error)) from error
        _flush_directory(path.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def is_leftover(name: str, files: Iterable[str]) -> bool:
    """Return whether a file name is one that :func:`replacing` uses on the way to `files`."""
    stem, suffix = name[1:-9], name[-9:]
    return name.startswith(".") and stem in files and bool(_SUFFIX.fullmatch(suffix))


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content: write beside it, flush to the disk, rename.

    Raises
    ------
    InputError
        The file system refuses; the old content is then still there.
    """
    with replacing(path) as stream:
        try:
            stream.write(data)
        except OSError as error:
            raise InputError(unwritable(path, error)) from error


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
            unreadable(
                path,
                error,
                expected=f"a readable {path.name}",
                missing="name the directory that `regard train --out` wrote",
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


def unreadable(path: Path | str, error: OSError, *, expected: str, missing: str) -> str:
    """Lay out why a file cannot be read.

    Parameters
    ----------
    path : path
    error : OSError
        What the system said.
    expected : str
    missing : str
        What to do if there is no such file.
    """
    what = "the file cannot be read"
    if isinstance(error, FileNotFoundError):
        what, got, remedy = "there is no such file", "nothing", missing
    elif isinstance(error, IsADirectoryError):
        what, got, remedy = "this is a directory, not a file", "a directory", "name a file"
    elif isinstance(error, PermissionError):
        got, remedy = "permission denied", "ask for the right to read it"
    else:
        got, remedy = error.strerror or str(error), "check the path"
    return explain(f"{path}: {what}", expected=expected, got=got, help=remedy)


def unwritable(path: Path | str, error: OSError) -> str:
    """Lay out why a file or directory cannot be written; `error` is what the system said."""
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


def _rights(path: Path) -> int:
    """Return the mode of the file that is replaced, or that of any new file."""
    # mkstemp's 0o600 would hide it from colleagues.
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0o666 & ~_umask()


def _umask() -> int:
    # There is no way to ask without setting.
    current = os.umask(0)
    os.umask(current)
    return current
