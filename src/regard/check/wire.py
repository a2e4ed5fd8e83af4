"""Records to JSON and back, losslessly: how a report travels from a worker process.

:meth:`regard.check.finding.Report.as_json` is for readers and leaves things out; this form is
for the parent process, which must not trust a pickle that the user's code could have written.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = ["dump", "load"]

_T = TypeVar("_T")


def dump(record: Any) -> str:
    """Return a frozen record, and those inside it, as one line of JSON."""
    return json.dumps(dataclasses.asdict(record), default=_plain, ensure_ascii=True)


def load(kind: type[_T], text: str) -> _T:
    """Build a record from what :func:`dump` wrote.

    Raises
    ------
    ValueError
        If the text is no JSON or not of the form that the record has.
    """
    built: _T = _build(kind, json.loads(text))
    return built


def _plain(value: Any) -> Any:
    # Scalars of NumPy and PyTorch; whatever else comes is shown rather than lost.
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") and callable(value.item) else str(value)


def _build(kind: Any, data: Any) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        least = next(one for one in inner if one is not type(None))
        return None if data is None and type(None) in inner else _build(least, data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, data)
    if origin is tuple:
        _must(isinstance(data, list), kind, data)
        return tuple(_build(inner[0], item) for item in data)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _must(isinstance(data, dict), kind, data)
        return {key: _build(inner[1], value) for key, value in data.items()}
    if kind in (str, int, bool, float):
        _must(isinstance(data, int | float if kind is float else kind), kind, data)
    return float(data) if kind is float else data


def _record(kind: type, data: Any) -> Any:
    _must(isinstance(data, dict), kind, data)
    hints = typing.get_type_hints(kind)
    unknown = set(data) - set(hints)
    _must(not unknown, kind, sorted(unknown))
    try:
        return kind(**{name: _build(hints[name], value) for name, value in data.items()})
    except TypeError as error:  # a field is missing
        raise ValueError(str(error)) from None


def _must(holds: bool, kind: Any, data: Any) -> None:
    if not holds:
        raise ValueError(f"no {getattr(kind, '__name__', kind)}: {str(data)[:80]}")
