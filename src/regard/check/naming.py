"""Names of a traced tensor's axes: carried along from the inputs, else told by their size.

A name that an operation hands on (``transpose``, ``einsum``, ``view``) is worth more than one
looked up, since at coincident sizes (``T_dec = T_enc``) only the former is right.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from regard.check.axes_carried import RULES, UNKNOWN, elementwise
from regard.check.probe import Probe
from regard.check.sizes import Sizes, names_in
from regard.errors import RegardError

if TYPE_CHECKING:  # naming is used by the trace
    from regard.check.trace.records import Node, Trace

__all__ = ["Names", "carried", "factors", "name_axes", "names_of"]

_LENGTHS = ("T", "batch", "beam", "height", "width")


class Names:
    """Which names a size has, at one set of sizes.

    Parameters
    ----------
    axes : sequence of str
        Names and expressions that the contract uses, the more telling first.
    sizes : Sizes
        Their sizes.
    built : sequence of str
        Those among them that the object is built with.
    """

    def __init__(self, axes: Sequence[str], sizes: Sizes, built: Sequence[str] = ()) -> None:
        self.sizes = sizes
        self._size = functools.cache(self._evaluate)
        single = list(dict.fromkeys(n for a in axes for n in names_in(a)))
        if "d_model" in single and "heads" in single:
            single.append("d_head")
        known = {name: int(sizes[name]) for name in single}
        self._of = self._named(axes, known)
        told = {n for a in built for n in names_in(a)}
        lengths = {n for n in known if n.startswith(_LENGTHS) and n not in told}
        self._features = self._named(
            [a for a in axes if not lengths & set(names_in(a))],
            {name: size for name, size in known.items() if name not in lengths},
        )

    def _named(self, axes: Sequence[str], known: Mapping[str, int]) -> dict[int, str]:
        found: dict[int, str] = {1: "1"}
        for name, size in known.items():
            found.setdefault(size, name)
        for text in axes:
            number = self._size(text)
            if number is not None and names_in(text):
                found.setdefault(number, text)
        for text, size in _compounds(known):
            found.setdefault(size, text)
        return found

    def of(self, size: int) -> str:
        """Return the simplest name of a size; ``?`` where there is none."""
        return self._of.get(size, UNKNOWN)

    def feature(self, size: int) -> str:
        """Return the simplest name without lengths and batches, or the number itself."""
        return self._features.get(size, str(size))

    def size(self, name: str) -> int | None:
        """Return the size of a name or expression, None where it has none."""
        return self._size(name)

    def _evaluate(self, text: str) -> int | None:
        if text == UNKNOWN:
            return None
        try:
            value = self.sizes.value(text)
        except (RegardError, TypeError, ValueError):
            return None
        return int(value) if isinstance(value, int | float) and value == int(value) else None


def _compounds(known: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Products and sums that code forms, the likelier first."""
    features = [(a, n) for a, n in known.items() if a.startswith("d_")]
    single = list(known.items())
    for times in (2, 3, 4):
        yield from ((f"{times}*{a}", times * n) for a, n in features)
    if {"heads", "d_head"} <= set(known):  # side by side, unless a name says otherwise
        yield "heads*d_head", known["heads"] * known["d_head"]
    yield from ((f"{a}*{b}", n * m) for (a, n), (b, m) in itertools.permutations(single, 2))
    for times in (2, 3, 4):
        yield from ((f"{times}*{a}", times * n) for a, n in single)
    yield from ((f"{a}+{b}", n + m) for (a, n), (b, m) in itertools.combinations(single, 2))
    for a, n in features:
        for b in ("heads", "kv_heads"):
            if b in known and n % known[b] == 0:
                yield f"{a}//{b}", n // known[b]
        if n % 2 == 0:
            yield f"{a}//2", n // 2
    for change in (1, -1):
        yield from ((f"{a}{change:+d}", n + change) for a, n in single)
    for times in (2, 3):
        pairs = itertools.combinations(single, 2)
        yield from ((f"{times}*{a}*{b}", times * n * m) for (a, n), (b, m) in pairs)
    threes = list(itertools.combinations(single, 3))
    yield from ((f"{a}*{b}*{c}", n * m * k) for (a, n), (b, m), (c, k) in threes)


