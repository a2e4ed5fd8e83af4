"""What the code under check may not do: write files, reach out, start processes.

Two layers, neither a fence against malice. A Python audit hook refuses with a reason that
names what was tried. Where Linux has Landlock, the kernel refuses what compiled code tries.
Reading files stays possible, as it must.
"""

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["REFUSAL", "Refused", "confine", "limit", "refusals"]

REFUSAL = "regard check does not let the code"
"""How the text of every refusal begins."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit event -> positions of its arguments that are paths which would change.
_CHANGES = {
    "os.chflags": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (1,),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.removexattr": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "sqlite3.connect": (0,),
}
_STARTS = {
    "os.exec": "start another program",
    "os.fork": "fork",
    "os.forkpty": "fork",
    "os.posix_spawn": "start another program",
    "os.spawn": "start another program",
    "os.startfile": "start another program",
    "os.system": "start another program",
    "pty.spawn": "start another program",
    "subprocess.Popen": "start another program",
}
_NETWORK = (
    *("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyaddr"),
    *("socket.gethostbyname", "socket.sendmsg", "socket.sendto"),
)
_MOST = 5

_refused: list[str] = []


class Refused(PermissionError):  # noqa: N818 - a word for what happened, as in KeyboardInterrupt
    """The code tried what `regard check` does not let it do.

    A PermissionError, so that a library that can do without (a cache) goes on without.
    """


def refusals() -> tuple[str, ...]:
    """Return what was refused in this process, in order: ``write the file log.txt``."""
    return tuple(_refused)


def confine(folder: str) -> None:
    """Let this process write below one folder only, and start or reach nothing. For good."""
    inside = os.path.realpath(folder) + os.sep
    sys.addaudithook(_hook(inside))
    _close_ways_round()
    with contextlib.suppress(OSError, AttributeError, ValueError):
        _landlock(folder)


def limit(memory: int, seconds: float) -> None:
    """Bound what this process may take: bytes above what it has, and CPU seconds.

    A best effort: not every system has these limits or obeys them.
    """
    try:
        import resource  # noqa: PLC0415 - POSIX only
    except ImportError:
        return
    # A thread more than asked for is no crime; a process that nobody ends would be.
    cpu = int(4 * seconds) + 30
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, 2**28),
        (resource.RLIMIT_AS, _virtual() + memory if _virtual() else resource.RLIM_INFINITY),
    ):
        with contextlib.suppress(OSError, ValueError):
            hard = resource.getrlimit(kind)[1]
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard) if most != resource.RLIM_INFINITY else hard  # noqa: PLW2901
            resource.setrlimit(kind, (most, most))


def _virtual() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _hook(inside: str) -> Callable[[str, tuple[Any, ...]], None]:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING:
                _only_inside(path, inside, "write the file")
        elif event in _CHANGES:
            for position in _CHANGES[event]:
                _only_inside(arguments[position], inside, "change the file")
        elif event in _STARTS:
            _refuse(_STARTS[event])
        elif event in _NETWORK:
            _refuse("use the network")
        elif event in ("os.kill", "os.killpg") and arguments[0] != os.getpid():
            _refuse("send a signal to another process")

    return hook


def _only_inside(path: Any, inside: str, what: str) -> None:
    if isinstance(path, int):  # a stream that is open already
        return
    try:
        text = os.fsdecode(path)
    except TypeError:
        return  # no path: the call itself will fail
    if text in (os.devnull, ":memory:", ""):
        return
    # The file itself may be a link to elsewhere.
    if not (os.path.realpath(text) + os.sep).startswith(inside):
        _refuse(f"{what} {text}")


def _refuse(what: str) -> None:
    if len(_refused) < _MOST and what not in _refused:
        _refused.append(what)
    raise Refused(f"{REFUSAL} {what}")


def _close_ways_round() -> None:
    """Refuse what no audit event announces."""

    def leave(status: int) -> None:
        _refuse(f"call os._exit({status})")

    def start(*arguments: Any) -> None:
        _refuse("start another process")

    os._exit = leave  # type: ignore[assignment]  # the type says that it never returns
    with contextlib.suppress(ImportError):
        import _posixsubprocess  # noqa: PLC0415 - POSIX only

        # What multiprocessing calls.
        _posixsubprocess.fork_exec = start  # type: ignore[assignment]


def _landlock(folder: str) -> None:
    """Have the Linux kernel refuse writes elsewhere, TCP, and signals to the outside."""
    if not sys.platform.startswith("linux"):
        return
    kernel = ctypes.CDLL(None, use_errno=True)
    create, add, restrict = 444, 445, 446  # the same numbers on every architecture
    version = kernel.syscall(create, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return
    # write, remove (2), make (7); then refer and truncate, which came later
    write, truncate = 1 << 1, 1 << 14
    everywhere = write | sum(1 << bit for bit in range(4, 13))
    everywhere |= (1 << 13 if version >= 2 else 0) | (truncate if version >= 3 else 0)
    attributes = struct.pack(
        "QQQ", everywhere, 3 if version >= 4 else 0, 3 if version >= 6 else 0
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = kernel.syscall(create, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return
    to_file = write | (truncate if version >= 3 else 0)
    for path, access in ((folder, everywhere), (os.devnull, to_file)):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        kernel.syscall(add, ruleset, 1, struct.pack("=Qi", access, place), 0)
        os.close(place)
    no_new_privileges = 38
    kernel.prctl(no_new_privileges, 1, 0, 0, 0)
    kernel.syscall(restrict, ruleset, 0)
    os.close(ruleset)
