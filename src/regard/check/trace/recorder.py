"""Keeps nodes by the identity of the user's tensors, and finds the user's line of each.

A recorder never raises into the user's run: what it cannot follow, it leaves out.
"""

import ast
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from regard.check.trace.records import Node, Site, SizeRead, Span, Trace
from regard.check.trace.weighing import normaliser

__all__ = ["Recorder", "Replace"]

Replace = Callable[[int, np.ndarray], np.ndarray | None]
_LIMIT = 20_000  # tensors; a loop of a user's training run must not fill the memory


class Recorder:
    """Notes operations while the user's code runs; the two libraries' hooks feed it.

    Parameters
    ----------
    path, source : str
        The user's file: frames of other files are not theirs.
    replace : callable, optional
        Given a site's index and weights, may return other weights to go on with.
    """

    def __init__(self, path: str, source: str, replace: Replace | None = None) -> None:
        self.trace = Trace()
        self.path, self.replace = path, replace
        self._nodes: dict[int, Node] = {}
        self._alive: list[Any] = []  # an identity is reused once its object is gone
        self.owners: dict[int, Any] = {}  # memory -> the array that is all of it
        self._homes: dict[int, CodeType] = {}  # node -> the code that made it
        self._aliases: dict[int, str] = {}  # names in other functions than the maker's
        self._lines = source.splitlines()
        self._positions: dict[CodeType, list[Any]] = {}
        self._targets: dict[tuple[int, int, int, int], str] | None = None
        self._source = source
        self._frames: list[FrameType] = []

    # What the hooks call.

    def declare(
        self, tensor: Any, op: str, name: str, source: str = "", *, alias: Any = None
    ) -> Node:
        """Note a tensor that exists before the call."""
        node = self._add(op, tensor, (), {}, alias=alias)
        node.name = name
        node.sources = frozenset({source} if source else ())
        return node

    def find(self, tensor: Any) -> Node | None:
        """The newest node of a tensor."""
        return self._nodes.get(id(tensor))

    def operand(self, tensor: Any) -> Node:
        """The node of an operand; what was made unseen becomes a constant."""
        node = self._nodes.get(id(tensor))
        return node if node is not None else self._add("const", tensor, (), {})

    def note(
        self,
        op: str,
        result: Any,
        inputs: Sequence[Node],
        arguments: dict[str, Any],
        *,
        alias: Any = None,
    ) -> Node | None:
        """Note one result of an operation that has just run.

        ``alias`` is the object the user holds, where it is not ``result`` itself.
        """
        if len(self.trace.nodes) >= _LIMIT:
            return None
        node = self._add(op, result, inputs, arguments, alias=alias)
        self._place(node)
        return node

    def site(self, node: Node) -> Site | None:
        """Whether a node that was just noted is a softmax; then it becomes the next site."""
        found = normaliser(node)
        if found is None:
            return None
        scores, axis = found
        return self.add_site(scores, node, axis)

    def add_site(
        self, scores: Node, weights: Node, axis: Any, *, fused: bool = False, **known: Any
    ) -> Site:
        """Append a site."""
        index = len(self.trace.sites)
        site = Site(index, scores, weights, axis, weights.span, fused=fused, **known)
        self.trace.sites.append(site)
        return site

    def other_weights(self, site: Site, value: np.ndarray) -> np.ndarray | None:
        """Ask the caller of the recording for other weights at a site."""
        if self.replace is None:
            return None
        other = self.replace(site.index, value)
        return (
            None if other is None else np.asarray(other, dtype=np.float64).reshape(value.shape)
        )

    def read(self, tensor: Any, axis: int | None, size: int) -> None:
        """Note that the user's code asked for a size."""
        node = self._nodes.get(id(tensor))
        frames = self._user_frames()
        if node is not None and frames:
            self.trace.reads.append(SizeRead(node, axis, size, frames[-1].f_lineno))

    def fail(self, op: str, inputs: Sequence[Node], arguments: dict[str, Any]) -> None:
        """Note an operation that raised; the last one counts."""
        node = Node(len(self.trace.nodes), op, None, tuple(inputs), arguments)
        node.sources = _sources(inputs)
        self._place(node)
        self.trace.failed = node

    def finish(self, outputs: Iterable[Any]) -> Trace:
        """Close the recording: names that only the source tells, uses, outputs."""
        trace = self.trace
        for node in trace.nodes:
            if not node.name and node.span is not None:
                node.name = self._assigned(node.span) or self._aliases.get(node.index, "")
            for operand in node.inputs:
                operand.uses.append(node)
        trace.outputs = [self._nodes.get(id(o)) for o in outputs]
        return trace

    # Inside.

    def _add(
        self,
        op: str,
        tensor: Any,
        inputs: Sequence[Node],
        arguments: dict[str, Any],
        *,
        alias: Any = None,
    ) -> Node:
        node = Node(len(self.trace.nodes), op, None, tuple(inputs), arguments)
        node.sources = _sources(inputs)
        node.shape = tuple(int(n) for n in tensor.shape)
        node.dtype = str(tensor.dtype).removeprefix("torch.")
        # A copy, since the user's code may write into the tensor later.
        node._raw = tensor.detach().clone() if hasattr(tensor, "detach") else np.array(tensor)
        self.trace.nodes.append(node)
        held = tensor if alias is None else alias
        self._nodes[id(held)] = node
        self._alive.append(held)
        return node

    def _user_frames(self) -> list[FrameType]:
        frame: FrameType | None = sys._getframe(2)
        found = []
        while frame is not None:
            if frame.f_code.co_filename == self.path:
                found.append(frame)
            frame = frame.f_back
        found.reverse()
        return found

    def _place(self, node: Node) -> None:
        frames = self._user_frames()
        if not frames:
            return
        self._frames = frames
        node.lines = tuple(f.f_lineno for f in frames)
        node.span = self._span(frames[-1])
        self._homes[node.index] = frames[-1].f_code
        for frame in reversed(frames[-2:]):
            self._read_names(frame)

    def _read_names(self, frame: FrameType) -> None:
        """Name the tensors that the user's variables hold at this moment."""
        for name, value in frame.f_locals.items():
            node = self._nodes.get(id(value))
            if node is None or node.name or name.startswith("."):
                continue
            if self._homes.get(node.index) is frame.f_code:
                node.name = name
            else:
                self._aliases.setdefault(node.index, name)

    def _span(self, frame: FrameType) -> Span:
        code = frame.f_code
        if code not in self._positions:
            self._positions[code] = list(code.co_positions())
        line, end_line, column, end_column = self._positions[code][frame.f_lasti // 2]
        line = line or frame.f_lineno
        if column is None or end_column is None:
            return Span(line, 1, line, 1)
        end_line = end_line or line
        return Span(
            line,
            self._characters(line, column) + 1,
            end_line,
            self._characters(end_line, end_column) + 1,
        )

    def _characters(self, line: int, column: int) -> int:
        """Python counts bytes in a line, readers count characters."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        if text.isascii():
            return column
        return len(text.encode()[:column].decode(errors="ignore"))

    def _assigned(self, span: Span) -> str:
        if self._targets is None:
            self._targets = _assignments(self._source)
        here = (span.line, span.column - 1, span.end_line, span.end_column - 1)
        return self._targets.get(here, "")


def _sources(inputs: Sequence[Node]) -> frozenset[str]:
    return frozenset().union(*(n.sources for n in inputs)) if inputs else frozenset()


@functools.lru_cache(maxsize=64)
def _assignments(source: str) -> dict[tuple[int, int, int, int], str]:
    """Spans of expressions whose value a variable gets at once."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    found: dict[tuple[int, int, int, int], str] = {}

    def put(target: ast.expr, value: ast.expr | ast.stmt) -> None:
        if isinstance(target, ast.Name):
            end_line, end_column = value.end_lineno, value.end_col_offset
            if end_line is not None and end_column is not None:
                found[value.lineno, value.col_offset, end_line, end_column] = target.id
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=False):
                put(one, its)

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                put(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            put(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            put(node.target, node)
    return found
