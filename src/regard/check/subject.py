"""The user's code, built from its text and run: outputs, or the crash with its lines.

Everything here works on NumPy arrays by name; the conversion to the user's own library
(PyTorch, NumPy or plain lists) happens at this one door. A patched text is run the same way,
so a repair is judged by exactly what judged the original.
"""

import ast
import contextlib
import hashlib
import inspect
import linecache
import os
import random
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.sizes import Sizes

__all__ = [
    "Crash",
    "Instance",
    "Loaded",
    "Outcome",
    "TookTooLong",
    "crash_of",
    "flat",
    "limit",
    "load",
    "quiet",
    "surroundings",
]

Value = Any  # np.ndarray, a number, a list, or a tuple of arrays


class TookTooLong(BaseException):
    """A call ran past its share of the time; no `except Exception` of the user stops it."""


@dataclass(frozen=True)
class Crash:
    """An exception in the user's code: what, and every line of theirs it passed."""

    kind: str
    message: str
    line: int
    lines: tuple[int, ...]  # outermost first; the last is `line`
    stage: str = "call"  # "load" | "build" | "call"
    column: int = 1
    end_column: int = 1


@dataclass
class Outcome:
    """What a call returned, as NumPy arrays in float64 (or integers, booleans)."""

    outputs: tuple[np.ndarray | None, ...]
    names: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    mutated: tuple[str, ...] = ()
    printed: int = 0
    raw: Any = field(default=None, repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        value = self.outputs[self.names.index(name)]
        if value is None:
            raise KeyError(name)
        return value

    def get(self, name: str | None) -> np.ndarray | None:
        """The output of that name, or None where it is absent."""
        if name is None or name not in self.names:
            return None
        index = self.names.index(name)
        return self.outputs[index] if index < len(self.outputs) else None


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
    """Stop the block after so many seconds of wall time (main thread, POSIX)."""

    def late(*_: object) -> None:
        raise TookTooLong

    try:
        before = signal.signal(signal.SIGALRM, late)
    except (ValueError, AttributeError):  # another thread, or no such signal
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


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
    sys.modules[name] = module  # dataclasses and pickling look the module up
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        with quiet():
            exec(code, module.__dict__)
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
    )


