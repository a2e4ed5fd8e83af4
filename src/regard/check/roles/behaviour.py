"""What a run itself shows: examples that stay apart, keys that a mask hides, order.

These tests choose between readings that the author's words leave open. The reading under
which the code is right is chosen, so that no finding ever stands on a reading that was picked
to make one.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.check.contract import Contract, Returned
from regard.check.probe import Probe
from regard.check.sizes import Sizes
from regard.check.subject import Instance, Loaded, Outcome

__all__ = ["Runner", "keeps_examples_apart", "leak", "order_matters", "reads", "unmixed"]


class Runner:
    """One target under one contract, run with arguments changed."""

    def __init__(self, loaded: Loaded, contract: Contract, which: int = 0) -> None:
        self.contract = contract
        self.sizes = Sizes(which, contract.sizes)
        self.probe = Probe(contract, self.sizes)
        self.instance = Instance(loaded, contract, self.sizes)

    def run(self, **changes: Any) -> Outcome | None:
        """Run with some arguments replaced; None where it crashes."""
        result = self.instance.call({**self.probe.args, **changes})
        return result if isinstance(result, Outcome) else None

    def noised(self, token: str, index: slice | int, only: str = "") -> dict[str, Any]:
        """Content with fresh numbers at one index of an axis."""
        changes: dict[str, Any] = {}
        for name in self.probe.floats():
            at = self.probe.axis(name, token)
            if at is None or (only and name != only):
                continue
            value = self.probe.args[name].copy()
            place = (slice(None),) * at + (index,)
            value[place] = self.probe.noise(name, value[place].shape, salt=7)
            changes[name] = value
        return changes


def keeps_examples_apart(runner: Runner) -> bool | None:
    """Whether another content of the last example leaves the other examples' results alone."""
    base = runner.run()
    changes = runner.noised("batch", -1)
    if base is None or not changes:
        return None
    other = runner.run(**changes)
    if other is None:
        return None
    apart = True
    for returned, a, b in zip(
        runner.contract.returns, base.outputs, other.outputs, strict=False
    ):
        tokens = returned.axes.split()
        if "batch" not in tokens or a is None or b is None or a.dtype == object:
            continue
        rest = (slice(None),) * tokens.index("batch") + (slice(0, -1),)
        apart &= bool(np.allclose(a[rest], b[rest], atol=1e-4, equal_nan=True))
    return apart


def unmixed(runner: Runner) -> tuple[Returned, ...]:
    """The results, axes such as ``heads*batch`` in the order in which examples stay apart.

    Both orders have one size, and whichever the code means is said nowhere.
    """
    returns = runner.contract.returns
    if not any(_partner(t) for r in returns for t in r.axes.split()):
        return returns
    base, changes = runner.run(), runner.noised("batch", -1)
    other = runner.run(**changes) if base is not None and changes else None
    if base is None or other is None:
        return returns
    found = []
    for returned, a, b in zip(returns, base.outputs, other.outputs, strict=False):
        tokens = returned.axes.split()
        for at, token in enumerate(tokens):
            partner = _partner(token)
            if not partner or a is None or b is None or a.dtype == object:
                continue
            moved = np.moveaxis(~np.isclose(a, b, atol=1e-4, equal_nan=True), at, 0)
            rows = moved.reshape(moved.shape[0], -1).any(axis=1)
            n = runner.sizes["batch"]
            outer = bool(rows.reshape(n, -1)[:-1].any())
            inner = bool(rows.reshape(-1, n)[:, :-1].any())
            if outer != inner:
                tokens[at] = f"{partner}*batch" if outer else f"batch*{partner}"
        found.append(replace(returned, axes=" ".join(tokens)))
    return (*found, *returns[len(found) :])


def _partner(token: str) -> str:
    """What the examples are merged with, "" where they are not."""
    factors = token.split("*")
    if len(factors) != 2 or "batch" not in factors:
        return ""
    return factors[1] if factors[0] == "batch" else factors[0]


