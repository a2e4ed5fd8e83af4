"""What a recording consists of: tensors, softmax sites, sizes that were read.

Nothing here knows PyTorch: a node's value is handed out as a NumPy array, float64 where the
tensor holds floats, so that a relation or a renderer reads every library alike.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.check.subject import Crash

__all__ = ["Node", "Site", "SizeRead", "Span", "Trace"]


@dataclass(frozen=True)
class Span:
    """A span of the user's file; columns count characters from 1, the end is exclusive."""

    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0


@dataclass(eq=False)
class Node:
    """One tensor.

    ``op`` is one name for all spellings (``matmul`` for ``@``, ``bmm`` stays ``bmm``; in-place
    operations have the name of the other form and ``arguments["inplace"]``); tensors that
    exist before the call have the ops ``input``, ``param``, ``buffer`` and ``const``.
    ``arguments`` holds what is no tensor under PyTorch's names (``dim``, ``keepdim``,
    ``equation``); operands of an operation stand in ``inputs`` in the order of the equation.
    ``axes`` are named by :mod:`regard.check.naming`.
    """

    index: int
    op: str
    span: Span | None = None
    inputs: tuple["Node", ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    axes: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset()
    lines: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    dtype: str = ""
    uses: list["Node"] = field(default_factory=list, repr=False)
    _raw: Any = field(default=None, repr=False)
    _value: np.ndarray | None = field(default=None, repr=False)

    @property
    def value(self) -> np.ndarray:
        """The numbers when the operation had just run; floats as float64."""
        if self._value is None:
            self._value = _as_numpy(self._raw, self.shape)
        return self._value

    @property
    def line(self) -> int:
        """The user's line that made it, 0 for what existed before."""
        return self.span.line if self.span else 0

    def __repr__(self) -> str:
        axes = ", ".join(self.axes or map(str, self.shape))
        return f"<{self.index} {self.name or '-'} = {self.op} ({axes}) line {self.line}>"


@dataclass(eq=False)
class Site:
    """One softmax, by name or by its effect, or the one inside a fused call.

    ``query`` and ``key`` are the operands of the product that made the scores, seen through
    scaling, masking and views; None where scores come from no product of two. ``slope`` is the
    factor from their product to the scores, ``r2`` how well one factor explains it. ``pre_ops``
    lead from the product (or the vector that sums up an additive score) to the scores,
    ``post_ops`` from the weights to the contraction with ``value`` that gives ``context``.
    """

    index: int
    scores: Node
    weights: Node
    axis: int | tuple[int, ...] | None
    span: Span | None
    query: Node | None = None
    key: Node | None = None
    product: Node | None = None  # the node of q.k, or of v.tanh(...)
    slope: float | None = None
    r2: float | None = None
    pre_ops: tuple[Node, ...] = ()
    post_ops: tuple[Node, ...] = ()
    value: Node | None = None
    context: Node | None = None
    contraction: Node | None = None  # where weights meet values
    fused: bool = False


@dataclass(frozen=True)
class SizeRead:
    """The user's code asked a tensor for the size of an axis; None: for the whole shape."""

    node: Node
    axis: int | None
    size: int
    line: int


@dataclass(eq=False)
class Trace:
    """A recording. After a crash it holds all up to it, and ``failed``: the operation."""

    nodes: list[Node] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    outputs: list[Node | None] = field(default_factory=list)
    inputs: dict[str, Node] = field(default_factory=dict)
    params: dict[str, Node] = field(default_factory=dict)
    broadcasts: list[Node] = field(default_factory=list)
    reads: list[SizeRead] = field(default_factory=list)
    crash: Crash | None = None
    failed: Node | None = None

    def above(self, *nodes: Node | None) -> set[int]:
        """Indices of all nodes that the given ones were computed from, themselves included."""
        found: set[int] = set()
        stack = [n for n in nodes if n is not None]
        while stack:
            node = stack.pop()
            if node.index not in found:
                found.add(node.index)
                stack += node.inputs
        return found

    def live(self) -> set[int]:
        """Indices of the nodes that an output was computed from."""
        return self.above(*self.outputs)

    def live_sites(self) -> list[Site]:
        """The softmaxes that an output was computed from, in the order of the run."""
        live = self.live()
        return [site for site in self.sites if site.weights.index in live]


def _as_numpy(raw: Any, shape: tuple[int, ...]) -> np.ndarray:
    if raw is None:
        return np.full(shape, np.nan)
    if hasattr(raw, "detach"):
        raw = raw.detach()
        raw = raw.double() if raw.is_floating_point() else raw
        raw = raw.cpu().resolve_conj().resolve_neg().numpy()
    array = np.asarray(raw)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