class Instance:
    """The target built at one set of sizes, ready to be called.

    Parameters of a PyTorch module are drawn anew from their own names, so that two versions
    of a module that name a parameter alike hold the same numbers, and so that zeros at
    initialisation hide nothing.
    """

    def __init__(self, loaded: Loaded, contract: Contract, sizes: Sizes) -> None:
        self.loaded = loaded
        self.contract = contract
        self.sizes = sizes
        self.library = loaded.library
        self.object: Any = None
        self.crash: Crash | None = None
        try:
            self.object = self._build()
        except TookTooLong:
            raise
        except BaseException as error:
            self.crash = crash_of(error, loaded.path, "build")

    def _build(self) -> Any:
        target = self.loaded.target
        if not isinstance(target, type):
            owner = _owner(self.loaded)
            if owner is None:
                return target
            target = owner
        init = {name: self.sizes.value(v) for name, v in self.contract.init.items()}
        _seed(0)
        with quiet():
            made = target(**init)
            if self.library == "torch" and hasattr(made, "named_parameters"):
                _redraw(made)
                made.to(_torch_dtype(self.contract.dtype))
                made.train(self.contract.mode == "train")
        if "." in self.loaded.entry:
            return getattr(made, self.loaded.entry.split(".")[-1])
        return made

    @property
    def module(self) -> Any:
        """The PyTorch module behind the target, or None."""
        owner = getattr(self.object, "__self__", self.object)
        return owner if hasattr(owner, "named_parameters") else None

    def arguments(self, args: Mapping[str, Value]) -> dict[str, Any]:
        """Convert arguments to the user's library, each a fresh copy."""
        return {name: self._to_library(name, value) for name, value in args.items()}

    def call(self, args: Mapping[str, Value], *, seed: int = 0) -> Outcome | Crash:
        """Run once and return the outputs, or the crash."""
        if self.crash is not None:
            return self.crash
        given = self.arguments(args)
        before = {name: _digest(value) for name, value in given.items()}
        try:
            raw = self.apply(given, seed=seed)
            outputs = tuple(flat(raw))
        except TookTooLong:
            raise
        except BaseException as error:
            return crash_of(error, self.loaded.path, "call")
        names = self.contract.out_names
        if not names:
            names = tuple(f"output {i}" for i in range(len(outputs)))
        mutated = tuple(n for n, value in given.items() if _digest(value) != before[n])
        kinds = tuple(_dtype_name(o) for o in outputs)
        arrays = tuple(None if o is None else _as_numpy(o) for o in outputs)
        return Outcome(arrays, names, kinds, mutated, raw=raw)

    def apply(self, given: dict[str, Any], *, seed: int = 0) -> Any:
        """Call with arguments of the user's library and return the result as it is."""
        _seed(seed)
        with quiet(), self._no_grad():
            return _apply(self.object, given)

    def gradients(
        self, args: Mapping[str, Value], *, seed: int = 0
    ) -> dict[str, np.ndarray | None] | Crash:
        """Gradients of a random weighing of every float output (PyTorch only).

        Keys are ``input:NAME`` and ``param:NAME``; None where nothing flows.
        """
        if self.library != "torch":
            return {}
        if self.crash is not None:
            return self.crash
        import torch  # noqa: PLC0415 - only when the user's code runs on it

        given = self.arguments(args)
        wanted: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                wanted[f"input:{name}"] = value.requires_grad_(True)
        if self.module is not None:
            for name, parameter in self.module.named_parameters():
                if parameter.requires_grad:
                    wanted[f"param:{name}"] = parameter
        _seed(seed)
        try:
            with quiet(), torch.enable_grad():
                given = {
                    n: v.clone() if isinstance(v, torch.Tensor) and v.requires_grad else v
                    for n, v in given.items()
                }
                outputs = list(flat(_apply(self.object, given)))
                generator = torch.Generator().manual_seed(5)
                total = None
                for out in outputs:
                    if not isinstance(out, torch.Tensor) or not out.requires_grad:
                        continue
                    weigh = torch.randn(out.shape, generator=generator).to(out.dtype)
                    # Zero weights meet -inf log-weights as 0 * inf; leave those out.
                    part = torch.where(torch.isfinite(out), out * weigh, 0.0).sum()
                    total = part if total is None else total + part
                if total is None:
                    return dict.fromkeys(wanted)
                found = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
        except TookTooLong:
            raise
        except BaseException as error:
            return crash_of(error, self.loaded.path, "call")
        return {
            name: None if g is None else g.detach().double().numpy()
            for name, g in zip(wanted, found, strict=True)
        }

    def _no_grad(self) -> Any:
        if self.library != "torch":
            return contextlib.nullcontext()
        import torch  # noqa: PLC0415

        return torch.no_grad()

    def _to_library(self, name: str, value: Value) -> Any:
        if isinstance(value, tuple):
            return tuple(self._to_library(name, v) for v in value)
        if not isinstance(value, np.ndarray):
            return value
        floating = np.issubdtype(value.dtype, np.floating)
        if self.library == "torch":
            import torch  # noqa: PLC0415

            tensor = torch.from_numpy(np.ascontiguousarray(value).copy())
            return tensor.to(_torch_dtype(self.contract.dtype)) if floating else tensor
        if self.library == "lists":
            return value.tolist()
        if floating:
            kind = self.contract.dtype if self.contract.dtype != "bfloat16" else "float32"
            return value.astype(kind)
        return value.copy()