def leak(runner: Runner, mask: str) -> float | None:
    """How much the content of keys that a mask hides moves the results."""
    known = runner.probe.masks.get(mask)
    base = runner.run()
    if known is None or base is None or known.axis not in runner.contract.every_axis:
        return None
    changes: dict[str, Any] = {}
    for name in runner.probe.floats():
        at, batch = runner.probe.axis(name, known.axis), runner.probe.axis(name, "batch")
        shared = known.real.shape[0] == 1  # one row of marks for all examples
        if at is None or (batch is None and not shared):
            continue
        value = runner.probe.args[name].copy()
        fresh = runner.probe.noise(name, value.shape, salt=3)
        shape = [1] * value.ndim
        shape[at] = known.real.shape[1]
        if batch is not None and not shared:
            shape[batch] = known.real.shape[0]
        real = known.real if shared or batch is None or batch < at else known.real.T
        value = np.where(real.reshape(shape), value, fresh)
        changes[name] = value
    other = runner.run(**changes) if changes else None
    if other is None:
        return None
    moved = 0.0
    for returned, a, b in zip(
        runner.contract.returns, base.outputs, other.outputs, strict=False
    ):
        if a is None or b is None or a.shape != b.shape or a.dtype == object:
            continue
        with np.errstate(all="ignore"):
            gap = np.abs(a - b)
        tokens = returned.axes.split()
        if known.axis in tokens and returned.name != runner.contract.weights:
            # Rows of hidden positions may change: only the real ones count.
            at = tokens.index(known.axis)
            batch = tokens.index("batch") if "batch" in tokens else None
            shape = [1] * gap.ndim
            shape[at] = known.real.shape[1]
            if batch is not None and known.real.shape[0] == gap.shape[batch]:
                shape[batch] = known.real.shape[0]
                real = known.real if batch < at else known.real.T
            else:
                real = known.real[:1]
            gap = gap * real.reshape(shape)
        elif known.axis in tokens:
            rows = [i for i, t in enumerate(tokens) if t == known.axis]
            if len(rows) > 1:
                continue  # rows of hidden queries, which differ by right
        gap = gap[np.isfinite(gap)]
        moved = max(moved, float(gap.max(initial=0.0)))
    return moved


def reads(runner: Runner, row: str, key: str) -> np.ndarray | None:
    """Which position of the key axis moves which row of the first context: (row, key)."""
    base = runner.run()
    returned = runner.contract.returns
    index = next(
        (
            i
            for i, r in enumerate(returned)
            if row in r.axes.split() and r.name != runner.contract.weights
        ),
        None,
    )
    first = None if base is None or index is None else base.outputs[index]
    if index is None or first is None:
        return None
    at = returned[index].axes.split().index(row)
    rows, keys = runner.sizes[row], runner.sizes[key]
    moved = np.zeros((rows, keys), dtype=bool)
    for j in range(keys):
        changes = runner.noised(key, j)
        other = runner.run(**changes) if changes else None
        if other is None or other.outputs[index] is None:
            return None
        with np.errstate(all="ignore"):
            gap = np.abs(np.asarray(other.outputs[index]) - first)
        gap = np.moveaxis(np.nan_to_num(gap), at, 0).reshape(rows, -1).max(axis=1)
        moved[:, j] = gap > 1e-5
    return moved


def order_matters(runner: Runner) -> bool | None:
    """Whether turning the keys (and what stands at them) around moves the results."""
    every = runner.contract.every_axis
    token = next((t for t in ("T_enc", "T") if t in every), None)
    base = runner.run()
    if token is None or base is None or runner.contract.causal:
        return None
    if any(token not in runner.contract.axes(name) for name in runner.probe.masks):
        return None  # of lengths: they name the same positions whatever lies there
    changes: dict[str, Any] = {}
    for name in (*runner.probe.floats(), *runner.probe.masks):
        value = runner.probe.args[name]
        for at, t in enumerate(runner.probe.contract.axes(name)):
            if t == token:
                value = np.flip(value, at)
        changes[name] = value
    other = runner.run(**changes)
    if other is None:
        return None
    for returned, a, b in zip(
        runner.contract.returns, base.outputs, other.outputs, strict=False
    ):
        if a is None or b is None or a.shape != b.shape:
            continue
        turned = tuple(i for i, t in enumerate(returned.axes.split()) if t == token)
        if not np.allclose(a, np.flip(b, turned), atol=1e-4, equal_nan=True):
            return True
    return False
