"""Heads that stand side by side: each has weights of its own, and a row of its own table."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import layout
from regard.check.relations.reading import VIEWS, readings
from regard.check.subject import Crash

__all__ = ["heads_differ", "offsets_apart"]

_PICKS = frozenset({"getitem", "embedding", "index_select", "gather"})
_COPIES = frozenset({"repeat", "repeat_interleave", "tile"})


@relation("heads-differ", "no two heads have the same weights", cost=1, everywhere=False)
def heads_differ(bench: Bench) -> Verdict | None:
    """Compare the weights of heads that have a softmax each, or one for all."""
    here, is_module = layout(bench), bench.case.loaded.is_module
    if not is_module or "heads" not in bench.contract.every_axis or here.n_keys < 2:
        return None
    found = [r for r in readings(bench) if r.weights.shape[3] == here.n_keys]
    found = [r for r in found if r.site.contraction is not None]
    if len({r.site.contraction.index for r in found}) < len(found):
        return None  # one softmax behind another
    if len(found) < 2 or any(r.weights.shape != found[0].weights.shape for r in found):
        return None
    if (len(found) == here.n_queries and found[0].weights.shape[2] == 1) or _is_one(found):
        return None  # steps of a decoder, or one softmax, used for several values
    same = [r for r in found[1:] if near(r.weights, found[0].weights, 1e-6)]
    made = {_parameters(r.site) for r in found}
    if len(same) < len(found) - 1 or len(made) > 1 or not next(iter(made)):
        return holds()
    return fails(
        "RG401",
        f"{len(found)} heads have the same weights: they share one set of parameters",
        about=found[0].site.weights.name,
        lines=(found[0].site.span.line,) if found[0].site.span else (),
        measured=(Measurement("largest difference between heads", "0", "must not be 0"),),
        hidden="every shape is right; all heads look at one place and learn the same",
    )


def _is_one(found: list[Any]) -> bool:
    """Whether softmaxes are of the very same queries and keys, and weigh other values."""
    asked = {tuple(_origin(n) for n in (r.site.query, r.site.key)) for r in found}
    values = {_origin(r.site.value) for r in found}
    return len(asked) == 1 and None not in next(iter(asked)) and len(values) == len(found)


def _origin(node: Any) -> int | None:
    """The tensor that views and copies of heads show, by its number."""
    while node is not None and node.inputs and _shows(node):
        node = node.inputs[0]
    return None if node is None else int(node.index)


def _shows(node: Any) -> bool:
    """Whether a tensor is a view or copies of another, all of it."""
    if node.op in _COPIES or node.op in VIEWS:
        return True
    is_whole = np.prod(node.shape) == np.prod(node.inputs[0].shape)
    return node.op == "getitem" and bool(is_whole)


def _parameters(site: Any) -> frozenset[str]:
    operands = [n for n in (site.query, site.key, site.value) if n is not None]
    return frozenset(s for n in operands for s in n.sources if s.startswith("param:"))


@relation(
    "offsets-apart", "each offset in a window has an entry of its own", cost=1, everywhere=False
)
def offsets_apart(bench: Bench) -> Verdict | None:
    """Count the entries that a table of all offsets of a window is read at."""
    trace, sizes = bench.trace, bench.sizes
    if trace is None or isinstance(trace, Crash) or bench.contract.positions != "relative":
        return None
    if not {"height", "width"} <= set(bench.contract.every_axis):
        return None
    offsets = (2 * sizes["height"] - 1) * (2 * sizes["width"] - 1)
    asked = False
    for node in trace.nodes:
        if node.op not in _PICKS or not node.inputs or node.inputs[0].op != "param":
            continue
        table, index = node.inputs[0], node.inputs[-1]
        if index is table or not table.shape or table.shape[0] != offsets:
            continue
        if not index.dtype.startswith(("int", "uint")):
            continue
        asked = True
        read = len(np.unique(index.value))
        if read < offsets:
            return fails(
                "RG504",
                f"of {offsets} offsets, {offsets - read} share the entry of another",
                about=table.name,
                lines=(index.line or node.line,),
                measured=(Measurement("entries that are read", str(read), f"{offsets}"),),
                depends_on=("positions",),
                hidden="every shape is right; in a square window it may even be right",
            )
    return holds() if asked else None