def _apply(target: Any, given: dict[str, Any]) -> Any:
    """Call by name; positional-only and var-positional parameters by position."""
    try:
        parameters = inspect.signature(getattr(target, "forward", target)).parameters
    except (TypeError, ValueError):
        return target(**given)
    by_position = [
        n
        for n, p in parameters.items()
        if p.kind is inspect.Parameter.POSITIONAL_ONLY and n in given
    ]
    rest = {n: v for n, v in given.items() if n not in by_position}
    star = [p for p in parameters.values() if p.kind is inspect.Parameter.VAR_POSITIONAL]
    if star and any(n not in parameters for n in rest):
        return target(*given.values())
    return target(*(given[n] for n in by_position), **rest)


def flat(raw: Any) -> Iterator[Any]:
    """Every array of a result: tuples, lists of arrays, dicts and dataclasses opened."""
    if raw is None or hasattr(raw, "shape"):
        yield raw
    elif isinstance(raw, Mapping):
        for value in raw.values():
            yield from flat(value)
    elif isinstance(raw, tuple):
        for value in raw:
            yield from flat(value)
    elif isinstance(raw, list):
        if raw and all(hasattr(v, "shape") for v in raw):
            for value in raw:
                yield from flat(value)
        else:
            yield raw
    elif hasattr(raw, "__dataclass_fields__"):
        for name in raw.__dataclass_fields__:
            yield from flat(getattr(raw, name))
    else:
        yield raw


def _as_numpy(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach()
        if value.is_floating_point():
            value = value.double()
        return np.asarray(value.cpu().numpy())
    array = np.asarray(value)
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array


def _dtype_name(value: Any) -> str:
    return str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")


def _digest(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_digest(v) for v in value)
    if hasattr(value, "detach"):
        value = value.detach()
        return (tuple(value.shape), value.double().cpu().numpy().tobytes())
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    return repr(value)


def _redraw(module: Any) -> None:
    """Give every parameter numbers that depend on its name and shape alone."""
    import torch  # noqa: PLC0415

    norms = {
        id(p)
        for m in module.modules()
        if "Norm" in type(m).__name__
        for p in m.parameters(recurse=False)
    }
    padded = {
        id(m.weight): m.padding_idx
        for m in module.modules()
        if isinstance(m, torch.nn.Embedding) and m.padding_idx is not None
    }
    with torch.no_grad():
        for name, p in module.named_parameters():
            if not p.is_floating_point() or p.numel() == 0:
                continue
            digest = hashlib.sha256(name.encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:6], "big"))
            noise = torch.randn(p.shape, generator=generator)
            last = name.rsplit(".", 1)[-1]
            if p.dim() >= 2:
                fan = p[0].numel() if p.shape[0] > 1 or p.dim() > 2 else p.numel()
                spread = 1.3 if fan == 1 else 1.2
                fresh = noise * spread / fan**0.5
                if "embed" in name.lower() or id(p) in padded:
                    fresh = noise * 0.8
            elif "bias" in last:
                fresh = 0.2 * noise
            elif id(p) in norms:
                fresh = 1.0 + 0.15 * noise
            elif p.numel() == 1:
                fresh = 0.8 + 0.2 * noise.tanh()
            else:
                fresh = 1.5 * noise / p.numel() ** 0.5
            p.copy_(fresh.to(p.dtype))
            if id(p) in padded:
                p[padded[id(p)]] = 0.0


def _owner(loaded: Loaded) -> type | None:
    """The class of a ``Class.method`` entry."""
    parts = loaded.entry.split(".")
    if len(parts) < 2:
        return None
    owner = getattr(loaded.module, parts[0], None)
    return owner if isinstance(owner, type) else None


def _library(source: str, target: Any) -> str:
    if any(c.__module__.split(".")[0] == "torch" for c in getattr(target, "__mro__", ())):
        return "torch"
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
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


def _torch_dtype(name: str) -> Any:
    import torch  # noqa: PLC0415

    return getattr(torch, name)


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the user's code may read the global generator
    torch = sys.modules.get("torch")
    if torch is not None:
        # torch.manual_seed formats a stack for every device it has not woken up yet.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the user's warnings to themselves; what they print is the worker's to bound."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
