"""PyTorch: every call of its Python interface passes a function mode, which takes a note."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode

from regard.check.live.ledger import Ledger
from regard.check.live.nodes import name_of
from regard.check.trace.signatures import ELEMENTWISE, operation

__all__ = ["Listener", "Watching"]

_SKIP, _PLAIN, _PAIR = range(3)
_SEEN_PROPERTIES = frozenset({"T", "mT", "H", "mH", "data", "real"})
_NO_TENSOR = frozenset(
    {"dim", "size", "numel", "nelement", "stride", "is_contiguous", "requires_grad_", "item"}
    | {"tolist", "is_floating_point", "get_device", "backward", "data_ptr", "storage", "numpy"}
    | {"__len__", "__repr__", "__format__", "__bool__", "__int__", "__float__", "__index__"}
    | {"__hash__", "__contains__", "__set__", "is_complex", "untyped_storage", "finfo"}
)


class Listener(Protocol):
    """Who is told of failures and of operations that stretch axes."""

    def failed(
        self,
        error: Exception,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        frame: FrameType | None,
    ) -> None:
        """An operation raised."""

    def stretched(self, result: Any, frame: FrameType | None) -> None:
        """An elementwise operation made a result larger than one of its operands."""


class Watching(TorchFunctionMode):
    """Notes each call that the user's code makes; library code inside one counts as one.

    While a compiler traces, it steps aside.
    """

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self.ledger = Ledger(torch.Tensor, torch.nn.Parameter)
        self._listener = listener
        self._kinds: dict[Any, int] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = _kind(func)
        if kind == _SKIP:
            return func(*args, **(kwargs or {}))
        try:
            result = func(*args, **(kwargs or {}))
        except Exception as error:
            with contextlib.suppress(Exception):  # the user's exception is the one that counts
                self._listener.failed(error, func, args, kwargs or {}, sys._getframe(1))
            raise
        try:
            frame = sys._getframe(1)
            made = self.ledger.note(func, args, kwargs, result, frame)
            if kind == _PAIR and made is not None and _stretches(made.shape, args, kwargs):
                self._listener.stretched(made, frame)
        except Exception:  # never into the user's run, and cheaper than contextlib.suppress
            return result
        return result


def _kind(function: Callable[..., Any]) -> int:
    if type(function).__name__ in ("OpOverload", "OpOverloadPacket"):  # a compiler's
        return _SKIP
    name = name_of(function)
    if getattr(function, "__name__", "") in ("__get__", "__set__"):
        return _PLAIN if name in _SEEN_PROPERTIES else _SKIP
    if name in _NO_TENSOR:
        return _SKIP
    return _PAIR if operation(name)[0] in ELEMENTWISE else _PLAIN


def _stretches(
    shape: tuple[int, ...], args: tuple[Any, ...], keywords: Mapping[str, Any] | None
) -> bool:
    for value in args:
        if isinstance(value, torch.Tensor) and value.shape != shape and value.numel() > 1:
            return True
    return bool(keywords) and any(
        isinstance(v, torch.Tensor) and v.shape != shape and v.numel() > 1
        for v in (keywords or {}).values()
    )
