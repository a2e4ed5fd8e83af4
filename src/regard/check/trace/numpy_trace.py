"""NumPy: arguments become arrays of a subclass that notes what is done to it.

Arrays that the user's code makes from nothing (``np.arange``, ``np.zeros``) are followed too:
for the time of the run, the user's module sees NumPy through :class:`Library`.
"""

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from regard.check.trace.contraction import equation
from regard.check.trace.recorder import Recorder
from regard.check.trace.records import Node
from regard.check.trace.signatures import named, operation

__all__ = ["Traced", "following", "plain"]

_MAKERS = frozenset(
    {"arange", "zeros", "ones", "full", "empty", "eye", "identity", "linspace", "tri", "array"}
    | {
        "asarray",
        "triu_indices",
        "tril_indices",
        "meshgrid",
        "stack",
        "concatenate",
        "fromiter",
    }
    | {"triu", "tril", "indices", "repeat", "tile", "where", "ascontiguousarray", "asanyarray"}
)
_METHODS = (
    *("reshape", "transpose", "swapaxes", "squeeze", "ravel", "flatten", "astype", "copy"),
    *("repeat", "take", "cumsum", "dot", "clip", "argmax", "argmin", "argsort", "diagonal"),
    *("sum", "mean", "max", "min", "std", "var", "any", "all", "prod", "round", "compress"),
)
_RANDOM = ("uniform", "normal", "standard_normal", "rand", "randn", "random", "binomial")
_recorders: list[Recorder] = []


class Traced(np.ndarray):
    """An array of the user's run; behaves as the array it views."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        out = keywords.get("out")
        bare = {k: plain(v) for k, v in keywords.items()}
        result = _guarded(
            lambda: getattr(ufunc, method)(*(plain(i) for i in inputs), **bare),
            _reduction(ufunc, method),
            inputs,
            keywords,
        )
        if method == "at":
            return result
        if out is not None:
            _noted(_reduction(ufunc, method), out[0], inputs, {"inplace": True}, given=True)
            return out[0] if len(out) == 1 else out
        keep = {
            k: v for k, v in keywords.items() if k not in ("out", "where", "dtype", "initial")
        }
        return _noted(_reduction(ufunc, method), result, inputs, keep)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _call(func, _spelling(func.__name__, args, kwargs), args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        bare = plain(index)
        tensors = list(_arrays(index))
        result = _guarded(lambda: self.view(np.ndarray)[bare], "getitem", (self, *tensors), {})
        return _noted("getitem", result, (self, *tensors), {"index": _shown(index)})

    def __setitem__(self, index: Any, value: Any) -> None:
        def write() -> None:
            self.view(np.ndarray)[plain(index)] = plain(value)

        inputs = (self, *_arrays(value), *_arrays(index))
        _guarded(write, "setitem", inputs, {})
        arguments: dict[str, Any] = {"index": _shown(index), "inplace": True}
        if not isinstance(value, np.ndarray):
            arguments["value"] = value
        _noted("setitem", self, inputs, arguments, given=True)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> Any:  # noqa: D102, N802
        return _noted("T", self.view(np.ndarray).T, (self,), {})

    @property
    def mT(self) -> Any:  # noqa: D102, N802
        return _noted("mT", self.view(np.ndarray).swapaxes(-1, -2), (self,), {})

    @property
    def shape(self) -> Any:  # noqa: D102
        if _recorders:
            _recorders[-1].read(self, None, 0)
        return self.view(np.ndarray).shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        np.ndarray.shape.__set__(self, shape)  # type: ignore[attr-defined]


def _method(name: str) -> Callable[..., Any]:
    inside = getattr(np.ndarray, name)

    def call(self: Traced, *args: Any, **keywords: Any) -> Any:
        return _call(inside, _spelling(name, (self, *args), keywords), (self, *args), keywords)

    call.__name__ = name
    return call


for _each in _METHODS:
    setattr(Traced, _each, _method(_each))


class Library:
    """The user's ``np``: arrays made from nothing are followed as well."""

    def __init__(self, library: ModuleType) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        inside = getattr(self._library, name)
        if name == "random":
            return Library(inside)
        if name not in _MAKERS and name not in _RANDOM:
            return inside

        def make(*args: Any, **keywords: Any) -> Any:
            if any(isinstance(a, Traced) for a in _arrays([*args, *keywords.values()])):
                if name in ("array", "asarray", "asanyarray", "ascontiguousarray", "fromiter"):
                    return _call(inside, "identity", args, keywords)
                return inside(*args, **keywords)
            result = inside(*args, **keywords)
            return _noted(name, result, tuple(_arrays(args)), {}) if _recorders else result

        return make


