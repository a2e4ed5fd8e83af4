"""Standard streams, and files to read lines from or write them to."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import click

from regard.cli.stop import before_stopping
from regard.errors import InputError, explain
from regard.files import replacing, unreadable, unwritable

__all__ = ["Sink", "flush", "opened", "refuse_existing", "say", "silence", "written"]

_STDOUT = "standard output"


class Sink:
    """A text stream whose errors say where they happened.

    Parameters
    ----------
    stream : text file or None
        None, as Python has it for a closed standard stream, is refused.
    name : str
        For messages.

    Raises
    ------
    InputError
        On writing too: the system refuses. A reader that has gone away stays a
        BrokenPipeError.
    """

    def __init__(self, stream: IO[str] | None, name: str) -> None:
        if stream is None:
            raise InputError(
                explain(
                    f"{name} is closed",
                    expected="somewhere to write results",
                    got="a closed stream",
                    help="do not close it, or send it to a file",
                )
            )
        self._stream = stream
        self._name = name

    @property
    def is_terminal(self) -> bool:
        """Whether people see it at once, and escape sequences are obeyed."""
        return self._stream.isatty()

    def write(self, text: str) -> None:
        """Write a text."""
        self._tried(lambda: self._stream.write(text))

    def flush(self) -> None:
        """Send what was written on its way."""
        self._tried(self._stream.flush)

    def _tried(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BrokenPipeError:
            raise
        except OSError as error:
            if self._name == _STDOUT:
                silence()
            raise InputError(unwritable(self._name, error)) from error


def say(text: str) -> None:
    """Write a line of results to stdout.

    Raises
    ------
    InputError
        It is closed, or cannot be written.
    """
    sink = Sink(sys.stdout, _STDOUT)
    sink.write(text + "\n")
    sink.flush()


def flush() -> None:
    """Send on what stdout holds back, unless it is closed.

    Raises
    ------
    InputError
        It cannot be written.
    """
    stdout: IO[str] | None = sys.stdout  # closed, it is None, whatever its type says
    if stdout is not None:
        Sink(stdout, _STDOUT).flush()


def silence() -> None:
    """Send stdout nowhere: Python would complain of what it could not write at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def opened(source: str | None, *, holds: str = "text") -> Iterator[IO[bytes]]:
    """Open a file to read lines from; None and ``-`` are stdin.

    Parameters
    ----------
    source : str or None
    holds : str
        What a line is, for messages.

    Raises
    ------
    InputError
        It cannot be read.
    """
    if source is None or source == "-":
        # Closed, it is None, whatever its type says.
        stdin: IO[str] | None = sys.stdin
        if stdin is None:
            raise InputError(
                explain(
                    "standard input is closed",
                    expected=f"{holds}s to read, one a line",
                    got="a closed stream",
                    help="name a file instead, or give it lines",
                )
            )
        if stdin.isatty():
            click.echo(f"type one {holds} a line; Ctrl-D ends", err=True)
        yield stdin.buffer  # type: ignore[attr-defined]  # a text file over a binary one
        return
    try:
        stream = open(source, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(
            unreadable(
                source,
                error,
                expected=f"a readable file, one {holds} a line",
                missing="check the path",
            )
        ) from error
    with stream:
        yield stream


@contextmanager
def written(
    output: str | None, *, source: str | None, force: bool, example: str = "answers.tsv"
) -> Iterator[Sink]:
    """Open where results go; a file appears, or is replaced, when the block ends well.

    Parameters
    ----------
    output : str or None
        None and ``-`` are stdout.
    source : str or None
        The input, which may not be the same file; ``-`` is stdin, None is nothing.
    force : bool
        Replace a file that exists.
    example : str
        A name for such a file, to suggest.

    Raises
    ------
    InputError
        It exists, is the input, or cannot be written.
    """
    if output is None or output == "-":
        yield Sink(sys.stdout, _STDOUT)
        return
    # Through links, so that a link stays one and its file is replaced.
    path = Path(os.path.realpath(output))
    _check(path, output, source, force, example)
    if path.exists() and not path.is_file():  # a device or a named pipe
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            sink = Sink(stream, output)
            yield sink
            sink.flush()
        return
    with replacing(path) as binary, before_stopping(_remover(binary.name)):
        yield Sink(_Encoder(binary), output)  # type: ignore[arg-type]  # all that Sink uses
        _check(path, output, source, force, example)


class _Encoder:
    """As much of a UTF-8 text file as a sink uses; closing it is the other file's affair."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.flush = stream.flush

    def write(self, text: str) -> int:
        return self._stream.write(text.encode("utf-8", "backslashreplace"))

    def isatty(self) -> bool:
        return False


def _remover(name: str) -> Callable[[], None]:
    def remove() -> None:
        with suppress(OSError):
            os.unlink(name)

    return remove


def refuse_existing(out: str, force: bool, *inputs: str) -> None:
    """Refuse an output that is an input, or that exists and may not be written over.

    Raises
    ------
    InputError
        It is so.
    """
    there = [path for path in inputs if os.path.exists(path)]
    if os.path.exists(out) and any(os.path.samefile(out, path) for path in there):
        raise InputError(
            explain(
                f"{out}: the output is the input",
                expected="another file to write to",
                got="a file that is read",
            )
        )
    if os.path.exists(out) and not force:
        raise InputError(
            explain(
                f"{out}: the file exists",
                expected="a new file",
                got="one that would be written over",
                help="choose another name, or give --force",
            )
        )


def _check(path: Path, output: str, source: str | None, force: bool, example: str) -> None:
    if path.is_dir():
        raise InputError(
            explain(
                f"{output}: this is a directory",
                expected="the name of a file to write",
                got="a directory",
                help=f"name a file in it, as {os.path.join(output, example)}",
            )
        )
    if _same(path, source):
        raise InputError(
            explain(
                f"{output}: the output is the input",
                expected="another file to write to",
                got="the file that is read",
                help="choose another name",
            )
        )
    if path.is_file() and not force:
        raise InputError(
            explain(
                f"{output}: the file exists",
                expected="a new name",
                got="an existing file",
                help="--force writes over it",
            )
        )


def _same(path: Path, source: str | None) -> bool:
    """Return whether a path leads to the file that is read."""
    try:
        if source == "-":
            return os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
        return source is not None and os.path.samefile(path, source)
    except (OSError, ValueError, AttributeError):  # no such file, or stdin is no file
        return False
