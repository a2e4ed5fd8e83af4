"""The latest operations of a run, without the tensors: what was made where, and from what."""

import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

from regard.check.live.frames import is_library

__all__ = ["Ledger", "Made"]

_KEPT = 8192  # operations; what is older is forgotten
_NOTHING: Mapping[str, Any] = {}


class Made:
    """One tensor: its shape, the call that made it, and the user's instruction.

    Tensors among the arguments are replaced by their own records, so that nothing here keeps
    memory alive. ``function`` is None for what existed before.
    """

    __slots__ = ("arguments", "at", "code", "dtype", "function", "keywords", "learned", "shape")

    def __init__(self, tensor: Any, function: Callable[..., Any] | None = None) -> None:
        self.shape: tuple[int, ...] = tensor.shape
        self.dtype = tensor.dtype
        self.function = function
        self.arguments: tuple[Any, ...] = ()
        self.keywords: Mapping[str, Any] = _NOTHING
        self.code: CodeType | None = None
        self.at = 0
        self.learned = False


class Ledger:
    """Records of the latest tensors, by identity while they live.

    Parameters
    ----------
    tensor, parameter : type
        Of the library whose tensors are followed.
    kept : int
        How many operations are remembered.
    """

    def __init__(self, tensor: type, parameter: type, *, kept: int = _KEPT) -> None:
        self._tensor, self._parameter = tensor, parameter
        self._of: dict[int, tuple[weakref.ref[Any], Made]] = {}
        self._order: deque[tuple[int, Made]] = deque()
        self._kept = kept

    def find(self, tensor: Any) -> Made:
        """Return the record of a tensor; one that was made unseen gets one without a call."""
        entry = self._of.get(id(tensor))
        if entry is not None and entry[0]() is tensor:
            return entry[1]
        made = Made(tensor)
        made.learned = isinstance(tensor, self._parameter)
        self._put(tensor, made)
        return made

    def peek(self, identity: int) -> Made | None:
        """Return the record of the tensor that has an identity now, if there is one."""
        entry = self._of.get(identity)
        return entry[1] if entry is not None and entry[0]() is not None else None

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of the library that is followed."""
        return isinstance(value, self._tensor)

    def given(self, value: Any) -> Any:
        """Return an argument with the tensors in it replaced by their records."""
        if isinstance(value, self._tensor):
            return self.find(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.given, value))
        return value

    def note(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any] | None,
        result: Any,
        frame: FrameType | None,
    ) -> Made | None:
        """Record the results of a call; return the record of a result that stands alone."""
        kind = self._tensor
        if isinstance(result, kind):
            results: Sequence[Any] = (result,)
        elif isinstance(result, tuple | list):  # named ones too, as of max(dim)
            results = [one for one in result if isinstance(one, kind)]
        else:
            return None
        # A run makes millions of calls: the common case is spelled out.
        known, given = self._of, []
        for value in arguments:
            if isinstance(value, kind):
                entry = known.get(id(value))
                is_known = entry is not None and entry[0]() is value
                given.append(entry[1] if is_known and entry else self.find(value))
            else:
                given.append(self.given(value) if type(value) in (tuple, list) else value)
        named = {k: self.given(v) for k, v in keywords.items()} if keywords else _NOTHING
        while frame is not None and is_library(frame.f_code):
            frame = frame.f_back
        made = None
        for tensor in results:
            made = Made(tensor, function)
            made.arguments, made.keywords = tuple(given), named
            if frame is not None:
                made.code, made.at = frame.f_code, frame.f_lasti
            self._put(tensor, made)
        return made if len(results) == 1 else None

    def _put(self, tensor: Any, made: Made) -> None:
        self._of[id(tensor)] = (weakref.ref(tensor), made)
        self._order.append((id(tensor), made))
        if len(self._order) > self._kept:
            key, old = self._order.popleft()
            old.arguments, old.keywords, old.function = (), _NOTHING, None
            entry = self._of.get(key)
            if entry is not None and entry[1] is old:
                del self._of[key]
