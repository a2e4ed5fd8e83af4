"""Whether content keeps its place around a softmax, whatever the order does to scores.

A bias by distance or a rotation makes results depend on the order of the keys, and so does a
view that cuts across heads and positions. The second moves the content of one key to other
keys, or the context of one query to other rows; the first leaves everything where it was.
"""

from typing import Any

import numpy as np

from regard.check.relations.base import Bench
from regard.check.relations.layout import Layout, layout
from regard.check.relations.reading import spread, weighing
from regard.check.subject import Crash
from regard.check.trace.records import Node, Site, Trace

__all__ = ["is_sequential", "moves_content"]

_NEAR = 2  # positions beside a key that a convolution over the keys reaches


def moves_content(bench: Bench) -> bool:
    """Whether content lands at other keys on the way in, or in other rows on the way out.

    Parameters
    ----------
    bench : Bench

    Returns
    -------
    moves : bool
        False also where the recording does not tell.
    """
    here, trace = layout(bench), bench.trace
    if not here.keys or here.joined or not isinstance(trace, Trace):
        return False
    return _on_the_way_in(bench, here, trace) or _on_the_way_out(bench, here, trace)


def _on_the_way_in(bench: Bench, here: Layout, trace: Trace) -> bool:
    """Whether other content of one key reaches keys or values far from it.

    The first softmax whose operands can be read tells: a later one lies behind attention.
    """
    at = here.n_keys // 2
    other = _recorded(bench, args={**bench.probe.args, **here.at_key(at)})
    if other is None or len(other.sites) != len(trace.sites):
        return False
    for one, two in zip(trace.sites, other.sites, strict=True):
        weights = weighing(here, one.weights, one.axis)
        heads = 1 if weights is None else weights.shape[1]
        pairs = zip(_operands(one), _operands(two), strict=False)
        moved = [m for a, b in pairs if (m := _moved(here, a, b, heads)) is not None]
        if moved:
            places = np.flatnonzero(np.any(moved, axis=0))
            return bool((np.abs(places - at) > _NEAR).any())
    return False


def _on_the_way_out(bench: Bench, here: Layout, trace: Trace) -> bool:
    """Whether other weights of one query change the rows of other queries.

    The last softmax that a result comes from tells: behind it lies no other attention.
    """
    site = next(reversed(trace.live_sites()), None)
    if site is None or not isinstance(site.axis, int):
        return False
    names = {*here.queries, "*".join(here.queries)}
    at = [i for i, n in enumerate(site.weights.axes) if n in names and i != site.axis]
    if len(at) != 1 or site.weights.shape[at[0]] != here.n_queries:
        return False
    row = here.n_queries // 2
    where = (slice(None),) * at[0] + (row,)

    def replace(index: int, weights: np.ndarray) -> np.ndarray | None:
        if index != site.index:
            return None
        other = np.array(weights)
        keys = site.axis - (site.axis > at[0])  # type: ignore[operator]  # an int
        other[where] = np.roll(other[where], 1, axis=keys)
        return other

    other = _recorded(bench, replace=replace)
    if other is None:
        return False
    names_of = zip(here.contract.out_names, trace.outputs, other.outputs, strict=False)
    contexts = set(here.contexts())
    for name, one, two in names_of:
        if name not in contexts or one is None or two is None:
            continue
        axes = here.outputs[name]
        at_query = axes.at(*here.queries)
        gap = np.abs(one.value - two.value)
        if not at_query or gap.size != np.prod(axes.shape):
            continue
        rest = tuple(i for i in range(len(axes.shape)) if i not in at_query)
        rows = gap.reshape(axes.shape).max(axis=rest).reshape(-1) > 1e-5
        if (np.flatnonzero(rows) != row).any():
            return True
    return False


def _recorded(bench: Bench, **how: Any) -> Trace | None:
    from regard.check.trace import record  # noqa: PLC0415 - heavy

    found = record(bench.instance, bench.probe, bench.sizes, **how)
    return None if isinstance(found, Crash) or found.crash is not None else found


def _operands(site: Site) -> list[Node]:
    """What scores and context are products of, after all views: queries, keys, values."""
    products = [p for p in (site.product, site.contraction) if p is not None]
    return [n for p in products for n in p.inputs if n is not site.weights]


def _moved(here: Layout, one: Node, two: Node, heads: int) -> np.ndarray | None:
    """At which positions two recordings of one operand differ."""
    a, b = (spread(here, node, here.keys, heads) for node in (one, two))
    if a is None or b is None or a.shape != b.shape or a.shape[2] != here.n_keys:
        return None
    return np.asarray(np.abs(a - b).max(axis=(0, 1, 3)) > 1e-6 * (1.0 + np.abs(a).max()))


def is_sequential(bench: Bench, name: str) -> bool:
    """Whether rows of a context know the queries before them and none of those after.

    Decoders attend to what they wrote before, average it, or carry a state along.
    """
    here = layout(bench)
    base = here.context(bench.out, name)
    if base is None or len(here.queries) != 1 or base.shape[1] != here.n_queries:
        return False
    axis = here.queries[0]
    for s in range(1, here.n_queries):
        parts = [n for n in here.query_parts() if here.inputs[n].at(axis)]
        out = bench.ok(**{n: here.noised(n, 1, **{axis: s}) for n in parts})
        after = here.context(out, name) if out is not None else None
        if after is None or not parts or np.abs(after - base)[:, :s].max() > 1e-4:
            return False
    return True