@contextlib.contextmanager
def following(recorder: Recorder, module: ModuleType) -> Iterator[None]:
    """Feed the recorder from every array of a module's run."""
    replaced = {k: v for k, v in vars(module).items() if v is np or _is_opaque(v)}
    _recorders.append(recorder)
    vars(module).update({k: Library(v) if v is np else _opened(v) for k, v in replaced.items()})
    try:
        yield
    finally:
        vars(module).update(replaced)
        _recorders.pop()


def _is_opaque(value: Any) -> bool:
    """Whether a value is a softmax of SciPy's, which takes the subclass off."""
    home = str(getattr(value, "__module__", "") or "")
    return home.startswith("scipy.special") and getattr(value, "__name__", "") in (
        "softmax",
        "log_softmax",
        "logsumexp",
    )


def _opened(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, axis: Any = None, **keywords: Any) -> Any:
        return _call(function, function.__name__, (x,), {"axis": axis, **keywords})

    return call


def plain(value: Any) -> Any:
    """Take the subclass off, inside tuples, lists and dicts as well."""
    if isinstance(value, Traced):
        return value.view(np.ndarray)
    if type(value) in (tuple, list):
        return type(value)(plain(v) for v in value)
    if type(value) is dict:
        return {k: plain(v) for k, v in value.items()}
    return value


