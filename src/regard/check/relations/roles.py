"""Which tensor plays which part: names are kept, packed projections are read in order."""

import re
from typing import Any

import numpy as np

from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import layout
from regard.check.relations.reading import _source, readings, spread

__all__ = ["named", "packed"]

_QUERY = re.compile(r"(^|[_.])(q|qs|quer(y|ies)|wq)(\d*)([_.]|$)", re.IGNORECASE)
_KEY = re.compile(r"(^|[_.])(k|ks|keys?|wk)(\d*)([_.]|$)", re.IGNORECASE)
_VALUE = re.compile(r"(^|[_.])(v|vs|values?|wv)(\d*)([_.]|$)", re.IGNORECASE)


@relation("names-kept", "what is named query, key or value is used as that", strict=True, cost=1)
def named(bench: Bench) -> Verdict | None:
    """Compare the parts of each site with the names of parameters and arguments."""
    asked = False
    for reading in readings(bench):
        site = reading.site
        plain = {"query": _QUERY, "key": _KEY, "value": _VALUE}
        if bench.contract.score in ("additive", "concat", "pooling", "location"):
            plain = {"value": _VALUE}
        nodes = _nodes(bench, site)
        everything = {*bench.trace.params, *bench.trace.inputs}
        for role, node in nodes.items():
            pattern = plain.get(role)
            if node is None or pattern is None:
                continue
            own = {n for n in everything if pattern.search(n)}
            used = {s.split(":", 1)[1] for s in node.sources}
            others = {
                n for r, p in plain.items() if r != role for n in everything if p.search(n)
            } - own
            if bench.contract.score in ("additive", "concat", "pooling", "location"):
                own, others = {n for n in own if "val" in n.lower()}, set()
            if not own:
                continue
            asked = True
            if not own & used or (others & used and not own & used):
                return fails("RG504", f"what is named {role} is not used as {role}", about=role)
            if len(own) and any(
                p.search(u) for r, p in plain.items() if r != role for u in used
            ) and not any(pattern.search(u) for u in used):
                return fails("RG504", f"{role} is made of something named otherwise", about=role)
    return holds() if asked else None


@relation("packed-in-order", "a packed projection holds query, key, value in this order",
          strict=True, cost=1)
def packed(bench: Bench) -> Verdict | None:
    """Find where in the packed features each part begins."""
    asked = False
    for reading in readings(bench):
        nodes = _nodes(bench, reading.site)
        roots = {r: _root(n) for r, n in nodes.items() if n is not None}
        shared: dict[int, list[str]] = {}
        for role, root in roots.items():
            if root is not None:
                shared.setdefault(root.index, []).append(role)
        for index, roles in shared.items():
            if len(roles) < 2 or "positions" in roles:
                continue
            root = next(r for r in roots.values() if r is not None and r.index == index)
            starts = {r: _start(bench, root, nodes[r]) for r in roles}
            order = [starts[r] for r in ("query", "key", "value") if r in starts]
            if any(s is None for s in order):
                continue
            asked = True
            if order != sorted(order) or len(set(order)) != len(order):  # type: ignore[type-var]
                return fails("RG504", "a packed projection is not read as query, key, value")
    return holds() if asked else None


def _nodes(bench: Bench, site: Any) -> dict[str, Any]:
    one, two = site.query, site.key
    here = layout(bench)
    from regard.check.relations.reading import _is_key, _oriented, weighing  # noqa: PLC0415

    if one is not None and two is not None:
        if _is_key(here, one) and not _is_key(here, two):
            one, two = two, one
        elif here.is_self:
            scores = weighing(here, site.scores, site.axis)
            if scores is not None:
                one, two = _oriented(here, one, two, scores)
    return {"query": one, "key": two, "value": site.value}


def _root(node: Any) -> Any:
    """The projection that a part was cut from, or None if it was not cut."""
    cut = False
    for _ in range(30):
        if node.op in ("getitem", "chunk", "split", "unbind", "select", "narrow", "tensor_split"):
            cut = True
        elif node.op in ("linear", "matmul", "einsum", "mm", "addmm", "conv1d", "conv2d"):
            return node if cut else None
        elif node is not _source(node):
            pass
        else:
            return None
        if not node.inputs:
            return None
        node = node.inputs[0]
    return None


def _start(bench: Bench, root: Any, node: Any) -> int | None:
    """Where the first feature of a part lies in the packed projection."""
    here = layout(bench)
    whole = spread(here, root, (*here.queries, *here.keys), 1)
    part = spread(here, _source(node), (*here.queries, *here.keys), 1)
    if whole is None or part is None or whole.shape[2] != part.shape[2]:
        return None
    first = part[:, :1, :, :1]
    gap = np.abs(whole - first).max(axis=(0, 1, 2)) if whole.shape[1] == 1 else None
    if gap is None:
        return None
    at = int(gap.argmin())
    return at if gap[at] < 1e-5 else None
