"""What a recording holds of each softmax, in one order of axes, before any head was split.

A site's operands are followed back through views and repetitions to the tensors that the
user's code made last by arithmetic: inputs, projections, chunks of packed projections. From
there the heads are split anew, in the field's order, so that the user's own splitting,
sharing and merging of heads is judged and not believed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.check.relations.base import Bench
from regard.check.relations.layout import Layout, layout
from regard.check.relations.used import REPEATS, VIEWS, is_logarithm, joins, used_weights
from regard.check.subject import Crash

__all__ = [
    "VIEWS",
    "Reading",
    "flat",
    "merged",
    "readings",
    "spread",
    "used_weights",
    "weighing",
]

_HEADS = ("heads", "kv_heads")


@dataclass
class Reading:
    """One softmax. Arrays are (batch, heads, position, features), weights (.., query, key).

    ``query``, ``key`` and ``value`` are split in the field's order from the tensors they were
    made of; ``weights`` and ``scores`` are what the code had, logarithms read as the weights
    that they are of. ``interleaved`` tells that heads were taken from neighbouring features
    instead of from blocks. ``met`` is what meets the values where that is made of several
    weights, as the difference of two softmaxes is, and None elsewhere; heads of ``value`` and
    ``context`` are then those of ``met``.
    """

    site: Any
    weights: np.ndarray
    scores: np.ndarray
    query: np.ndarray | None
    key: np.ndarray | None
    value: np.ndarray | None
    context: np.ndarray | None
    heads: int
    interleaved: bool = False
    met: np.ndarray | None = None


def readings(bench: Bench, interleaved: bool = False) -> list[Reading]:
    """Every site of the bench's recording that a result comes from and that can be read."""
    kept = bench.__dict__.setdefault("_readings", {})
    if interleaved not in kept:
        trace = bench.trace
        sites = []
        # A batch that is sorted inside has its examples at other places than the arguments.
        if trace is not None and not isinstance(trace, Crash) and not _sorts(trace):
            sites = trace.live_sites()
        found = [_read(layout(bench), site, interleaved) for site in sites]
        kept[interleaved] = [r for r in found if r is not None]
    return list(kept[interleaved])


def _read(here: Layout, site: Any, interleaved: bool) -> Reading | None:
    weights = weighing(here, used_weights(site), site.axis)
    scores = weighing(here, site.scores, site.axis)
    if weights is None or scores is None:
        return None
    if is_logarithm(site):
        weights = np.exp(weights)
    heads = weights.shape[1]
    met, is_joined = _met(here, site), joins(site)
    one, two = site.query, site.key
    if one is not None and two is not None and _is_key(here, one) and not _is_key(here, two):
        one, two = two, one
    if here.is_self and one is not None and two is not None:
        one, two = _oriented(here, one, two, scores)
    own = _head_names(here, site)
    values = None if is_joined and met is None else site.value
    many = heads if met is None else met.shape[1]
    parts = [
        None
        if n is None
        else spread(here, _source(n), axes, count, interleaved=interleaved, own=own)
        for n, axes, count in (
            (one, here.queries, heads),
            (two, here.keys, heads),
            (values, here.keys, many),
        )
    ]
    context = None
    if site.context is not None:
        context = spread(
            here, site.context, here.queries, many, interleaved=interleaved, own=own
        )
    if context is None and not is_joined:
        context = _by_letters(here, site)
    query, key, value = parts
    if "kv_heads" not in here.contract.every_axis:
        key, value = _as_shared(query, key, value, scores)
    return Reading(site, weights, scores, query, key, value, context, heads, interleaved, met)


def _met(here: Layout, site: Any) -> np.ndarray | None:
    """What meets the values, (batch, heads, query, key), where weights were joined before."""
    if not joins(site) or not isinstance(site.axis, int):
        return None
    node = site.post_ops[-1]
    back = len(site.weights.shape) - site.axis
    if len(node.shape) < back or node.shape[-back] != site.weights.shape[site.axis]:
        return None
    return weighing(here, node, len(node.shape) - back)


