"""The parent's end of a worker process: ask it about a target, and end it when it must."""

import contextlib
import dataclasses
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from regard.check.answer import read_answer
from regard.check.failure import Failure, Kind, failed
from regard.check.finding import Report
from regard.check.settings import Limits
from regard.check.target import Target, import_folders, package_of

__all__ = ["ENGINE", "WorkerProcess"]

ENGINE = "regard.check.check:check_source"
"""``module:function`` of the signature (source, path, entry, contract, options) -> Report."""

_STARTING = 120.0  # seconds for Python, the engine and torch to load, on a cold disk
_ENDING = 5.0
_GRACE = 0.5  # for the traceback of a target that is out of time
_ENDS = {"ended", "closed"}
_TAIL = 8192  # bytes that are kept of what user code prints
_LONGEST = 2**26  # bytes of an answer
_ENVIRONMENT = {
    # Same run, same bytes; and no process or GPU besides this one.
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TORCHDYNAMO_DISABLE": "1",
}


class WorkerProcess:
    """A process that answers one target after another, started when it is first needed.

    Parameters
    ----------
    limits : Limits
        What a target may take.
    engine : str
        See :data:`ENGINE`.
    fork : bool
        Whether a target may be answered by a fork, where the system allows that.
    """

    def __init__(
        self, limits: Limits | None = None, *, engine: str = ENGINE, fork: bool = True
    ) -> None:
        self._limits = limits or Limits()
        self._engine = engine
        self._fork = fork
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self._count = 0
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._said = bytearray()

    def check(
        self, target: Target, contract: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> Report:
        """Return the report on a target; one that says why, if it could not be checked."""
        if target.broken is not None:
            broken = target.broken
            kind: Kind = "syntax" if broken.is_read else "unread_file"
            return failed(target, Failure(kind, broken.why, broken.line, broken.column))
        began = time.monotonic()
        try:
            report = self._ask(target, contract, options)
        except OSError as error:  # the system gives no process, no pipe, no folder
            self.close()
            report = failed(target, Failure("start", str(error)))
        return dataclasses.replace(
            report,
            seconds=time.monotonic() - began,
            source=report.source or target.source,
            path=report.path or target.path,
        )

    def close(self) -> None:
        """End the process and what it runs."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(
        self, target: Target, contract: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> Report:
        self._start()
        self._count += 1
        folder = os.path.join(self._folder, str(self._count))
        os.mkdir(folder)
        self._said.clear()
        request = {
            "number": self._count,
            "source": target.source,
            "path": target.path,
            "entry": target.entry,
            "contract": contract,
            "options": dict(options),
            "seconds": self._limits.seconds,
            "package": package_of(target.path),
            "engine": self._engine,
            "imports": ["torch"] if re.search(r"\btorch\b", target.source) else [],
            "import_folders": import_folders(target.path),
            "memory": self._limits.memory * 2**20,
            "folder": folder,
            "fork": self._fork,
        }
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # dead already; its answer says so
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        answer = self._await()
        report = read_answer(
            target, answer, trace=_text(folder), said=self._printed(), limits=self._limits
        )
        shutil.rmtree(folder, ignore_errors=True)
        return report

    def _await(self) -> dict[str, Any]:
        """Return the answer with what is known of the end: "status", "late"."""
        message = self._next(_STARTING)
        if message is None or "started" not in message:
            return {"not_started": True, "status": self._end()}
        answer = self._next(self._limits.seconds + _GRACE)
        late = answer is None
        if late:
            _kill(message["started"])
        got = dict(answer or {})
        # The worker confirms the end of a fork; a process without forks just ends.
        while not _ENDS & set(got):
            message = self._next(_ENDING)
            if message is None:
                break
            got.update(message)
        status = got["ended"] if "ended" in got else self._end()
        return {**got, "status": status, "late": late}

    def _next(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message about this request; None when time is up."""
        end = time.monotonic() + seconds
        while True:
            try:
                message = self._answers.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return None
            # A process that somehow outlived its target may still talk about that one.
            if message.get("number") == self._count or "closed" in message:
                return message

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _printed(self) -> str:
        time.sleep(0.02)  # what is on its way through the pipe
        return bytes(self._said).decode("utf-8", "replace").strip()

    def _start(self) -> None:
        if self._alive():
            return
        self.close()
        self._folder = tempfile.mkdtemp(prefix="regard-check-")
        self._answers = queue.Queue()
        self._said = bytearray()
        # -P: the current folder may hold a file named as a module that we need.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-m", "regard.check.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,  # Ctrl-C is for the parent
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for target, stream, into in (
            (_collect, self._process.stdout, self._answers),
            (_drain, self._process.stderr, self._said),
        ):
            threading.Thread(target=target, args=(stream, into), daemon=True).start()

    def _end(self) -> int | None:
        """End the process; return its exit code, which is negative for a signal."""
        process, self._process = self._process, None
        if process is None:
            return None
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()  # on which it ends what it runs, and itself
        try:
            status = process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            _kill(process.pid)
            process.kill()
            status = process.wait()
        return status


def _collect(stream: IO[bytes], into: "queue.Queue[dict[str, Any]]") -> None:
    with stream:
        for line in iter(lambda: stream.readline(_LONGEST), b""):
            try:
                message = json.loads(line)
            except ValueError:
                continue  # not ours: user code can write anywhere
            if isinstance(message, dict):
                into.put(message)
    into.put({"closed": True})


def _drain(stream: IO[bytes], into: bytearray) -> None:
    with stream:
        while data := stream.read1(65536):  # type: ignore[attr-defined]  # a buffered pipe
            into += data[-_TAIL:]
            del into[:-_TAIL]


def _kill(pid: Any) -> None:
    if not isinstance(pid, int) or pid <= 1:
        return
    for end in (getattr(os, "killpg", None), os.kill):
        with contextlib.suppress(OSError):
            if end is not None:
                end(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _text(folder: str) -> str:
    """Return what the fault handler wrote."""
    with contextlib.suppress(OSError):
        return Path(folder, "trace").read_text(encoding="utf-8", errors="replace")
    return ""