@functools.lru_cache(maxsize=64)
def _names(
    axes: tuple[str, ...],
    which: int,
    shown: tuple[tuple[str, int], ...],
    built: tuple[str, ...],
) -> Names:
    return Names(axes, Sizes(which, dict(shown)), built)


def names_of(probe: Probe, sizes: Sizes) -> Names:
    """Names of the sizes that a contract uses."""
    contract = probe.contract
    told = [t for name in contract.inputs for t in contract.axes(name)]
    told += [t for name in contract.out_names for t in contract.out_axes(name)]
    given = [*contract.init.values(), *contract.values.values()]
    told += [v for v in given if isinstance(v, str) and names_in(v)]
    if "d_model" in told and "heads" in told:
        told.append("d_head")
    used = tuple(dict.fromkeys(told))
    for axis in used:
        for name in names_in(axis):
            sizes[name]  # gives a free name its number
    built = tuple(v for v in contract.init.values() if isinstance(v, str) and names_in(v))
    return _names(used, sizes.which, tuple(sizes.items()), built)


def name_axes(trace: "Trace", probe: Probe, sizes: Sizes) -> Names:
    """Name the axes of every node of a recording, and return the names."""
    contract = probe.contract
    names = names_of(probe, sizes)
    for name, node in trace.inputs.items():
        tokens = contract.axes(name)
        if len(tokens) == len(node.shape):
            node.axes = tokens
    for node in trace.nodes:
        _name(node, names)
    if trace.failed is not None:
        trace.failed.axes = ()
    return names


def _name(node: "Node", names: Names) -> None:
    if node.axes:
        return
    carried: Sequence[str | None] | None = None
    if node.inputs:
        rule = RULES.get(node.op, elementwise)
        try:
            carried = rule(node, names)
        except (IndexError, TypeError, ValueError, KeyError):
            carried = None
    if carried is None or len(carried) != len(node.shape):
        carried = [None] * len(node.shape)
    node.axes = tuple(
        name
        if name is not None and name != UNKNOWN and names.size(name) in (size, None)
        else names.of(size)
        for name, size in zip(carried, node.shape, strict=True)
    )


def carried(
    path: Sequence["Node"], first: "Node", axes: Sequence[str]
) -> tuple[str, ...] | None:
    """Follow marks on the axes of a node through the operations after it.

    Parameters
    ----------
    path : sequence of Node
        Operations in order, each on the result of the one before.
    first : Node
        What the first of them works on.
    axes : sequence of str
        One mark an axis of `first`.

    Returns
    -------
    marks : tuple of str or None
        Marks of the last result's axes, ``?`` where none was carried; None if lost.
    """
    before = first
    kept = {n.index: n.axes for n in (first, *path)}
    try:
        first.axes = tuple(axes)
        for node in path:
            others = [n for n in node.inputs if n is not before]
            for other in others:
                kept.setdefault(other.index, other.axes)
            found = RULES.get(node.op, elementwise)(node, _any())
            if found is None or len(found) != len(node.shape):
                return None
            node.axes = tuple(f if f is not None and f in axes else UNKNOWN for f in found)
            before = node
        return before.axes
    except (IndexError, TypeError, ValueError, KeyError):
        return None
    finally:
        for node in (first, *path):
            node.axes = kept[node.index]


def factors(name: str) -> tuple[str, ...]:
    """Factors of a product in the order in which they lie in memory; sums stay whole."""
    return (name,) if "+" in name or "/" in name or "-" in name else tuple(name.split("*"))


@functools.cache
def _any() -> Names:
    return Names((), Sizes(0))
