"""All that blame is laid from: the case, its recording, its names, its text."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from regard.check.cause.text import Text
from regard.check.contract import Contract
from regard.check.naming import Names, names_of
from regard.check.relations.base import Bench, Case, Verdict
from regard.check.sizes import names_in
from regard.check.subject import Crash
from regard.check.trace.records import Node, Site, Span, Trace

__all__ = ["Suspect", "View"]


@dataclass(frozen=True)
class Suspect:
    """A place that may be the cause, with what can be said of it in named axes."""

    span: Span
    node: Node | None = None
    what: str = ""  # what is wrong there, a message of its own where that is known
    rule: str = ""  # the rule that names it best, where it is not the verdict's
    expected: tuple[str, ...] = ()
    kind: str = ""
    explains: frozenset[str] = field(default_factory=frozenset)


class View:
    """One case as blame sees it."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.contract: Contract = case.contract
        self.states: dict[str, str] = {}  # relation -> holds or fails
        self.odd: list[Suspect] | None = None  # kept by regard.check.cause.odd
        self.text = Text(case.loaded.source)

    @property
    def bench(self) -> Bench:
        """The bench at the first set of sizes."""
        return self.case.bench(0)

    @cached_property
    def trace(self) -> Trace:
        """The recording of the plain run; an empty one where there is none."""
        return self.recording(self.bench)

    @staticmethod
    def recording(bench: Bench) -> Trace:
        """The recording of a bench's plain run; an empty one where there is none."""
        trace: Any = bench.trace
        if isinstance(trace, Trace):
            return trace
        return Trace(crash=trace if isinstance(trace, Crash) else None)

    @cached_property
    def names(self) -> Names:
        """Names of sizes at the first set."""
        return names_of(self.bench.probe, self.bench.sizes)

    @cached_property
    def live(self) -> set[int]:
        """Nodes that an output was computed from."""
        return self.trace.live()

    @cached_property
    def key_names(self) -> set[str]:
        """Names of the axis of keys, and of its parts."""
        token = self.contract.key_axis
        if not token:
            return set()
        # A part of a product is keys (height of height*width), a part of a sum is not.
        return {token} if "+" in token else {token, *names_in(token)}

    @property
    def site(self) -> Site | None:
        """The site that makes the weights: the last one whose weights are used."""
        live = [s for s in self.trace.sites if s.weights.index in self.live]
        return next(iter(live or self.trace.sites), None)

    def output(self, name: str) -> Node | None:
        """The node of a result."""
        names = self.contract.out_names
        if name in names and names.index(name) < len(self.trace.outputs):
            return self.trace.outputs[names.index(name)]
        return None

    def blame(
        self, node: Node | None, aspect: str = "here", what: str = "", **more: Any
    ) -> list[Suspect]:
        """A node as a list of one suspect, or of none where the user's file did not make it."""
        if node is None or node.span is None:
            return []
        return [Suspect(self.text.blame(node, aspect), node, what, **more)]

    def named(self, about: str) -> Node | None:
        """The node of an argument or parameter of that name."""
        trace = self.trace
        return trace.inputs.get(about) or trace.params.get(about) or self.output(about)

    def reads(self) -> list[tuple[Node, int, int]]:
        """Sizes that the code reads: the tensor, the axis, the line."""
        found = []
        for read in self.trace.reads:
            rank = len(read.node.shape)
            axes = [read.axis] if read.axis is not None else self.text.shape_axes(read.line)
            found += [(read.node, a % rank, read.line) for a in axes if -rank <= a < rank]
        return found

    def fallback(self, verdict: Verdict) -> list[Suspect]:
        """Where to look when nothing points anywhere: the softmax, the result, the start."""
        found: list[Suspect] = []
        if self.site is not None:
            found += self.blame(self.site.weights, "axis")
        output = self.output(verdict.about)
        if output is not None:
            found += self.blame(output)
        back = self.text.last_return(self.case.loaded.entry)
        if back is not None:
            found.append(Suspect(self.text.whole(back.lineno)))
        found.append(Suspect(self.text.definition(self.case.loaded.entry)))
        return found
