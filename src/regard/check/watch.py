"""``with regard.watch(): model(x)``: named axes in the errors of your own run.

An exception that leaves the block is the one that was raised, with a note: the operation in
your words, each operand by its name with its axes named, the two axes that clash, and the line
where the wrong one was made. At the end, one line tells which operations silently stretched an
axis that nobody wrote.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any

from regard.errors import InputError, explain

__all__ = ["Watch", "watch"]

_MOST = 5  # broadcasts that the line names
_LIBRARY_ERRORS = (ValueError, RuntimeError, IndexError, TypeError)
_OURS = os.path.join("check", "live", "torch_mode.py")


def watch(*, report: bool = True, **sizes: int) -> "Watch":
    """Watch a block of your own code.

    Parameters
    ----------
    report : bool
        Whether silent broadcasts are told on stderr at the end of the block;
        :attr:`Watch.summary` has them in any case.
    **sizes : int
        Names of your axes with their sizes in this run, as ``batch=32, T_enc=50``. Sizes that
        are not declared are named after variables and attributes that hold them.

    Returns
    -------
    watch : Watch
        A context manager.

    Raises
    ------
    InputError
        A size is not a whole number of at least 1.

    Notes
    -----
    PyTorch's calls are followed as they run, in the thread that entered the block. Of NumPy's
    and other libraries' what failed is read off the traceback. NumPy tells nobody of its
    operations, so where the block's own code uses it, broadcasts are read off each line before
    it runs, from the shapes of what its names hold; what the text does not tell, such as the
    result of a function of your own inside the expression, is passed over, and a line is read
    its first 16 times. That needs Python's trace function, so under a debugger, or where
    coverage is measured by it, NumPy's broadcasts are not seen. Results stay as they are. Code
    that ``torch.compile`` compiles is not followed.

    Examples
    --------
    >>> import numpy as np, regard
    >>> query, keys = np.ones((3, 7)), np.ones((11, 7))
    >>> with regard.watch(T_dec=3, T_enc=11, d_h=7):
    ...     scores = query @ keys.T
    """
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(
                explain(
                    f"watch(): `{name}` is no size",
                    expected="a whole number of at least 1",
                    got=repr(size)[:60],
                )
            )
    return Watch(sizes, report=report)


class Watch:
    """A block under watch; make one with :func:`watch`.

    Parameters
    ----------
    sizes : mapping of str to int
    report : bool
        As :func:`watch` takes them.
    """

    def __init__(self, sizes: Mapping[str, int], *, report: bool = True) -> None:
        self._sizes = dict(sizes)
        self._report = report
        self._depth = 0
        self._mode: Any = None
        self._failed: tuple[int, str, Any] | None = None
        self._sites: dict[tuple[CodeType, Any], str] = {}
        self._lines: Any = None

    def __enter__(self) -> "Watch":
        self._depth += 1
        if self._depth == 1 and "torch" in sys.modules:
            from regard.check.live.torch_mode import Watching  # noqa: PLC0415 - needs torch

            self._mode = Watching(_Outermost(self))
            self._mode.__enter__()
        if self._depth == 1 and "numpy" in sys.modules:
            from regard.check.live.frames import user_frame  # noqa: PLC0415
            from regard.check.live.lines import Lines, uses_numpy  # noqa: PLC0415

            frame = user_frame(sys._getframe(1))
            if uses_numpy(frame):
                self._lines = Lines(self._stretched, self._sizes)
                self._lines.start(frame)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth:
            return
        lines, self._lines = self._lines, None
        if lines is not None:
            lines.stop()
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(kind, error, trace)
        if isinstance(error, Exception):
            self.annotate(error)
        if self._report and self.broadcasts:
            print(f"regard.watch: {self.summary}", file=sys.stderr)

    @property
    def broadcasts(self) -> tuple[str, ...]:
        """Operations that stretched an axis nobody wrote, one text a place in the code.

        Stretched masks, biases, tables that are learned, and axes of size 1 that the code put
        in (``[:, None]``, ``unsqueeze``, ``keepdim``) are not listed.
        """
        return tuple(text for text in self._sites.values() if text)

    @property
    def summary(self) -> str:
        """One line on the silent broadcasts."""
        found = self.broadcasts
        if not found:
            return "no silent broadcast was seen"
        more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
        noun = "broadcast" if len(found) == 1 else "broadcasts"
        return f"{len(found)} silent {noun}: {'; '.join(found[:_MOST])}{more}"

    def annotate(self, error: BaseException) -> bool:
        """Add the note to an exception raised under watch; return whether there is one.

        It is never added twice, and never fails.
        """
        with contextlib.suppress(Exception):
            _without_us(error)
            for one in _chain(error):
                text = self._note(one)
                if text:
                    one.add_note(text)
                    return True
        return False

    def _stretched(self, code: CodeType, line: int, text: str) -> None:
        self._sites.setdefault((code, (line, text)), text)

    def _note(self, error: BaseException) -> str:
        from regard.check.live.note import HEAD, note_of  # noqa: PLC0415 - only on failure

        if any(note.startswith(HEAD) for note in getattr(error, "__notes__", ())):
            return ""
        if self._failed is not None and self._failed[:2] == (id(error), str(error)):
            return note_of(self._failed[2])
        if not isinstance(error, _LIBRARY_ERRORS):
            return ""
        from regard.check.live.expression import failure_of  # noqa: PLC0415

        failure = failure_of(error, self._sizes)
        return "" if failure is None else note_of(failure)


class _Outermost:
    """What the mode tells: kept as text and shapes, so that no memory is held."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def failed(
        self,
        error: Exception,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        frame: FrameType | None,
    ) -> None:
        from regard.check.live.failed import failure_in  # noqa: PLC0415 - only on failure

        watch = self._watch
        ledger = watch._mode.ledger
        failure = failure_in(
            ledger, function, arguments, keywords, frame=frame, declared=watch._sizes
        )
        if failure is not None:
            watch._failed = (id(error), str(error), failure)

    def stretched(self, made: Any, frame: FrameType | None) -> None:
        code, at = made.code, made.at
        if code is None or (code, at) in self._watch._sites:
            return
        from regard.check.live.failed import stretch_text  # noqa: PLC0415 - once a place

        self._watch._sites[code, at] = ""
        self._watch._sites[code, at] = stretch_text(
            self._watch._mode.ledger, made, frame, self._watch._sizes
        )


def _without_us(error: BaseException) -> None:
    """Take the mode's own frames out of a traceback: the user's run is what it shows."""
    for one in _chain(error):
        trace = one.__traceback__
        while trace is not None:
            after = trace.tb_next
            if after is not None and after.tb_frame.f_code.co_filename.endswith(_OURS):
                trace.tb_next = after.tb_next
            else:
                trace = after


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__