def _call(func: Any, op: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    inputs = tuple(_arrays(args))
    result = _guarded(
        lambda: func(*plain(tuple(args)), **plain(dict(keywords))), op, inputs, keywords
    )
    out = keywords.get("out")
    if isinstance(out, Traced):
        _noted(op, out, inputs, {"inplace": True}, given=True)
        return out
    positional = [a for a in args if not _has_array(a)]
    return _noted(op, result, inputs, keywords, positional)


def _noted(
    name: str,
    result: Any,
    inputs: tuple[Any, ...],
    keywords: dict[str, Any],
    positional: list[Any] | None = None,
    *,
    given: bool = False,
) -> Any:
    """Note a result and hand it out followed; `given`: the user holds it already."""
    if type(result) in (tuple, list) and not given:
        return type(result)(
            _noted(name, r, inputs, {**keywords, "output": i}, positional)
            if isinstance(r, np.ndarray)
            else r
            for i, r in enumerate(result)
        )
    known = isinstance(result, np.ndarray | np.generic) and result.dtype != object
    if not _recorders or not known:
        return result
    recorder = _recorders[-1]
    try:
        bare = result.view(np.ndarray) if isinstance(result, np.ndarray) else result
        shown = bare.view(Traced) if isinstance(bare, np.ndarray) and not given else result
        op, inplace, _ = operation(name)
        operands = [i for i in inputs if isinstance(i, np.ndarray | np.generic)]
        nodes = tuple(_operand(recorder, i) for i in operands)
        numbers = [i for i in inputs if not isinstance(i, np.ndarray | np.generic)]
        arguments = named(op, [*(positional or []), *numbers], keywords)
        if inputs and numbers and inputs[0] is numbers[0] and op in ("div", "sub", "pow"):
            arguments["turned"] = True  # a number came first: 1 / x, 1 - x
        if inplace:
            arguments["inplace"] = True
        written = equation(op, nodes, arguments)
        if written is not None:
            arguments["written"] = written
        node = recorder.note(op, bare, nodes, arguments, alias=shown)
        if node is None:
            return shown
        if isinstance(shown, np.ndarray) and not given:
            recorder.owners.setdefault(id(_owner(shown)), shown)
        if given:
            _write_through(recorder, result, node)
            _site_in_place(recorder, node, result)
            return result
        return _with_site(recorder, node, shown)
    except Exception:  # the user's run goes on without this node
        return result


def _with_site(recorder: Recorder, node: Node, shown: Any) -> Any:
    site = recorder.site(node)
    if site is None:
        return shown
    other = recorder.other_weights(site, node.value)
    if other is None:
        return shown
    fresh = other.astype(shown.dtype).view(Traced)
    again = recorder.note(
        node.op, fresh.view(np.ndarray), node.inputs, node.arguments, alias=fresh
    )
    if again is not None:
        site.weights = again
    return fresh


def _site_in_place(recorder: Recorder, node: Node, array: Any) -> None:
    site = recorder.site(node)
    other = None if site is None else recorder.other_weights(site, node.value)
    if other is not None and site is not None:
        array.view(np.ndarray)[...] = other
        again = recorder.note(
            node.op, array.view(np.ndarray), node.inputs, node.arguments, alias=array
        )
        site.weights = again or site.weights


def _operand(recorder: Recorder, value: Any) -> Node:
    node = recorder.find(value)
    if node is not None:
        return node
    node = recorder.operand(plain(value)) if not isinstance(value, Traced) else None
    if node is not None:
        return node
    return (
        recorder.declare(value.view(np.ndarray), "const", "")
        if value.base is None
        else (
            recorder.find(value.base) or recorder.declare(value.view(np.ndarray), "const", "")
        )
    )


def _write_through(recorder: Recorder, array: Any, node: Node) -> None:
    """Writing into a view writes into what it is a view of."""
    whole = recorder.owners.get(id(_owner(array)))
    before = recorder.find(whole)
    if before is not None and whole is not None and whole is not array:
        recorder.note(
            node.op, whole.view(np.ndarray), (before, node), {"inplace": True}, alias=whole
        )


def _owner(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _guarded(run: Callable[[], Any], name: str, inputs: tuple[Any, ...], keywords: Any) -> Any:
    try:
        return run()
    except Exception:
        if _recorders:
            with contextlib.suppress(Exception):
                op, _, _ = operation(name)
                arrays = [i for i in inputs if isinstance(i, np.ndarray)]
                nodes = [_operand(_recorders[-1], i) for i in arrays]
                rest = {k: v for k, v in keywords.items() if not _has_array(v)}
                _recorders[-1].fail(op, nodes, named(op, [], rest))
        raise


def _reduction(ufunc: Any, method: str) -> str:
    name: str = ufunc.__name__
    if method == "reduce":
        reductions = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}
        return {**reductions, "logical_and": "all", "logical_or": "any"}.get(name, name)
    if method == "accumulate":
        return "cumsum" if name == "add" else name
    return "outer" if method == "outer" else name


def _spelling(name: str, args: Any, keywords: Any) -> str:
    """NumPy's ``transpose`` is PyTorch's ``permute``, or ``T`` without axes; and so on."""
    if name == "transpose":
        return "permute" if len(args) > 1 or keywords.get("axes") else "T"
    if name == "repeat":
        return "repeat_interleave"
    return name


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _arrays(one)


def _has_array(value: Any) -> bool:
    return any(True for _ in _arrays(value))


def _shown(index: Any) -> Any:
    if isinstance(index, np.ndarray):
        return "tensor"
    if isinstance(index, tuple):
        return tuple(_shown(i) for i in index)
    return index if isinstance(index, int | slice | type(None) | type(...)) else "tensor"
