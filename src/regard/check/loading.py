"""The user's text executed: the object to check, or the crash with the user's own lines."""

import ast
import contextlib
import importlib
import linecache
import os
import signal
import sys
import time
import traceback
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "Crash",
    "Loaded",
    "TookTooLong",
    "crash_of",
    "limit",
    "load",
    "prepare",
    "quiet",
    "surroundings",
]


_AGAIN = 0.2  # seconds between alarms once the time is up


class TookTooLong(BaseException):
    """A call ran past its share of the time; no `except Exception` of the user stops it."""


_ARRAYS = frozenset({"torch", "numpy", "einops", "opt_einsum", "scipy", "regard"})


@dataclass(frozen=True)
class Crash:
    """An exception in the user's code: what, and every line of theirs it passed.

    ``package`` is the one whose code raised, called by the user's last line: "" where that is
    the user's own code, or the array library's.
    """

    kind: str
    message: str
    line: int
    lines: tuple[int, ...]  # outermost first; the last is `line`
    stage: str = "call"  # "load" | "build" | "call"
    column: int = 1
    end_column: int = 1
    package: str = ""


@dataclass
class Loaded:
    """A module executed from its text, and the object to check."""

    entry: str
    path: str
    source: str
    module: types.ModuleType
    target: Any
    library: str  # "torch" | "numpy" | "lists"

    @property
    def is_module(self) -> bool:
        """Whether the target is a class to be built first."""
        return isinstance(self.target, type)


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Stop the block after so many seconds of wall time (main thread, POSIX).

    Blocks nest: an outer one goes on with what is left of its own time.
    """

    def late(*_: object) -> None:
        raise TookTooLong

    try:
        before = signal.signal(signal.SIGALRM, late)
    except (ValueError, AttributeError):  # another thread, or no such signal
        yield
        return
    started = time.monotonic()
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    # Again and again: one that falls into a destructor is lost to Python.
    signal.setitimer(signal.ITIMER_REAL, min(seconds, left) if left else seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if left:
            rest = left - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(rest, 1e-3), _AGAIN)


@dataclass(frozen=True)
class _Surroundings:
    package: str = ""
    scope: Mapping[str, Any] = field(default_factory=dict)


_surroundings: dict[str, _Surroundings] = {}


@contextlib.contextmanager
def surroundings(
    path: str, *, package: str = "", scope: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Say where every text of this path belongs, for as long as the block lasts.

    ``package`` is what relative imports start from; ``scope`` holds names that the text finds
    already defined, as a notebook's cell does.
    """
    before = _surroundings.get(path)
    _surroundings[path] = _Surroundings(package, dict(scope or {}))
    try:
        yield
    finally:
        if before is None:
            del _surroundings[path]
        else:
            _surroundings[path] = before


def prepare(source: str) -> None:
    """Import PyTorch before the clock runs, where the text asks for it.

    An import that is cut off midway leaves a library that crashes.
    """
    with contextlib.suppress(SyntaxError, ImportError):
        if "torch" in _imported(ast.parse(source)):
            import torch  # noqa: F401, PLC0415


def load(source: str, path: str, entry: str) -> Loaded | Crash:
    """Execute a module's text and find ``entry`` (``name`` or ``Class.method``) in it."""
    around = _surroundings.get(path, _Surroundings())
    package = around.package
    name = f"{package}.{_stem(path)}" if package else f"_regard_subject_{_stem(path)}"
    module = types.ModuleType(name)
    module.__dict__.update(around.scope)
    module.__dict__.update({"__name__": name})
    module.__file__ = path
    module.__package__ = package
    # Tracebacks and inspect.getsource read the text that ran, not the file on disk.
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        with quiet():
            _run(code, module, package)
    except SyntaxError as error:
        line = error.lineno or 1
        return Crash("SyntaxError", str(error.msg), line, (line,), "load")
    except TookTooLong:
        raise
    except BaseException as error:
        return crash_of(error, path, "load")
    target: Any = module
    for part in entry.split("."):
        if not hasattr(target, part):
            return Crash("AttributeError", f"no {entry!r} in {path}", 1, (1,), "load")
        target = getattr(target, part)
    return Loaded(entry, path, source, module, target, _library(source, target))


def _run(code: types.CodeType, module: types.ModuleType, package: str) -> None:
    """Execute a text as the module that it is in its package.

    A package that imports its own modules as it is imported asks for names that the text has
    not bound yet: it is then imported first, with the file's module in it.
    """
    name, bound, before = module.__name__, dict(module.__dict__), set(sys.modules)
    sys.modules[name] = module  # dataclasses and pickling look the module up
    try:
        exec(code, module.__dict__)
        return
    except ImportError as error:
        if not package or name not in str(error):
            raise
    # What is half imported must not be found again.
    top = package.partition(".")[0]
    for other in [m for m in sys.modules if m == name or m not in before]:
        if other.partition(".")[0] == top:
            del sys.modules[other]
    importlib.import_module(package)
    module.__dict__.clear()
    module.__dict__.update(bound)
    sys.modules[name] = module
    exec(code, module.__dict__)


def crash_of(error: BaseException, path: str, stage: str) -> Crash:
    """Describe an exception by the user's own lines."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    lines = tuple(f.lineno or 0 for f in frames)
    last = frames[-1] if frames else None
    column = (last.colno or 0) + 1 if last and last.colno is not None else 1
    end = (last.end_colno or 0) + 1 if last and last.end_colno is not None else column
    message = str(error).strip() or repr(error)
    return Crash(
        type(error).__name__,
        message[:2000],
        lines[-1] if lines else 0,
        lines,
        stage,
        column,
        end,
        _package(error, path),
    )


def _package(error: BaseException, path: str) -> str:
    """The package that a line of the user's called and that raised, array libraries aside."""
    found = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__") or "").split(".")[0]
        if frame.f_code.co_filename == path:
            found = ""
        elif name not in _ARRAYS and name not in sys.stdlib_module_names:
            found = name
    return found


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the user's warnings to themselves; what they print is the worker's to bound."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _imported(tree: ast.Module) -> set[str]:
    """Packages that a text imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def _library(source: str, target: Any) -> str:
    if any(c.__module__.split(".")[0] == "torch" for c in getattr(target, "__mro__", ())):
        return "torch"
    found = _imported(ast.parse(source))
    if "torch" in found:
        return "torch"
    if "numpy" in found:
        return "numpy"
    function = getattr(target, "forward", target)
    scope = getattr(function, "__globals__", {})
    kinds = {getattr(v, "__name__", "") for v in scope.values()}
    if "torch" in kinds:
        return "torch"
    return "numpy" if "numpy" in kinds else "lists"


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
