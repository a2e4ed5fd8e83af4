"""The process that user code runs in: ``python -m regard.check.worker``.

Requests come as JSON lines on stdin and answers go as JSON lines to what was stdout; user
code sees neither, and what it prints goes to stderr, which the parent bounds. On Linux every
request is answered by a fork, so that torch is imported once, no target sees what another
did, and one that hangs or dies takes only its fork along. Elsewhere forking a process that
holds array libraries is not safe, and a process answers one request.
"""

import contextlib
import ctypes
import dataclasses
import faulthandler
import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NoReturn

__all__ = ["main"]

_FORKS = sys.platform.startswith("linux") and hasattr(os, "pidfd_open")
_exit = os._exit  # user code finds another one in its place


def main() -> None:
    """Answer requests until stdin ends."""
    requests, answers = _private_streams()
    for line in _lines(requests):
        request = json.loads(line)
        _import_first(request)
        if not (_FORKS and request["fork"]):
            # Nobody else notices here that the parent has gone.
            threading.Thread(target=_end_with, args=(requests,), daemon=True).start()
            _answer(request, answers)
        child = os.fork()
        if child == 0:
            os.setsid()
            os.close(requests)
            _die_with_parent()
            _answer(request, answers)
        status = _wait(child, requests)
        if status is None:
            shutil.rmtree(os.path.dirname(request["folder"]), ignore_errors=True)
            return
        _send(answers, {"number": request["number"], "ended": status})


def _private_streams() -> tuple[int, int]:
    """Move stdin and stdout to numbers that user code does not know."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def _lines(stream: int) -> Iterator[bytes]:
    left = b""
    while True:
        data = os.read(stream, 65536)
        if not data:
            return
        *lines, left = (left + data).split(b"\n")
        yield from lines


def _send(stream: int, message: Mapping[str, Any]) -> None:
    # A line of its own, even after half a line of a fork that was ended.
    data = b"\n" + json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(stream, data) :]


def _import_first(request: Mapping[str, Any]) -> None:
    """Import what is slow, before the clock of the target starts."""
    for name in (request["engine"].partition(":")[0], *request["imports"]):
        # What is wrong with a library shows again, and is reported, when it is used.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.freeze()  # a fork need not look through what the libraries hold


def _wait(child: int, requests: int) -> int | None:
    """Return the status that a fork ended with; None, the fork ended, if the parent has."""
    handle = os.pidfd_open(child)  # type: ignore[attr-defined,unused-ignore]  # Linux only
    try:
        ready, _, _ = select.select([handle, requests], [], [])
    finally:
        os.close(handle)
    for end in (os.killpg, os.kill):  # it may not have a group yet, or have left some behind
        with contextlib.suppress(OSError):
            end(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return None if requests in ready else os.waitstatus_to_exitcode(status)


def _end_with(requests: int) -> None:
    while os.read(requests, 65536):
        pass
    _exit(1)


def _die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        set_signal_of_parents_death = 1
        ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGKILL, 0, 0, 0)


def _answer(request: Mapping[str, Any], answers: int) -> NoReturn:
    """Check one target, send the answer, and end this process."""
    _send(answers, {"number": request["number"], "started": os.getpid()})
    # A file, because a target that prints without end would drown it elsewhere.
    trace = open(os.path.join(request["folder"], "trace"), "w")  # noqa: SIM115 - to the end
    faulthandler.enable(trace)
    faulthandler.dump_traceback_later(request["seconds"], file=trace)
    reply: dict[str, Any]
    try:
        reply = {"report": _check(request)}
    except BaseException as error:  # whatever user code raises
        reply = {"failed": _describe(error, request["path"])}
    from regard.check.confine import refusals  # noqa: PLC0415 - as in _check

    reply |= {"number": request["number"], "refused": refusals()}
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _send(answers, reply)
    _exit(0)


def _check(request: Mapping[str, Any]) -> str:
    from regard.check.confine import confine, limit  # noqa: PLC0415 - after the clock started
    from regard.check.wire import dump  # noqa: PLC0415

    name, _, function = request["engine"].partition(":")
    engine = importlib.import_module(name)
    folder = os.path.join(request["folder"], "scratch")
    os.mkdir(folder)
    tempfile.tempdir = os.environ["TMPDIR"] = os.environ["MPLCONFIGDIR"] = folder
    # As a script of the folder finds its neighbours; a package is found from above.
    first, *last = request["import_folders"]
    sys.path[:] = [first, *sys.path, *last]
    sys.argv = [request["path"]]
    limit(request["memory"], request["seconds"])
    confine(folder)
    report = getattr(engine, function)(
        request["source"],
        request["path"],
        request["entry"],
        request["contract"],
        _options(engine.Options, request),
    )
    return dump(report)


def _options(kind: Any, request: Mapping[str, Any]) -> Any:
    # A search for repairs may take a quarter of the time; the relations need the rest.
    given = {
        "seconds": request["seconds"] / 4,
        "package": request["package"],
        **request["options"],
    }
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in given.items() if name in known})


def _describe(error: BaseException, path: str) -> dict[str, Any]:
    """Say what was raised, and where in the user's file."""
    place = os.path.abspath(path)
    frames = [
        (number, frame.f_code.co_name)
        for frame, number in _walk(error.__traceback__)
        if os.path.abspath(frame.f_code.co_filename) == place
    ]
    line = frames[-1][0] if frames else 0
    text = ""
    with contextlib.suppress(Exception):  # even this is user code
        text = str(error)
    if isinstance(error, SyntaxError) and error.filename in (path, place):
        line = error.lineno or 0
    return {
        "type": type(error).__name__,
        "regards": "regard.errors" in {kind.__module__ for kind in type(error).__mro__},
        "memory": isinstance(error, MemoryError) or "DefaultCPUAllocator" in text,
        "text": text[:2000],
        "line": line,
        "loading": (bool(frames) and frames[0][1] == "<module>")
        or isinstance(error, SyntaxError),
        "trace": "".join(traceback.format_exception(error))[-4000:],
    }


def _walk(trace: TracebackType | None) -> Iterator[tuple[Any, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


if __name__ == "__main__":
    main()
