"""What every expression of a file is when it runs: its kind, shape and number type.

The file is run once with each expression wrapped in a recorder, and once as it is with its
local names read line by line. A candidate edit can then be of the right kind: an axis that
exists, a mask where a mask is due, a size that is in reach.
"""

import ast
import builtins
import contextlib
import copy
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.probe import Probe
from regard.check.sizes import Sizes
from regard.check.subject import Crash, Instance, TookTooLong, limit, load

__all__ = ["Observed", "Seen", "observe"]

_RECORDER = "_regard_seen"
_MOST = 6


@dataclass
class Seen:
    """What a value was, over the first few times it was computed.

    ``kind`` is ``float``, ``mask`` or ``index`` for tensors of floating-point numbers,
    booleans or integers; ``int``, ``real``, ``bool``, ``text``, ``none`` for plain values;
    ``module``, ``function``, ``list``, ``tuple``, ``dict`` or ``other``.
    """

    kind: str
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    dtype: str = ""
    count: int = 0

    @property
    def is_tensor(self) -> bool:
        """Whether it is an array of any number type."""
        return self.kind in ("float", "mask", "index")

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The first shape seen."""
        return self.shapes[0] if self.shapes else None

    @property
    def rank(self) -> int | None:
        """Number of axes, where it was always the same."""
        ranks = {len(s) for s in self.shapes}
        return ranks.pop() if len(ranks) == 1 else None

    @property
    def value(self) -> Any:
        """The first value seen, of a plain number or text."""
        return self.values[0] if self.values else None


@dataclass
class Observed:
    """What one run showed: expressions by number, names by function, lines that ran."""

    expressions: dict[int, Seen] = field(default_factory=dict)
    names: dict[tuple[str, int], dict[str, Seen]] = field(default_factory=dict)
    attributes: dict[tuple[str, int], dict[str, Seen]] = field(default_factory=dict)
    lines: set[int] = field(default_factory=set)
    crash: Crash | None = None


def observe(
    tree: ast.Module,
    numbered: dict[ast.AST, int],
    source: str,
    *,
    path: str,
    entry: str,
    contract: Contract,
    seed: int = 0,
) -> Observed:
    """Run a file and return what its expressions and names were.

    ``tree`` is the source's, ``numbered`` the expressions to look at. Never raises: where the
    code crashes, what was seen until then is returned.
    """
    seen = Observed()
    if "torch" in source:
        # An import that the clock interrupts is never finished.
        with contextlib.suppress(ImportError):
            importlib.import_module("torch")
    with contextlib.suppress(Exception, TookTooLong), limit(4.0):
        run = _runner(source, path, entry, contract, seed)
        seen.crash = _with_names(run, path, seen)
    with contextlib.suppress(Exception, TookTooLong), limit(4.0):
        wrapped = ast.unparse(
            ast.fix_missing_locations(_Wrap(numbered).visit(_copy(tree, numbered)))
        )

        def record(number: int, value: Any) -> Any:
            # Whatever a user's object does when it is looked at, their run goes on.
            with contextlib.suppress(Exception):
                _add(seen.expressions, number, value)
            return value

        setattr(builtins, _RECORDER, record)
        try:
            _runner(wrapped, path, entry, contract, seed)()
        finally:
            delattr(builtins, _RECORDER)
    return seen


def _runner(
    source: str, path: str, entry: str, contract: Contract, seed: int
) -> Callable[[], Crash | None]:
    def run() -> Crash | None:
        loaded = load(source, path, entry)
        if isinstance(loaded, Crash):
            return loaded
        sizes = Sizes(0, contract.sizes)
        instance = Instance(loaded, contract, sizes)
        if instance.crash is not None:
            return instance.crash
        lists = [v for v in contract.values.values() if isinstance(v, list)]
        for choice in range(max((len(v) for v in lists), default=1)):
            probe = Probe(contract, sizes, seed=seed, choice=choice)
            result = instance.call(probe.args)
            if isinstance(result, Crash):
                return result
        return None

    return run


def _with_names(run: Callable[[], Crash | None], path: str, seen: Observed) -> Crash | None:
    owners: dict[tuple[str, int], Any] = {}

    def look(frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename != path:
            return None
        key = (code.co_name, code.co_firstlineno)
        seen.lines.add(frame.f_lineno)
        here = frame.f_locals
        names = seen.names.setdefault(key, {})
        if code.co_name != "<module>":
            for name, value in list(here.items()):
                if name.isidentifier():
                    _add(names, name, value)
        if "self" in here and key not in owners:
            owners[key] = here["self"]
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        crash = run()
    finally:
        sys.settrace(before)
    for key, owner in owners.items():
        found = seen.attributes.setdefault(key, {})
        for name, value in _attributes(owner):
            _add(found, name, value)
    return crash


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    state = dict(vars(owner)) if hasattr(owner, "__dict__") else {}
    for inner in ("_parameters", "_buffers", "_modules"):
        state |= state.pop(inner, None) or {}
    for name, value in state.items():
        if not name.startswith("_") and name != "training":
            yield name, value


def _add(table: dict[Any, Seen], key: Any, value: Any) -> None:
    if isinstance(value, np.generic):
        value = value.item()  # a number out of an array is a plain number
    known = table.get(key)
    if known is None or (known.kind == "none" and value is not None):
        known = table[key] = Seen(kind_of(value))
    known.count += 1
    if known.count > 64:
        return
    shape = _shape(value)
    if shape is not None and len(known.shapes) < _MOST and shape not in known.shapes:
        known.shapes.append(shape)
        known.dtype = known.dtype or str(getattr(value, "dtype", ""))
    if isinstance(value, int | float | str) and len(known.values) < _MOST:
        if value not in known.values:
            known.values.append(value)
    elif known.kind in ("list", "tuple") and not known.values:
        known.values.append(len(value))


def kind_of(value: Any) -> str:
    """Return the kind of a value, as :class:`Seen` names them."""
    if value is None:
        return "none"
    for kind, types in (("bool", bool), ("int", int), ("real", float), ("text", str)):
        if isinstance(value, types):
            return kind
    dtype = str(getattr(value, "dtype", ""))
    if dtype and isinstance(getattr(value, "shape", None), tuple):
        return "mask" if "bool" in dtype else "float" if "float" in dtype else "index"
    if hasattr(value, "named_parameters"):
        return "module"
    for kind, container in (("list", list), ("tuple", tuple), ("dict", dict)):
        if isinstance(value, container):
            return kind
    return "function" if callable(value) else "other"


def _shape(value: Any) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(value, "dtype"):
        return None
    return tuple(int(n) for n in shape)


def _copy(tree: ast.Module, numbered: dict[ast.AST, int]) -> ast.Module:
    for node, number in numbered.items():
        node._regard_number = number  # type: ignore[attr-defined]
    return copy.deepcopy(tree)


class _Wrap(ast.NodeTransformer):
    """Wraps every numbered expression in a call of the recorder."""

    def __init__(self, numbered: dict[ast.AST, int]) -> None:
        self.numbered = numbered

    def generic_visit(self, node: ast.AST) -> ast.AST:
        number = getattr(node, "_regard_number", None)
        node = super().generic_visit(node)
        if number is None or not isinstance(node, ast.expr):
            return node
        return ast.Call(
            ast.Name(_RECORDER, ast.Load()), [ast.Constant(number), node], keywords=[]
        )