def _as_shared(
    query: np.ndarray | None,
    key: np.ndarray | None,
    value: np.ndarray | None,
    scores: np.ndarray,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Keys and values in the order in which the code shares them among the heads.

    Head ``h`` of few keys is that of the queries ``h*n`` to ``h*n + n - 1``, by the field's
    habit; where nobody declared it, every n-th head is right as well.
    """
    if query is None or key is None or query.shape[-1] != key.shape[-1]:
        return key, value
    heads = key.shape[1]
    few = next((n for n in range(1, heads) if heads % n == 0 and _repeats(key, n)), heads)
    if few in (1, heads):
        return key, value
    turn = np.arange(heads) % few * (heads // few)
    fit = np.isfinite(scores) & (np.abs(scores) < 1e3)
    gaps = []
    for each in (key, key[:, turn]):
        product = query @ each.swapaxes(-1, -2)
        if product.shape != scores.shape:
            return key, value
        gaps.append(float(np.abs(product[fit] - _line(product[fit], scores[fit])).mean()))
    if gaps[1] >= 0.5 * gaps[0]:
        return key, value
    return key[:, turn], None if value is None else value[:, turn]


def _repeats(array: np.ndarray, few: int) -> bool:
    """Whether heads come in ``few`` runs of equal ones."""
    b, heads, n, d = array.shape
    runs = array.reshape(b, few, heads // few, n, d)
    return bool((runs == runs[:, :, :1]).all())


def _head_names(here: Layout, site: Any) -> tuple[str, ...]:
    """Names of the axes that the weights have beside example, query and key."""
    names = _opened(here, site.weights)[0]
    known = {"batch", *here.keys, *here.queries, "1"}
    own = [n for n in names if n not in known]
    return tuple(dict.fromkeys((*own, *_HEADS)))


def _oriented(here: Layout, one: Any, two: Any, scores: np.ndarray) -> tuple[Any, Any]:
    """The operand that the rows of the scores come from, then the one of the columns."""
    heads = scores.shape[1]
    a, b = (spread(here, _source(n), here.keys, heads) for n in (one, two))
    if a is None or b is None or a.shape[-1] != b.shape[-1]:
        return one, two
    product = a @ b.swapaxes(-1, -2)
    turned = product.swapaxes(-1, -2)
    if product.shape != scores.shape:
        return one, two
    fit = np.isfinite(scores) & (np.abs(scores) < 1e3)
    gaps = [
        float(np.abs(p[fit] - _line(p[fit], scores[fit])).mean()) for p in (product, turned)
    ]
    return (two, one) if gaps[1] < 0.5 * gaps[0] else (one, two)


def _line(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``y`` on the scale of ``x``."""
    energy = float(y @ y)
    return y * (float(x @ y) / energy) if energy else y


def _by_letters(here: Layout, site: Any) -> np.ndarray | None:
    """The context where two axes share a name: its axes by the letters of the contraction."""
    node, carried = site.contraction, used_weights(site)
    if node is None or node is not site.context or carried not in node.inputs:
        return None
    left, arrow, out = str(node.arguments.get("written", "")).partition("->")
    at = node.inputs.index(carried)
    letters = left.split(",")[at] if arrow and at <= left.count(",") else ""
    names = carried.axes
    over = {site.axis} if isinstance(site.axis, int) else set(site.axis or ())
    if len(letters) != len(names) or len(out) != len(node.shape):
        return None
    batch = [c for c, n in zip(letters, names, strict=True) if n == "batch"]
    query = [
        c
        for i, (c, n) in enumerate(zip(letters, names, strict=True))
        if n in here.queries and i not in over
    ]
    keys = [letters[i] for i in over]
    heads = [c for c in letters if c not in (*batch, *query, *keys)]
    rest = [c for c in out if c not in letters]
    if len(batch) > 1 or len(query) > 1 or any(c not in out for c in (*batch, *heads, *query)):
        return None
    groups = (batch, heads, query, rest)
    order = [out.index(c) for group in groups for c in group]
    if sorted(order) != list(range(len(out))):
        return None
    sizes = [int(np.prod([node.shape[out.index(c)] for c in group])) for group in groups]
    return np.asarray(node.value.transpose(order).reshape(sizes), dtype=np.float64)


def _sorts(trace: Any) -> bool:
    return any(n.op in ("argsort", "sort") for n in trace.nodes)


def weighing(here: Layout, node: Any, axis: Any) -> np.ndarray | None:
    """A node of scores or weights as (batch, heads, query, key)."""
    names, shape, token = _opened(here, node)
    axes = {axis} if isinstance(axis, int) else set(axis or range(len(node.shape)))
    key = [i for i, t in enumerate(token) if t in axes]
    if not key or len(token) != len(names):
        return None
    batch = [i for i, n in enumerate(names) if n == "batch" and i not in key]
    query = [i for i, n in enumerate(names) if n in here.queries and i not in key]
    rest = [i for i in range(len(names)) if i not in (*key, *batch, *query)]
    if len(batch) > 1 or any(names[i] in here.keys for i in rest):
        return None
    if any(names[i] == "beam" for i in rest):
        return None  # samples of one example are no heads
    array = node.value.reshape(shape).transpose(*batch, *rest, *query, *key)
    sizes = [int(np.prod([shape[i] for i in part])) for part in (batch, rest, query, key)]
    return np.asarray(array.reshape(sizes), dtype=np.float64)


def spread(
    here: Layout,
    node: Any,
    positions: Sequence[str],
    heads: int,
    *,
    interleaved: bool = False,
    own: Sequence[str] = _HEADS,
) -> np.ndarray | None:
    """A node as (batch, heads, position, features), heads split in the field's order."""
    names, shape, _ = _opened(here, node)
    batch = [i for i, n in enumerate(names) if n == "batch"]
    place = [i for i, n in enumerate(names) if n in positions]
    head = [i for i, n in enumerate(names) if n in own]
    rest = [i for i in range(len(names)) if i not in (*batch, *place, *head)]
    if (
        len(batch) > 1
        or len(place) > len(positions)
        or len({names[i] for i in head}) < len(head)
    ):
        return None
    head.sort(key=lambda i: list(own).index(names[i]))
    if any(names[i] in (*here.keys, *here.queries) for i in rest):
        return None
    array = node.value.reshape(shape).transpose(*batch, *head, *place, *rest)
    sizes = [int(np.prod([shape[i] for i in part])) for part in (batch, head, place, rest)]
    array = np.asarray(array.reshape(sizes), dtype=np.float64)
    if array.shape[1] == 1 and heads > 1 and not head:
        per = _shared(here, node, array.shape[-1], heads)
        if per is None:
            return None
        b, _, n, width = array.shape
        if interleaved:
            array = array.reshape(b, n, width // per, per).transpose(0, 3, 1, 2)
        else:
            array = array.reshape(b, n, per, width // per).transpose(0, 2, 1, 3)
    if array.shape[1] not in (1, heads):
        if heads % array.shape[1]:
            return None
        array = np.repeat(array, heads // array.shape[1], axis=1)
    return np.asarray(array)


def flat(here: Layout, node: Any, positions: Sequence[str]) -> np.ndarray | None:
    """A node as (batch, position, features), features in the order in which they lie."""
    groups = [here._factors(axis) if axis not in ("?", "") else (axis,) for axis in node.axes]
    keys = "*".join(here.keys)
    batch = [i for i, g in enumerate(groups) if g == ("batch",)]
    place = [
        i
        for i, g in enumerate(groups)
        if set(g) <= set(positions) or (node.axes[i] in (keys, *positions))
    ]
    rest = [i for i in range(len(groups)) if i not in (*batch, *place)]
    if len(batch) > 1 or len(place) > len(positions) or len(groups) != len(node.shape):
        return None
    if any("batch" in groups[i] or set(groups[i]) & set(positions) for i in rest):
        return None
    sizes = [int(np.prod([node.shape[i] for i in part])) for part in (batch, place, rest)]
    array = node.value.transpose(*batch, *place, *rest).reshape(sizes)
    return np.asarray(array, dtype=np.float64)


def merged(array: np.ndarray, interleaved: bool = False) -> np.ndarray:
    """(batch, heads, position, features) as (batch, position, heads * features)."""
    b, h, n, d = array.shape
    if interleaved:
        return array.transpose(0, 2, 3, 1).reshape(b, n, d * h)
    return array.transpose(0, 2, 1, 3).reshape(b, n, h * d)


def _shared(here: Layout, node: Any, width: int, heads: int) -> int | None:
    """How many heads lie in these features: all, or those that groups of queries share."""
    known = {"d_head", "d_model"} & set(here.contract.every_axis)
    if known and heads == here.sizes["heads"]:
        few, rest = divmod(width, here.sizes["d_head"])
        if not rest and 0 < few < heads and heads % few == 0:
            return few
    return heads if width % heads == 0 else None


def _source(node: Any) -> Any:
    """Back through views and repetitions to what arithmetic made."""
    for _ in range(40):
        if node.op in VIEWS or node.op in REPEATS:
            if not node.inputs:
                return node
            node = node.inputs[0]
        else:
            break
    return node


def _is_key(here: Layout, node: Any) -> bool:
    names = _opened(here, node)[0]
    return any(n in here.keys for n in names) and not here.is_self


def _opened(here: Layout, node: Any) -> tuple[list[str], list[int], list[int]]:
    """Axis names with products opened, their sizes, and which axis each came from."""
    names: list[str] = []
    shape: list[int] = []
    token: list[int] = []
    for i, (axis, size) in enumerate(zip(node.axes, node.shape, strict=False)):
        factors = here._factors(axis) if axis not in ("?", "") else (axis,)
        if axis in here.keys or axis in here.queries:
            factors = (axis,)
        elif here.keys and axis == "*".join(here.keys) and len(here.keys) > 1:
            factors = here.keys
        elif any(f.isdigit() for f in factors) and {"batch", *here.keys, *here.queries} & {
            *factors
        }:
            factors = (axis,)  # a size that only looks like a multiple of a length
        try:
            sizes = [int(here.sizes.value(f)) for f in factors]
        except Exception:
            sizes = [size]
        if int(np.prod(sizes)) != size or len(sizes) != len(factors):
            factors, sizes = (axis,), [size]
        names += factors
        shape += sizes
        token += [i] * len(factors)
    return names, shape, token
