"""Which tensor plays which part: names are kept, packed projections are read in order."""

import re
from typing import Any

import numpy as np

from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import layout
from regard.check.relations.reading import _source, flat, readings

__all__ = ["exchanged", "named", "packed", "values_own"]

_QUERY = re.compile(r"(^|[_.])(q|qs|quer(y|ies)|wq)(\d*)([_.]|$)", re.IGNORECASE)
_KEY = re.compile(r"(^|[_.])(k|ks|keys?|wk)(\d*)([_.]|$)", re.IGNORECASE)
_CUTS = frozenset({"getitem", "chunk", "split", "unbind", "select", "narrow", "tensor_split"})
_ON = frozenset({"add", "sub", "mul", "cat", "stack"})  # a rotation, for one
_VALUE = re.compile(r"(^|[_.])(v|vs|values?|wv)(\d*)([_.]|$)", re.IGNORECASE)


@relation(
    "names-kept", "what is named query, key or value is used as that", strict=True, cost=1
)
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
            if bench.contract.score in ("additive", "concat", "pooling", "location"):
                own = {n for n in own if "val" in n.lower()}  # v is the learned vector there
            if not own:
                continue
            asked = True
            if not own & {s.split(":", 1)[1] for s in node.sources}:
                return fails("RG504", f"what is named {role} is not used as {role}", about=role)
    return holds() if asked else None


@relation("arguments-in-place", "keys are made of the argument key, values of value", cost=1)
def exchanged(bench: Bench) -> Verdict | None:
    """Find arguments named key and value that each stand where the other belongs.

    One alone may be meant: keys are values in many layers. Both never are.
    """
    inputs = set(bench.contract.inputs)
    if not all(any(name.search(n) for n in inputs) for name in (_KEY, _VALUE)):
        return None
    asked = False
    for reading in readings(bench):
        nodes = _nodes(bench, reading.site)
        used = {
            role: {s.split(":", 1)[1] for s in nodes[role].sources} & inputs
            for role in ("key", "value")
            if nodes[role] is not None
        }
        if len(used) < 2 or not all(used.values()):
            continue
        asked = True
        keys_are_values = all(_VALUE.search(n) and not _KEY.search(n) for n in used["key"])
        values_are_keys = all(_KEY.search(n) and not _VALUE.search(n) for n in used["value"])
        if keys_are_values and values_are_keys:
            return fails("RG504", "keys are made of the values, and values of the keys")
    return holds() if asked else None


@relation("values-their-own", "values are no projected keys", strict=True, cost=1)
def values_own(bench: Bench) -> Verdict | None:
    """Compare the operand of the scores with the operand of the context."""
    asked = False
    for reading in readings(bench):
        nodes = _nodes(bench, reading.site)
        value = nodes["value"]
        if value is None:
            continue
        asked = True
        value = _source(value)
        learned = {s for s in value.sources if s.startswith("param:")}
        learned |= {
            s
            for s in value.sources
            if s[6:] in bench.contract.inputs and layout(bench).is_learned(s[6:])
        }
        if value.op not in ("linear", "matmul", "einsum", "mm", "addmm") or not learned:
            continue
        for role in ("query", "key"):
            if nodes[role] is not None and _source(nodes[role]) is value:
                if not _has_values(bench):
                    continue  # keys are values by intent
                return fails("RG304", f"the values are the projected {role} itself")
    return holds() if asked else None


def _has_values(bench: Bench) -> bool:
    """Whether anything is named a value, or is there for one: a third projection."""
    named = {*bench.trace.params, *bench.contract.inputs}
    projections = {n.rpartition(".")[0] for n in bench.trace.params if n.endswith("weight")}
    return any(_VALUE.search(n) for n in named) or len(projections) > 2


@relation(
    "packed-in-order",
    "a packed projection holds query, key, value in this order",
    strict=True,
    cost=1,
)
def packed(bench: Bench) -> Verdict | None:
    """Find where in the packed features each part begins."""
    asked = False
    for reading in readings(bench):
        nodes = _nodes(bench, reading.site)
        roots = {r: _root(n) for r, n in nodes.items() if n is not None}
        shared: dict[int, list[str]] = {}
        for role, root in roots.items():
            if root is not None:
                shared.setdefault(root[0].index, []).append(role)
        for roles in shared.values():
            if len(roles) < 2:
                continue
            starts = {r: _start(bench, *pair) for r in roles if (pair := roots[r]) is not None}
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


def _root(node: Any) -> tuple[Any, Any] | None:
    """The projection that a part was cut from and the cut, or None if it was not cut."""
    cut = None
    for _ in range(40):
        if node.op in _CUTS:
            cut = node
        elif node.op in ("linear", "matmul", "einsum", "mm", "addmm", "conv1d", "conv2d"):
            return None if cut is None else (node, cut)
        elif node.op not in _ON and node is _source(node):
            return None
        if not node.inputs:
            return None
        node = node.inputs[0]
    return None


def _start(bench: Bench, root: Any, node: Any) -> int | None:
    """Where the first feature of a part lies in the packed projection."""
    here = layout(bench)
    places = tuple(dict.fromkeys((*here.queries, *here.keys)))
    whole, part = flat(here, root, places), flat(here, _source(node), places)
    if whole is None or part is None or whole.shape[1] != part.shape[1]:
        return None
    gap = np.abs(whole - part[..., :1]).max(axis=(0, 1))
    at = int(gap.argmin())
    return at if gap[at] < 1e-5 else None
