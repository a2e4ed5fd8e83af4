"""The attentional state: tanh(W_c [context; state])."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import layout
from regard.check.relations.reading import VIEWS, Reading, merged, readings
from regard.check.subject import Crash

__all__ = ["bounded", "joined", "of_query"]

_VIEWS = VIEWS | {"dropout"}
_BENDS = frozenset({"tanh", "sigmoid", "relu", "gelu", "silu", "softplus", "elu", "leaky_relu"})
_CELLS = frozenset({"gru_cell", "lstm_cell", "rnn_tanh_cell", "gru", "lstm", "rnn_tanh"})


@relation(
    "attentional-state-bounded", "tanh(W_c [context; state]) lies within -1 and 1", cost=1
)
def bounded(bench: Bench) -> Verdict | None:
    """Scale the inputs up: a tanh stays within one."""
    names = [r.name for r in bench.contract.returns if r.role == "attentional"]
    if not names:
        return None
    here = layout(bench)
    loud = {n: bench.probe.args[n] * 30.0 for n in bench.probe.floats() if n in here.content}
    out = bench.ok(**loud)
    if out is None:
        return None
    for name in names:
        array = out.get(name)
        if array is not None and np.abs(array).max() > 1.0 + 1e-3:
            return fails(
                "RG504",
                f"`{name}` exceeds 1: it is no tanh(W_c [context; state])",
                level="error",
                about=name,
                lines=_lines(bench, name),
                measured=(
                    Measurement("largest value", f"{np.abs(array).max():.3g}", "must be <= 1"),
                ),
                depends_on=("returns",),
                hidden="the shape is right; only the tanh is missing",
            )
    return holds()


@relation("attentional-state-of-query", "tanh(W_c [context; state]) joins the query", cost=1)
def of_query(bench: Bench) -> Verdict | None:
    """Read the parts that the last projection joins: one is the state that was scored."""
    for name, node, parts, step in _joins(bench):
        if len(parts) != 2:
            continue
        sites = readings(bench)
        own = sites[step : step + 1] if 1 < len(sites) > step else sites
        if own and not any(_is_query(part, own) for part in parts):
            return fails(
                "RG504",
                f"`{name}` joins the context with another state than the query",
                level="error",
                about=name,
                lines=(node.line,) if node.line else (),
                depends_on=("returns",),
                hidden="every shape is right and nothing raises",
            )
    return holds() if any(r.role == "attentional" for r in bench.contract.returns) else None


@relation(
    "attentional-state-joined", "the context comes first, then the state", strict=True, cost=1
)
def joined(bench: Bench) -> Verdict | None:
    """See the activation and the order of the two parts."""
    sites = readings(bench)
    for name, node, parts, _ in _joins(bench):
        wrong = ""
        if node.op != "tanh":
            wrong = "is no tanh"
        elif len(parts) != 2:
            wrong = f"joins {len(parts)} parts"
        elif not any(_is_context(parts[0], r) for r in sites):
            wrong = "does not start with the context"
        elif not _is_state(parts[1]):
            wrong = "ends with something else than the state"
        if wrong:
            return fails("RG504", f"`{name}` {wrong}", about=name)
    return holds() if any(r.role == "attentional" for r in bench.contract.returns) else None


def _joins(bench: Bench) -> Iterator[tuple[str, Any, tuple[Any, ...], int]]:
    """Each attentional result: its name, its last activation, what is joined, the step."""
    trace = bench.trace
    if trace is None or isinstance(trace, Crash):
        return
    outputs = dict(zip(bench.out.names, trace.outputs, strict=False))
    for returned in bench.contract.returns:
        if returned.role == "attentional":
            for step, (node, parts) in enumerate(_parts(outputs.get(returned.name))):
                yield returned.name, node, parts, step


def _parts(node: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Operands of the concatenations under the projections that an output consists of."""
    node = _back(node)
    if node is None:
        return
    if node.op in ("stack", "cat"):
        for each in node.inputs:
            yield from _parts(each)
        return
    inner = _back(node.inputs[0]) if node.op in _BENDS else node
    if inner is not None and inner.op in ("linear", "matmul", "mm", "bmm", "einsum", "addmm"):
        operand = next((_back(i) for i in inner.inputs if _content(i)), None)
        if operand is not None and operand.op == "cat":
            yield node, tuple(operand.inputs)


def _content(node: Any) -> bool:
    return any(s.startswith("input:") for s in node.sources)


def _back(node: Any) -> Any:
    for _ in range(20):
        if node is None or node.op not in _VIEWS or not node.inputs:
            return node
        node = node.inputs[0]
    return node


def _is_context(node: Any, reading: Reading) -> bool:
    if reading.context is None:
        return False
    whole = merged(reading.context)
    value = node.value
    return bool(
        value.size == whole.size and near(np.sort(value, None), np.sort(whole, None), 1e-4)
    )


def _is_state(node: Any) -> bool:
    """An argument or a cell's state as it is, not projected."""
    node = _back(node)
    for _ in range(6):
        if node.op in ("getitem", "select", "unbind") and node.inputs:
            node = _back(node.inputs[0])
    return node.op == "input" or node.op in _CELLS


def _is_query(node: Any, sites: list[Reading]) -> bool:
    """Whether a state is what some site's scores were made of."""
    wanted = _back(node)
    for reading in sites:
        site = reading.site
        stack, seen = [site.scores], set[int]()
        while stack:
            one = stack.pop()
            if one.index == wanted.index:
                return True
            if one.index in seen or len(seen) > 60:
                continue
            seen.add(one.index)
            if one.op not in _CELLS:  # the state of a step, not what it was made of
                stack += one.inputs
    return False


def _lines(bench: Bench, name: str) -> tuple[int, ...]:
    trace = bench.trace
    if trace is None or isinstance(trace, Crash):
        return ()
    node = dict(zip(bench.out.names, trace.outputs, strict=False)).get(name)
    node = _back(node)
    return (node.line,) if node is not None and node.line else ()
